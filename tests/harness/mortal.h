/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process on a fake disk that can be stopped at any of its steps: before each file call, and,
 * where the code under test is compiled with stepped.h, before each store to shared memory. There
 * it dies, as by SIGKILL: its files and locks are gone and nothing that it does afterwards has any
 * effect; or others run while it stands still, and it goes on. One thread plays all of them.
 */
#ifndef LEASEHOLD_TESTS_MORTAL_H
#define LEASEHOLD_TESTS_MORTAL_H

#include "fake_disk.h"

struct mortal {
    struct disk table; /* give this one to its log */
    struct fake_disk *disk;
    unsigned steps, stop_at; /* counted; 0: never */
    bool halves;             /* it writes in small parts */
    bool dies_of_sync;       /* … that failed, before it can tell anybody */
    /* What happens at that step; NULL: it dies. */
    void (*meanwhile)(void *owner);
    void *owner;
    bool dead;
    bool open[FAKE_OPEN];
    unsigned char page[DISK_PAGE]; /* what was shared, when it died */
};

void mortal_init(struct mortal *mortal, struct fake_disk *disk);
/* After its handles were closed: undoes what it did to the shared page since it died. */
void mortal_bury(struct mortal *mortal);
/* A step of whoever made the last file call. */
void mortal_step(void);

#endif
