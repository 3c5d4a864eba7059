/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that share a log on a fake disk and can be stopped at any step, their operations, and
 * the allowed content of the log afterwards: every certain change, and for each key the last of
 * them, unless a later one happened unreported.
 */
#ifndef LEASEHOLD_TESTS_FAULTS_LOG_WORLD_H
#define LEASEHOLD_TESTS_FAULTS_LOG_WORLD_H

#include "log_kit.h"
#include "fake_process.h"

enum { ACTORS = 3, CHANGES = 128, ACTOR_KEYS = 2 };

enum change_state {
    CHANGE_MAYBE,    /* its process died or got an error */
    CHANGE_DONE,     /* other processes can read it */
    CHANGE_REPORTED, /* reported to a caller, so it is on the disk */
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
    enum log_result result; /* of its last operation */
};

struct world {
    struct fake_disk disk, base;
    unsigned boot;
    struct actor actors[ACTORS];
    unsigned change_count;
    struct log_change changes[CHANGES];
    const char *wrong; /* the first one */
};

void log_world_begin(struct world *world);
void log_world_end(struct world *world);
/* Stops all processes; the host boots again. No data are lost. */
void log_world_boot(struct world *world);

/* Operations of an actor. Each opens the log first, when it has none. */
typedef void log_operation(struct world *world, struct actor *actor);
log_operation op_open;       /* as a new process */
log_operation op_find_index; /* … after the index was removed */
log_operation op_index_put;  /* … and continues to write */
log_operation op_put;        /* one change, not reported */
log_operation op_put_told;
log_operation op_put_large; /* the file has to grow */
log_operation op_turn;      /* three changes in one turn, two of them to one key */
log_operation op_erase;
log_operation op_release;      /* erases, urgently */
log_operation op_make_garbage; /* makes a compaction due */
log_operation op_ask;          /* reads all, and reports it */
log_operation op_read;         /* reads, and reports nothing */
log_operation op_tend;
/* The last actor syncs what it has read, fails and dies unreported. This actor writes before it, or
 * syncs after it, or both. */
log_operation op_bad_sync;
log_operation op_bad_sync_told;
log_operation op_bad_sync_alone;

/* An operation failed: all unreported changes are in doubt. */
void log_world_doubt(struct world *world);
/* The actor died: its unfinished changes are in doubt, those of others are not. */
void log_world_discard(struct world *world, struct actor *actor);
/* True if the actor reads allowed values. */
bool log_world_agrees(struct world *world, struct actor *actor);
/* Checks a disk after a power loss: only reported changes must exist. If it is clean, no tail may
 * be left to cut. */
bool log_world_survives(struct world *world, struct fake_disk *image, bool clean);

#endif
