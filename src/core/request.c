/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validates requests for the rules. Every interface calls request_broken() before it makes a lease
 * and reports the error. No other code validates texts and numbers.
 */
#include "core/rules.h"

#include "base/text.h"

#include <string.h>

static bool is_valid_text(const char *text, size_t least, size_t most)
{
    size_t length = text != NULL ? strnlen(text, most + 1) : most + 1;
    return length >= least && length <= most && text_is_clean(text, length);
}

static const char *request_holder_broken(const struct request *request)
{
    if (!is_valid_text(request->holder, 1, HOLDER_MAX))
        return "the holder must be 1 to 128 bytes of UTF-8 without control characters";
    if (!is_valid_text(request->request, 1, REQUEST_MAX))
        return "the request id must be 1 to 64 bytes of UTF-8 without control characters";
    return NULL;
}

static const char *request_acquire_broken(const struct request *request)
{
    if (request->priority < -PRIORITY_MAX || request->priority > PRIORITY_MAX)
        return "the priority must be from -100 to 100";
    if (request->lock_delay_ms < 0 || request->lock_delay_ms > TTL_MAX_MS)
        return "the lock-delay must be from 0 to 24 h";
    if ((request->mode == MODE_SLOT) != (request->limit > 0))
        return "a semaphore needs a limit, and only a semaphore has one";
    if (request->kind == KIND_WATERMARK)
        return "a watermark cannot be held";
    return request_holder_broken(request);
}

static const char *request_completion_broken(const struct completion *completion)
{
    if (completion->result != NULL && !is_valid_text(completion->result, 0, RESULT_MAX))
        return "the result must be at most 1024 bytes of UTF-8 without control characters";
    if ((completion->watermark == NULL) != (completion->until == NULL))
        return "to keep an id until a watermark has passed a position, give both";
    if (completion->until != NULL && (!is_valid_text(completion->watermark, 1, KEY_MAX) ||
                                      !is_valid_text(completion->until, 1, POSITION_MAX)))
        return "the watermark's name or the position is empty, too long or not printable UTF-8";
    return NULL;
}

/* A claim or a mark of an id. */
static const char *request_once_broken(const struct request *request)
{
    if (strncmp(request->key, ONCE_PREFIX, sizeof ONCE_PREFIX - 1) != 0 ||
        request->key[sizeof ONCE_PREFIX - 1] == '\0')
        return "the key of an id must begin with \"" ONCE_PREFIX "\"";
    if (request->mode != MODE_EXCLUSIVE)
        return "an id can only be claimed exclusively";
    if (request->payload != NULL && !is_valid_text(request->payload, 1, PAYLOAD_MAX))
        return "the payload's fingerprint must be 1 to 64 bytes";
    return NULL;
}

static const char *request_watermark_broken(const struct request *request)
{
    if (strncmp(request->key, WATERMARK_PREFIX, sizeof WATERMARK_PREFIX - 1) != 0 ||
        request->key[sizeof WATERMARK_PREFIX - 1] == '\0')
        return "the key of a watermark must begin with \"" WATERMARK_PREFIX "\"";
    if (request->verb == VERB_ADVANCE && request_holder_broken(request) != NULL)
        return request_holder_broken(request);
    if (!is_valid_text(request->holder, 1, HOLDER_MAX))
        return "the holder must be 1 to 128 bytes of UTF-8 without control characters";
    if (!is_valid_text(request->value, 1, POSITION_MAX))
        return "the value must be 1 to 1024 bytes of UTF-8 without control characters";
    if (request->order == ORDER_NONE && order_of(request->value) == ORDER_NONE)
        return "a time must have seconds and end with Z or an offset such as +02:00";
    if (request->order != ORDER_NONE && !order_fits(request->order, request->value))
        return "the value does not fit the given order";
    if (request->verb == VERB_ADVANCE && !is_valid_text(request->expected, 0, POSITION_MAX))
        return "the expected value must be at most 1024 bytes of UTF-8";
    return NULL;
}

static const char *request_verb_broken(const struct request *request)
{
    bool speaks = request->verb == VERB_BREAK || request->verb == VERB_SET;
    bool claims = request->verb == VERB_ACQUIRE && request->kind == KIND_ONCE;
    const char *broken = NULL;
    if (speaks && !is_valid_text(request->reason, 0, REASON_MAX))
        return "the reason must be at most 256 bytes of UTF-8 without control characters";
    if (request->verb == VERB_ACQUIRE)
        broken = request_acquire_broken(request);
    if (request->verb == VERB_MARK)
        broken = request_holder_broken(request);
    if (broken == NULL && (claims || request->verb == VERB_MARK))
        broken = request_once_broken(request);
    if (request->verb == VERB_ADVANCE || request->verb == VERB_SET)
        broken = request_watermark_broken(request);
    return broken;
}

const char *request_broken(const struct request *request)
{
    bool by_token = request->verb == VERB_RENEW || request->verb == VERB_RELEASE;
    if (!is_valid_text(request->key, 1, KEY_MAX))
        return "the key must be 1 to 512 bytes of UTF-8 without control characters";
    bool keeps = request->verb == VERB_RENEW && request->ttl_ms == 0;
    if (!keeps && (request->ttl_ms <= 0 || request->ttl_ms > TTL_MAX_MS))
        return "the TTL must be above 0 and at most 24 h";
    if (request->session == 0)
        return "the session must not be 0";
    if (by_token && request->token == 0)
        return "the token must not be 0";
    const char *broken =
        request->completion != NULL ? request_completion_broken(request->completion) : NULL;
    return broken != NULL ? broken : request_verb_broken(request);
}
