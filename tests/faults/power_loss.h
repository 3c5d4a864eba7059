/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Power loss by replay, in three parts: workloads are played on a disk that writes down each call
 * and each answer (loss_run.c), every image that a loss could leave is opened and judged
 * (loss_check.c), and planted bugs show that this would be seen (loss_bugs.c).
 */
#ifndef LEASEHOLD_TESTS_FAULTS_POWER_LOSS_H
#define LEASEHOLD_TESTS_FAULTS_POWER_LOSS_H

#include "log_kit.h"

enum {
    LOSS_STEPS = 3, /* verbs of a workload at most */
    LOSS_KEYS = 2,
    LOSS_LARGE = 3000, /* goes over sectors and pages; two of them over a segment */
    LOSS_NOBODY = -1,
};

extern const char *const loss_keys[LOSS_KEYS];

/* Something that was appended. Whoever appended it may not know whether it happened. */
struct loss_change {
    unsigned key;
    const char *value; /* NULL: erased */
    struct stamp written;
};

/* What somebody was told: after so many changes, the last one of each key. */
struct loss_view {
    unsigned changes;
    int standing[LOSS_KEYS]; /* … or LOSS_NOBODY */
};

struct loss_history {
    unsigned change_count, view_count;
    struct loss_change changes[LOSS_STEPS + 1];
    struct loss_view views[2 * LOSS_STEPS + 2]; /* the first: nobody was told anything */
    bool failed; /* a call did, so a change may be missing although a later one is there */
};

/* A note in the stream: so many changes were given, and this is the last view that was told. */
#define LOSS_NOTE(changes, view) ((unsigned)(changes) << 8 | (unsigned)(view))

/* Which of the changes stands under each key, by what the log says; false: none of them. */
bool loss_identify(const struct loss_history *story, unsigned key,
                   const struct kit_value *seen_value, int *out_change);

/* What was found, over all images. */
struct loss_figures {
    uint64_t workloads, images, interrupted, failures, compactions, segments, cuts;
    uint64_t violations;
    char what[512]; /* the first of them */
};

extern struct loss_figures loss_figures;
void loss_violation(const char *what, unsigned workload, size_t moment);

/* Workloads are numbered; with `fails` the so-many-th file call fails. False: it has no so many. */
unsigned loss_workloads(void);
bool loss_run(unsigned workload, unsigned fails);
/* Opening an empty disk is a workload of its own kind. */
bool loss_run_first(unsigned fails);

/* Every image of every moment; `base` is the disk when the recording began. */
void loss_check(const struct fake_disk *disk, const struct fake_disk *base,
                const struct loss_history *story, unsigned workload);

/* Bugs, planted into the disk or into who answers. */
#define LOSS_BUGS(X)                                                              \
    X(BUG_NONE, "none")                                                           \
    X(BUG_EARLY_ANSWER, "an answer before its sync")                              \
    X(BUG_OTHERS_UNSYNCED, "an answer about what another process has not synced") \
    X(BUG_RENAME_FIRST, "a compaction that renames before it syncs the new file") \
    X(BUG_NO_FOLDER_SYNC, "a new file whose name is not synced")                  \
    X(BUG_NOTHING_ZEROED, "a recovery that does not zero the rest")               \
    X(BUG_SYNC_AGAIN, "a sync that is tried again after it failed")

enum loss_bug {
#define LOSS_BUG_NAME(name, text) name,
    LOSS_BUGS(LOSS_BUG_NAME)
#undef LOSS_BUG_NAME
        BUG_COUNT
};

extern enum loss_bug loss_bug;
extern const char *const loss_bug_texts[BUG_COUNT];
/* Puts the bug into a disk: into the one that is recorded, or into one that is recovered. */
void loss_bug_into(struct fake_disk *disk, bool recovering);

#endif
