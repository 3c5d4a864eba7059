/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lh_check(): the protected side of fencing. Admits a writer by its token against a fence file, and
 * hands out the descriptor that keeps other writers of the key out. Asks no store of locks.
 */
#include "face/lib/admin_internal.h"

#include "process/host.h"
#include "store/fence.h"
#include "wire/duration.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct check_request {
    const char *path, *key;
    uint64_t token;
    int64_t wait_ms;
};

static enum lh_outcome check_trouble(struct lh_report *report, const char *why)
{
    return admin_report(report, LH_UNAVAILABLE, "the guard cannot tell, so no writer is let in: %s",
                        why);
}

static enum lh_outcome check_stale(const struct check_request *request, uint64_t highest,
                                   struct lh_report *report)
{
    struct lh_report full = LH_REPORT_INIT;
    (void)admin_report(&full, LH_STALE,
                       "%.120s has seen token %" PRIu64 ", which is above %" PRIu64
                       "; nothing was changed",
                       request->key, highest, request->token);
    full.token = highest;
    full.refusal = lh_refusal_word(LH_VERB_CHECK, LH_STALE);
    report_copy(report, &full);
    return LH_STALE;
}

static enum lh_outcome check_busy(const struct check_request *request, struct lh_report *report)
{
    char wait[DURATION_SHOWN];
    return admin_report(report, LH_BUSY,
                        "another command writes under %.120s; waited %s for its end", request->key,
                        duration_show(request->wait_ms, wait));
}

/* Copies the descriptor, so that the fence can be closed and the key stays reserved. */
static enum lh_outcome check_hand_out(const struct fence *fence, int *out_fd,
                                      struct lh_report *report)
{
    int file = fcntl(fence->held, F_DUPFD_CLOEXEC, 0);
    if (file < 0)
        return admin_report(report, LH_FAILED, "no descriptor is left for the guard: %s",
                            strerror(errno));
    *out_fd = file;
    return report_set(report, LH_OK, "");
}

static enum lh_outcome check_enter(const struct check_request *request, const struct disk *disk,
                                   const struct host_ids *ids, int *out_fd,
                                   struct lh_report *report)
{
    char message[LH_TEXT_SIZE];
    struct text why;
    struct fence fence;
    uint64_t highest = 0;
    text_init(&why, message, sizeof message);
    text_add(&why, request->path);
    text_add(&why, ": ");
    if (fence_open(&fence, disk, ids, &why) != FENCE_OK)
        return check_trouble(report, message);
    int64_t deadline_ms =
        request->wait_ms == LH_WAIT_FOREVER ? INT64_MAX : host_boot_ms() + request->wait_ms;
    enum fence_result result =
        fence_enter(&fence, request->key, request->token, deadline_ms, &highest, &why);
    enum lh_outcome outcome = LH_OK;
    switch (result) {
    case FENCE_OK:
        fence_maintain(&fence);
        outcome = check_hand_out(&fence, out_fd, report);
        break;
    case FENCE_STALE:
        outcome = check_stale(request, highest, report);
        break;
    case FENCE_HELD:
        outcome = check_busy(request, report);
        break;
    case FENCE_TROUBLE:
        outcome = check_trouble(report, message);
        break;
    }
    fence_close(&fence);
    return outcome;
}

enum lh_outcome lh_check(const char *path, const char *key, uint64_t token, int64_t wait_ms,
                         int *out_fd, struct lh_report *report)
{
    const struct check_request request = {
        .path = path, .key = key, .token = token, .wait_ms = wait_ms};
    char message[LH_TEXT_SIZE];
    struct text why;
    struct disk disk;
    struct host_ids ids;
    if (!sized_is_valid(report))
        return LH_USAGE;
    if (path == NULL || !admin_is_key(key) || token == 0 || out_fd == NULL ||
        (wait_ms < 0 && wait_ms != LH_WAIT_FOREVER) || wait_ms > WAIT_MAX_MS)
        return admin_report(report, LH_USAGE,
                            "lh_check() needs a path, a key, a token above 0, a wait and a place "
                            "for the descriptor");
    text_init(&why, message, sizeof message);
    if (!host_read(&ids, &why) || !disk_open(&disk, path, &why))
        return check_trouble(report, message);
    enum lh_outcome outcome = check_enter(&request, &disk, &ids, out_fd, report);
    disk_done(&disk);
    return outcome;
}
