/* SPDX-License-Identifier: Apache-2.0 */
/* See condition.h. No rule of its own: what stands and what has run out, decide() says. */
#include "store/condition.h"

#include "base/check.h"
#include "core/mutant.h"
#include "wire/record_codec.h"

/* Applies the verb to the grant in the scratch; false when the grant does not stand. */
static bool apply(const struct store_request *request, const struct standing *standing,
                  enum verb verb, struct record *scratch)
{
    struct codec_error error;
    if (record_decode(standing->bytes, standing->length, scratch, &error) != DECODE_OK)
        return false;
    record_resolve(scratch, &standing->written);
    if (scratch->grant_count > 1 && record_broken(scratch) != NULL) /* a mark became a token */
        return false;
    struct request rule = {.verb = verb,
                           .key = scratch->key,
                           .holder = "",
                           .token = request->condition.token,
                           .ttl_ms = request->ttl_ms,
                           .session = request->session,
                           .bound = request->bound};
    struct view view = {.at = standing->written, .judge = JUDGE_STORE_TIME};
    view.at.time_ms = standing->now_ms;
    return decide(scratch, &rule, &view).kind == VERDICT_DONE;
}

bool condition_holds(const struct store_request *request, const struct standing *standing,
                     struct record *scratch)
{
    const struct condition *condition = &request->condition;
    if (MUTANT(SEEN_THEN_MARK) && condition->kind == IF_REVISION && condition->revision == 0)
        return true;
    if (condition->kind == IF_ABSENT || standing->bytes == NULL)
        return condition->kind == IF_ABSENT && standing->bytes == NULL;
    if (condition->kind == IF_REVISION) {
        bool planted = MUTANT(RELEASE_UNCONDITIONAL) || MUTANT(ACCEPT_UNCONDITIONAL);
        bool any = planted && condition->revision == 0;
        if (condition->revision != standing->written.revision && !any)
            return false;
        return condition->token == 0 || apply(request, standing, VERB_RELEASE, scratch);
    }
    if (request->verb == VERB_STORE_SWAP)
        return apply(request, standing, VERB_RENEW, scratch);
    return apply(request, standing, VERB_RELEASE, scratch) && !record_needed(scratch);
}

size_t condition_renewal(const struct store_request *request, const struct standing *standing,
                         struct record *scratch, char *bytes, size_t size)
{
    bool stands = apply(request, standing, VERB_RENEW, scratch);
    ASSERT(stands);
    return record_encode(scratch, bytes, size);
}
