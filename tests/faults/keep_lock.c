/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes the lock of a file store, and stops itself while it holds it: keep_lock PATH. Exits without
 * a change when it is continued. For tests that need a process in that state reliably.
 */
#include "disk/disk.h"
#include "store/log/log.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { TIMEOUT_MS = 10000 };

int main(int argc, char **argv)
{
    char text[512] = "usage: keep_lock PATH";
    struct text why;
    struct disk disk;
    struct log *log = NULL;
    struct log_options options = LOG_OPTIONS_DEFAULT;
    options.disk = &disk;
    if (argc == 2) {
        text_init(&why, text, sizeof text);
        if (host_read(&options.ids, &why) && disk_open(&disk, argv[1], &why) &&
            log_open(&options, host_boot_ms() + TIMEOUT_MS, &log, &why) == LOG_OK &&
            log_begin(log, /* need= */ 0, host_boot_ms() + TIMEOUT_MS) == LOG_OK) {
            (void)kill(getpid(), SIGSTOP);
            (void)log_end(log);
            log_close(&log);
            disk_done(&disk);
            return 0;
        }
    }
    fprintf(stderr, "keep_lock: %s\n", text);
    return 1;
}
