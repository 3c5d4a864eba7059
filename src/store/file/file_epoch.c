/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The epoch of a file store: a member of the log's host records. Every process stamps its records
 * with the epoch of the shared page, under the append lock, so none can use an old one. Reading
 * creates no store.
 */
#include "store/file/file_internal.h"

#include "store/admin.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* Under one lock: raises if asked to, and reads. */
static enum log_result file_epoch_at(struct log *log, const struct epoch_options *options,
                                     int64_t timeout_ms, struct epoch_state *out)
{
    uint64_t need = options->least > 0 ? log_record_size(/* key_length= */ 0, LOG_HOST_BYTES) : 0;
    enum log_result result = log_begin(log, need, host_boot_ms() + timeout_ms);
    if (result != LOG_OK)
        return result;
    if (options->least > 0)
        result = log_raise_epoch(log, options->least);
    out->epoch = log_epoch(log);
    out->revision = log_revision(log);
    out->now_ms = log_now_ms(log);
    enum log_result ended = log_end(log);
    result = result != LOG_OK ? result : ended;
    return result == LOG_OK ? log_sync(log, host_boot_ms() + timeout_ms) : result;
}

enum reply_status file_epoch(const char *url, const struct epoch_options *options,
                             struct epoch_state *out, struct text *why)
{
    const char *path = file_url_path(url);
    int64_t timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : TIMEOUT_MS;
    struct epoch_state state = {.now_ms = -1};
    struct log_options log_options = LOG_OPTIONS_DEFAULT;
    struct disk disk;
    struct log *log = NULL;
    (void)snprintf(state.kept, sizeof state.kept, "the log %s", path);
    if (*path == '\0') {
        text_add(why, "usage: file: needs a path, such as file:/var/lib/leasehold/locks.log");
        return REPLY_TROUBLE;
    }
    if (options->least == 0 && access(path, F_OK) != 0 && errno == ENOENT) {
        *out = state;
        return REPLY_OK;
    }
    if (!host_read(&log_options.ids, why) || !disk_open(&disk, path, why))
        return REPLY_TROUBLE;
    log_options.disk = &disk;
    enum log_result result = log_open(&log_options, host_boot_ms() + timeout_ms, &log, why);
    if (result == LOG_OK) {
        result = file_epoch_at(log, options, timeout_ms, &state);
        if (result != LOG_OK)
            log_explain(log, result, why);
    }
    log_close(&log);
    disk_done(&disk);
    if (result != LOG_OK)
        return REPLY_TROUBLE;
    *out = state;
    return REPLY_OK;
}
