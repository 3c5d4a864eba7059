/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes any bytes as the record of a key of a file store: put_bytes PATH KEY BYTES. For tests with
 * records of a newer version, or corrupt ones, that cannot be decoded.
 */
#include "disk/disk.h"
#include "store/log/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_MS = 10000 };

static enum log_result put(struct log *log, const char *key, const char *bytes)
{
    struct log_record before;
    struct stamp written;
    int64_t deadline_ms = host_boot_ms() + TIMEOUT_MS;
    size_t length = strlen(bytes), size = log_record_size(strlen(key), length);
    enum log_result result = log_begin(log, size, deadline_ms);
    if (result != LOG_OK)
        return result;
    result = log_find(log, key, strlen(key), &before);
    if (result == LOG_OK)
        result = log_append(log, key, before.offset, bytes, length, /* urgent= */ false, &written);
    enum log_result ended = log_end(log);
    if (result == LOG_OK)
        result = ended == LOG_OK ? log_sync(log, deadline_ms) : ended;
    return result;
}

int main(int argc, char **argv)
{
    char text[512];
    struct text why;
    struct disk disk;
    struct log *log = NULL;
    struct log_options options = LOG_OPTIONS_DEFAULT;
    options.disk = &disk;
    long times = argc == 5 ? strtol(argv[4], NULL, /* base= */ 10) : 1;
    text_init(&why, text, sizeof text);
    if (argc < 4 || argc > 5)
        text_add(&why, "usage: put_bytes PATH KEY BYTES [TIMES]");
    else if (host_read(&options.ids, &why) && disk_open(&disk, argv[1], &why)) {
        enum log_result result = log_open(&options, host_boot_ms() + TIMEOUT_MS, &log, &why);
        for (; times > 0 && result == LOG_OK; times--)
            result = put(log, argv[2], argv[3]);
        if (log != NULL && result != LOG_OK)
            log_explain(log, result, &why);
        log_close(&log);
        disk_done(&disk);
        if (result == LOG_OK)
            return 0;
    }
    fprintf(stderr, "put_bytes: %s\n", text);
    return 1;
}
