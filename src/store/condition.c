/* SPDX-License-Identifier: Apache-2.0 */
/* See condition.h. No rules here: rules_decide() judges the grant. */
#include "store/condition.h"

#include "base/check.h"
#include "core/mutant.h"
#include "wire/record_codec.h"

/* Applies the verb to the grant in the scratch; false if the grant is missing or expired. */
static bool condition_apply(const struct store_request *request, const struct stored_record *stored,
                            enum verb verb, struct record *scratch)
{
    struct codec_error error;
    if (record_decode(stored->bytes, stored->length, scratch, &error) != DECODE_OK)
        return false;
    record_resolve(scratch, &stored->written);
    if (scratch->grant_count > 1 && record_broken(scratch) != NULL) /* a mark became a token */
        return false;
    struct request rule = {.verb = verb,
                           .key = scratch->key,
                           .holder = "",
                           .token = request->condition.token,
                           .ttl_ms = request->ttl_ms,
                           .session = request->session,
                           .bound = request->bound};
    /* Only clients pass offers on, after the grace of their store. */
    static const struct store_facts by_clock = {.judge = JUDGE_STORE_TIME,
                                                .offer_grace_ms = INT64_MAX / 2};
    struct view view = {.at = stored->written, .facts = &by_clock};
    view.at.time_ms = stored->now_ms;
    return rules_decide(scratch, &rule, &view).kind == VERDICT_DONE;
}

bool condition_holds(const struct store_request *request, const struct stored_record *stored,
                     struct record *scratch)
{
    const struct condition *condition = &request->condition;
    if (MUTANT(SEEN_THEN_MARK) && condition->kind == IF_REVISION && condition->revision == 0)
        return true;
    if (condition->kind == IF_ABSENT || stored->bytes == NULL)
        return condition->kind == IF_ABSENT && stored->bytes == NULL;
    if (condition->kind == IF_REVISION) {
        bool planted = MUTANT(RELEASE_UNCONDITIONAL) || MUTANT(ACCEPT_UNCONDITIONAL);
        bool any = planted && condition->revision == 0;
        uint64_t current = stamp_order(&stored->written);
        if (MUTANT(EPOCH_IGNORED) &&
            (current & REVISION_MAX) == (condition->revision & REVISION_MAX))
            current = condition->revision;
        if (condition->revision != current && !any)
            return false;
        /* At that revision the record has the token's grant: only its end is unknown. */
        if (condition->token == 0 || condition->ends_ms != 0)
            return condition->token == 0 || stored->now_ms < condition->ends_ms;
        return condition_apply(request, stored, VERB_RELEASE, scratch);
    }
    if (request->verb == VERB_STORE_SWAP)
        return condition_apply(request, stored, VERB_RENEW, scratch);
    return condition_apply(request, stored, VERB_RELEASE, scratch) && !record_needed(scratch);
}

size_t condition_renewal(const struct store_request *request, const struct stored_record *stored,
                         struct record *scratch, char *bytes, size_t size)
{
    bool holds = condition_apply(request, stored, VERB_RENEW, scratch);
    ASSERT(holds);
    return record_encode(scratch, bytes, size);
}
