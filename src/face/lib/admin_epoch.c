/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lh_epoch_read() and lh_epoch_raise(): the epoch of a store's tokens. The driver keeps and raises
 * it; here it is decided how far.
 */
#include "face/lib/admin_internal.h"

#include <inttypes.h>
#include <string.h>

static enum lh_outcome epoch_refused(const char *url, enum reply_status result, const char *why,
                                     struct lh_report *report)
{
    static const char blame[] = "usage: ";
    bool usage = strncmp(why, blame, sizeof blame - 1) == 0;
    enum lh_outcome outcome = usage                    ? LH_USAGE
                              : result == REPLY_DENIED ? LH_DENIED
                                                       : LH_UNAVAILABLE;
    return admin_report_url(report, outcome, url, usage ? why + sizeof blame - 1 : why);
}

/* Asks the driver; the report is set unless it is LH_OK. */
static enum lh_outcome epoch_ask(const char *url, const struct epoch_options *options,
                                 struct epoch_state *out, struct lh_report *report)
{
    char message[LH_TEXT_SIZE];
    struct text why;
    const struct store_driver *driver = store_find(url);
    if (driver == NULL)
        return admin_report_scheme(url, report);
    if (driver->epoch == NULL)
        return admin_report(report, LH_USAGE, "%s: has no epoch: %s", driver->scheme,
                            (driver->capabilities & STORE_DURABLE) != 0
                                ? "its page describes what to do after a restored backup"
                                : "its tokens end with the process; name a store that outlives it");
    text_init(&why, message, sizeof message);
    enum reply_status result = driver->epoch(url, options, out, &why);
    return result == REPLY_OK ? LH_OK : epoch_refused(url, result, message, report);
}

static enum lh_outcome epoch_give(const struct epoch_state *state, struct lh_epoch *out,
                                  struct lh_report *report)
{
    struct lh_epoch found = {.epoch = state->epoch,
                             .behind = state->behind,
                             .revision = state->revision,
                             .now_ms = state->now_ms};
    text_copy(found.kept, sizeof found.kept, state->kept);
    sized_write(out, &found, sizeof found);
    return report_set(report, LH_OK, "");
}

static bool epoch_is_valid_call(const char *url, int64_t timeout_ms, const struct lh_epoch *out)
{
    return url != NULL && out != NULL && sized_is_valid(out) && timeout_ms >= 0 &&
           timeout_ms <= TTL_MAX_MS;
}

static enum lh_outcome epoch_report_call(struct lh_report *report)
{
    return admin_report(report, LH_USAGE,
                        "give a URL, a timeout that is not negative, and a result that "
                        "LH_EPOCH_INIT initialised");
}

/* Checks the call and reads the epoch. */
static enum lh_outcome epoch_begin(const char *url, const struct epoch_options *options,
                                   const struct lh_epoch *out, struct epoch_state *state,
                                   struct lh_report *report)
{
    if (!sized_is_valid(report))
        return LH_USAGE;
    if (!epoch_is_valid_call(url, options->timeout_ms, out))
        return epoch_report_call(report);
    return epoch_ask(url, options, state, report);
}

enum lh_outcome lh_epoch_read(const char *url, int64_t timeout_ms, struct lh_epoch *out,
                              struct lh_report *report)
{
    struct epoch_options options = {.timeout_ms = timeout_ms};
    struct epoch_state state = {0};
    enum lh_outcome outcome = epoch_begin(url, &options, out, &state, report);
    return outcome == LH_OK ? epoch_give(&state, out, report) : outcome;
}

enum lh_outcome lh_epoch_raise(const char *url, uint64_t above, int64_t timeout_ms,
                               struct lh_epoch *out, struct lh_report *report)
{
    struct epoch_options options = {.timeout_ms = timeout_ms};
    struct epoch_state state = {0};
    enum lh_outcome outcome = epoch_begin(url, &options, out, &state, report);
    if (outcome != LH_OK)
        return outcome;
    uint64_t least = above != 0 ? (above >> 55) + 1 : (uint64_t)state.epoch + 1;
    if (least > EPOCH_MAX)
        return admin_report(report, LH_USAGE,
                            "the epoch would be %" PRIu64 ", and the highest is %d; nothing was "
                            "changed: check the token, or begin a new store with new fences",
                            least, EPOCH_MAX);
    /* Also if it is high enough already: a part of the store may be behind. */
    options.least = (uint16_t)(least > state.epoch ? least : state.epoch);
    outcome = epoch_ask(url, &options, &state, report);
    return outcome == LH_OK ? epoch_give(&state, out, report) : outcome;
}
