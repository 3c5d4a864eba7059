/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One word for each refusal, by outcome and call: the words that metrics, conditions and scripts of
 * other lock managers use. docs/refusals.md has the same table; no other file defines such words.
 */
#include "leasehold_admin.h"

#include <stddef.h>

enum { VERBS = LH_VERB_WORKLOAD + 1, OUTCOMES = LH_DONE + 1 };

/* For calls without an entry in the other table. */
static const char *const usual[OUTCOMES] = {
    [LH_BUSY] = "contention",   [LH_COOLING] = "cooling",       [LH_LOST] = "lost",
    [LH_STALE] = "not_held",    [LH_UNAVAILABLE] = "api_error", [LH_DENIED] = "api_error",
    [LH_MISMATCH] = "mismatch", [LH_USAGE] = "usage",           [LH_FAILED] = "internal_error",
    [LH_DONE] = "duplicate",
};

static const char *const special[VERBS][OUTCOMES] = {
    [LH_VERB_WAIT] = {[LH_BUSY] = "timeout"},
    [LH_VERB_ONCE] = {[LH_BUSY] = "running", [LH_MISMATCH] = "payload_mismatch"},
    [LH_VERB_WATERMARK] = {[LH_STALE] = "moved"},
    [LH_VERB_CHECK] = {[LH_STALE] = "stale_token"},
    [LH_VERB_CANCEL] = {[LH_BUSY] = "cancelled"},
    [LH_VERB_WORKLOAD] = {[LH_BUSY] = "ResourceBusy", [LH_COOLING] = "RecentlyRemediated"},
};

const char *lh_refusal_word(enum lh_verb verb, enum lh_outcome outcome)
{
    if ((int)outcome < 0 || outcome > LH_DONE)
        return "unknown";
    if ((int)verb < 0 || verb > LH_VERB_WORKLOAD || special[verb][outcome] == NULL)
        return usual[outcome];
    return special[verb][outcome];
}
