/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process on a fake disk that can be stopped at any of its steps: before each file call and, if
 * the code under test is compiled with crash_points.h, before each store to shared memory. There it
 * dies, as by SIGKILL: its files and locks are gone, and its later calls have no effect. Or it
 * pauses while others run, and continues. One thread plays all of them.
 */
#ifndef LEASEHOLD_TESTS_HARNESS_FAKE_PROCESS_H
#define LEASEHOLD_TESTS_HARNESS_FAKE_PROCESS_H

#include "fake_disk.h"

struct fake_process {
    struct disk table; /* for its log */
    struct fake_disk *disk;
    unsigned steps, stop_at; /* steps: so far; stop_at 0: never */
    bool halves;             /* writes in small parts */
    bool crashes_on_sync;    /* … that failed, before it can report it */
    /* Called at that step; NULL: it dies. */
    void (*meanwhile)(void *owner);
    void *owner;
    bool dead;
    bool open[FAKE_OPEN];
    unsigned char page[DISK_PAGE]; /* the shared page when it died */
};

void fake_process_init(struct fake_process *fake_process, struct fake_disk *disk);
/* After its handles are closed: undoes its changes of the shared page since it died. */
void fake_process_discard(struct fake_process *fake_process);
/* A step of the process that made the last file call. */
void crash_point(void);

#endif
