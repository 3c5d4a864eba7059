/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that share a log on a fake disk and can be stopped at any step, what each of them does,
 * and what may be in the log then: every change that is certain, and of one key the last of them,
 * unless a later one happened without anybody knowing.
 */
#ifndef LEASEHOLD_TESTS_FAULTS_LOG_WORLD_H
#define LEASEHOLD_TESTS_FAULTS_LOG_WORLD_H

#include "log_kit.h"
#include "fake_process.h"

enum { ACTORS = 3, CHANGES = 128, ACTOR_KEYS = 2 };

enum change_state {
    CHANGE_MAYBE,    /* who did it died or was told of a failure */
    CHANGE_DONE,     /* others can see it */
    CHANGE_REPORTED, /* somebody was told, so it is on the disk */
};

struct log_change {
    unsigned key;
    const char *value; /* NULL: erased */
    uint64_t revision;
    enum change_state state;
};

struct actor {
    struct fake_process process;
    struct log *log;
    enum log_result result; /* of the last thing that it did */
};

struct world {
    struct fake_disk disk, base;
    unsigned boot;
    struct actor actors[ACTORS];
    unsigned change_count;
    struct log_change changes[CHANGES];
    const char *wrong; /* the first */
};

void log_world_begin(struct world *world);
void log_world_end(struct world *world);
/* Everybody stops; the host boots again. Nothing is lost. */
void log_world_boot(struct world *world);

/* What an actor can do. Each opens the log first, when it has none. */
typedef void log_operation(struct world *world, struct actor *actor);
log_operation op_open;       /* anew, as a new process */
log_operation op_find_index; /* … after somebody removed the index */
log_operation op_index_put;  /* … and goes on writing */
log_operation op_put;        /* one change; nobody is told */
log_operation op_put_told;
log_operation op_put_large; /* the file has to grow */
log_operation op_turn;      /* three changes in one turn, two of them to one key */
log_operation op_erase;
log_operation op_release;      /* erases, urgently */
log_operation op_make_garbage; /* makes a compaction due */
log_operation op_ask;          /* reads all, and tells */
log_operation op_read;         /* reads, and tells nobody */
log_operation op_tend;
/* The last actor syncs what it has seen, fails and dies of it, and nobody hears of that. Before it,
 * this one puts; or after it, this one syncs; or both. */
log_operation op_bad_sync;
log_operation op_bad_sync_told;
log_operation op_bad_sync_alone;

/* Something failed: whatever nobody was told is in doubt. */
void log_world_doubt(struct world *world);
/* It died: what it had not ended is in doubt, what others did is not. */
void log_world_discard(struct world *world, struct actor *actor);
/* Does the actor read what can be there? */
bool log_world_agrees(struct world *world, struct actor *actor);
/* Looks at a disk that lost its power: only what was told must be there. With nothing left to be
 * cut, if it is clean. */
bool log_world_survives(struct world *world, struct fake_disk *image, bool clean);

#endif
