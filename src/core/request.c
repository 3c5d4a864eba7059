/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a request one that the rules can work with? Every face asks here before it makes a lease, and
 * tells its user; behind the door it is an assert. Nothing else checks words and numbers again.
 */
#include "core/rules.h"

#include "base/text.h"

#include <string.h>

static bool is_words(const char *words, size_t least, size_t most)
{
    size_t length = words != NULL ? strnlen(words, most + 1) : most + 1;
    return length >= least && length <= most && text_is_clean(words, length);
}

static const char *broken_who(const struct request *request)
{
    if (!is_words(request->holder, 1, HOLDER_MAX))
        return "the holder must be 1 to 128 bytes of UTF-8 without control characters";
    if (!is_words(request->request, 1, REQUEST_MAX))
        return "the request id must be 1 to 64 bytes of UTF-8 without control characters";
    return NULL;
}

static const char *broken_ask(const struct request *request)
{
    if (request->priority < -PRIORITY_MAX || request->priority > PRIORITY_MAX)
        return "the priority must be from -100 to 100";
    if (request->lock_delay_ms < 0 || request->lock_delay_ms > TTL_MAX_MS)
        return "the lock-delay must be from 0 to 24 h";
    if ((request->mode == MODE_SLOT) != (request->limit > 0))
        return "a semaphore needs a limit, and only a semaphore has one";
    if (request->kind == KIND_WATERMARK)
        return "a watermark cannot be held";
    return broken_who(request);
}

static const char *broken_deed(const struct deed *deed)
{
    if (deed->result != NULL && !is_words(deed->result, 0, RESULT_MAX))
        return "the result must be at most 1024 bytes of UTF-8 without control characters";
    if ((deed->watermark == NULL) != (deed->until == NULL))
        return "an id is kept until a watermark has passed a position: say both";
    if (deed->until != NULL &&
        (!is_words(deed->watermark, 1, KEY_MAX) || !is_words(deed->until, 1, POSITION_MAX)))
        return "the watermark's name or the position is too long, empty or not clean";
    return NULL;
}

/* What is asked of an id: a claim, or that it is done. */
static const char *broken_once(const struct request *request)
{
    if (strncmp(request->key, ONCE_PREFIX, sizeof ONCE_PREFIX - 1) != 0 ||
        request->key[sizeof ONCE_PREFIX - 1] == '\0')
        return "the key of an id must begin with \"" ONCE_PREFIX "\"";
    if (request->mode != MODE_EXCLUSIVE)
        return "an id is claimed by one alone";
    if (request->payload != NULL && !is_words(request->payload, 1, PAYLOAD_MAX))
        return "the payload's fingerprint must be 1 to 64 bytes";
    return NULL;
}

static const char *broken_watermark(const struct request *request)
{
    if (strncmp(request->key, WATERMARK_PREFIX, sizeof WATERMARK_PREFIX - 1) != 0 ||
        request->key[sizeof WATERMARK_PREFIX - 1] == '\0')
        return "the key of a watermark must begin with \"" WATERMARK_PREFIX "\"";
    if (request->verb == VERB_ADVANCE && broken_who(request) != NULL)
        return broken_who(request);
    if (!is_words(request->holder, 1, HOLDER_MAX))
        return "the holder must be 1 to 128 bytes of UTF-8 without control characters";
    if (!is_words(request->value, 1, POSITION_MAX))
        return "the value must be 1 to 1024 bytes of UTF-8 without control characters";
    if (request->order == ORDER_NONE && order_of(request->value) == ORDER_NONE)
        return "a moment has seconds, and ends with Z or an offset such as +02:00";
    if (request->order != ORDER_NONE && !order_fits(request->order, request->value))
        return "the value is not of the order that was said";
    if (request->verb == VERB_ADVANCE && !is_words(request->expected, 0, POSITION_MAX))
        return "the expected value must be at most 1024 bytes of UTF-8";
    return NULL;
}

static const char *broken_verb(const struct request *request)
{
    bool speaks = request->verb == VERB_BREAK || request->verb == VERB_SET;
    bool claims = request->verb == VERB_ASK && request->kind == KIND_ONCE;
    const char *broken = NULL;
    if (speaks && !is_words(request->reason, 0, REASON_MAX))
        return "the reason must be at most 256 bytes of UTF-8 without control characters";
    if (request->verb == VERB_ASK)
        broken = broken_ask(request);
    if (request->verb == VERB_MARK)
        broken = broken_who(request);
    if (broken == NULL && (claims || request->verb == VERB_MARK))
        broken = broken_once(request);
    if (request->verb == VERB_ADVANCE || request->verb == VERB_SET)
        broken = broken_watermark(request);
    return broken;
}

const char *request_broken(const struct request *request)
{
    bool by_token = request->verb == VERB_RENEW || request->verb == VERB_RELEASE;
    if (!is_words(request->key, 1, KEY_MAX))
        return "the key must be 1 to 512 bytes of UTF-8 without control characters";
    bool keeps = request->verb == VERB_RENEW && request->ttl_ms == 0;
    if (!keeps && (request->ttl_ms <= 0 || request->ttl_ms > TTL_MAX_MS))
        return "the TTL must be above 0 and at most 24 h";
    if (request->session == 0)
        return "the session must not be 0";
    if (by_token && request->token == 0)
        return "the token must not be 0";
    const char *broken = request->deed != NULL ? broken_deed(request->deed) : NULL;
    return broken != NULL ? broken : broken_verb(request);
}
