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

static const char *broken_ask(const struct request *request)
{
    if (!is_words(request->holder, 1, HOLDER_MAX))
        return "the holder must be 1 to 128 bytes of UTF-8 without control characters";
    if (!is_words(request->request, 1, REQUEST_MAX))
        return "the request id must be 1 to 64 bytes of UTF-8 without control characters";
    if (request->priority < -PRIORITY_MAX || request->priority > PRIORITY_MAX)
        return "the priority must be from -100 to 100";
    if (request->lock_delay_ms < 0 || request->lock_delay_ms > TTL_MAX_MS)
        return "the lock-delay must be from 0 to 24 h";
    if ((request->mode == MODE_SLOT) != (request->limit > 0))
        return "a semaphore needs a limit, and only a semaphore has one";
    return NULL;
}

const char *request_broken(const struct request *request)
{
    bool by_token = request->verb == VERB_RENEW || request->verb == VERB_RELEASE;
    if (!is_words(request->key, 1, KEY_MAX))
        return "the key must be 1 to 512 bytes of UTF-8 without control characters";
    if (request->ttl_ms <= 0 || request->ttl_ms > TTL_MAX_MS)
        return "the TTL must be above 0 and at most 24 h";
    if (request->session == 0)
        return "the session must not be 0";
    if (by_token && request->token == 0)
        return "the token must not be 0";
    if (request->verb == VERB_BREAK && !is_words(request->reason, 0, REASON_MAX))
        return "the reason must be at most 256 bytes of UTF-8 without control characters";
    return request->verb == VERB_ASK ? broken_ask(request) : NULL;
}
