/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that share a log on a fake disk and can be stopped at any step, what each of them does,
 * and what may be in the log then: every change that is certain, and of one key the last of them,
 * unless a later one happened without anybody knowing.
 */
#ifndef LEASEHOLD_TESTS_ACTORS_H
#define LEASEHOLD_TESTS_ACTORS_H

#include "log_kit.h"
#include "mortal.h"

enum { ACTORS = 3, ACTS = 128, ACTOR_KEYS = 2 };

enum act_state {
    ACT_MAYBE, /* who did it died or was told of a failure */
    ACT_DONE,  /* others can see it */
    ACT_TOLD,  /* somebody was told, so it is on the disk */
};

struct act {
    unsigned key;
    const char *value; /* NULL: erased */
    uint64_t revision;
    enum act_state state;
};

struct actor {
    struct mortal process;
    struct log *log;
    enum log_result result; /* of the last thing that it did */
};

struct stage {
    struct fake_disk disk, base;
    unsigned boot;
    struct actor actors[ACTORS];
    unsigned act_count;
    struct act acts[ACTS];
    const char *wrong; /* the first */
};

void stage_begin(struct stage *stage);
void stage_end(struct stage *stage);
/* Everybody stops; the host boots again. Nothing is lost. */
void stage_boot(struct stage *stage);

/* What an actor can do. Each opens the log first, when it has none. */
typedef void deed(struct stage *stage, struct actor *actor);
deed deed_open;       /* anew, as a new process */
deed deed_find_index; /* … after somebody removed the index */
deed deed_index_put;  /* … and goes on writing */
deed deed_put;        /* one change; nobody is told */
deed deed_put_told;
deed deed_put_large; /* the file has to grow */
deed deed_turn;      /* three changes in one turn, two of them to one key */
deed deed_erase;
deed deed_release; /* erases, urgently */
deed deed_litter;  /* makes a compaction due */
deed deed_ask;     /* reads all, and tells */
deed deed_look;    /* reads, and tells nobody */
deed deed_tend;
/* The last actor syncs what it has seen, fails and dies of it, and nobody hears of that. Before it,
 * this one puts; or after it, this one syncs; or both. */
deed deed_bad_sync;
deed deed_bad_sync_told;
deed deed_bad_sync_alone;

/* Something failed: whatever nobody was told is in doubt. */
void stage_doubt(struct stage *stage);
/* It died: what it had not ended is in doubt, what others did is not. */
void stage_bury(struct stage *stage, struct actor *actor);
/* Does the actor read what can be there? */
bool stage_agrees(struct stage *stage, struct actor *actor);
/* Looks at a disk that lost its power: only what was told must be there. With nothing left to be
 * cut, if it is clean. */
bool stage_survives(struct stage *stage, struct fake_disk *image, bool clean);

#endif
