/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Power loss by replay, in three parts: workloads run on a disk that records each call and each
 * reply (loss_run.c), every image that a loss could leave is opened and checked (loss_check.c), and
 * planted bugs prove that violations are detected (loss_bugs.c).
 */
#ifndef LEASEHOLD_TESTS_FAULTS_POWER_LOSS_H
#define LEASEHOLD_TESTS_FAULTS_POWER_LOSS_H

#include "log_kit.h"

enum {
    LOSS_STEPS = 3, /* verbs of a workload at most */
    LOSS_KEYS = 2,
    LOSS_LARGE = 3000, /* spans sectors and pages; two of them span a segment */
    LOSS_NOBODY = -1,
};

extern const char *const loss_keys[LOSS_KEYS];

/* A change that was appended. Its writer may not know whether it took effect. */
struct loss_change {
    unsigned key;
    const char *value; /* NULL: erased */
    struct stamp written;
};

/* A reported view: after that many changes, the last one of each key. */
struct loss_view {
    unsigned changes;
    int standing[LOSS_KEYS]; /* … or LOSS_NOBODY */
};

struct loss_history {
    unsigned change_count, view_count;
    struct loss_change changes[LOSS_STEPS + 1];
    struct loss_view views[2 * LOSS_STEPS + 2]; /* the first: nothing was reported */
    bool failed; /* a call failed, so a change may be missing although a later one exists */
};

/* A note in the stream: the number of changes given, and the last reported view. */
#define LOSS_NOTE(changes, view) ((unsigned)(changes) << 8 | (unsigned)(view))

/* The current change of each key, by the log's content; false: none of them. */
bool loss_identify(const struct loss_history *story, unsigned key,
                   const struct kit_value *seen_value, int *out_change);

/* Totals over all images. */
struct loss_figures {
    uint64_t workloads, images, interrupted, failures, compactions, segments, cuts;
    uint64_t violations;
    char what[512]; /* the first one */
};

extern struct loss_figures loss_figures;
void loss_violation(const char *what, unsigned workload, size_t moment);

/* Workloads are numbered; with `fails` the call of that number fails. False: it has fewer calls. */
unsigned loss_workloads(void);
bool loss_run(unsigned workload, unsigned fails);
/* Opening an empty disk is a separate workload. */
bool loss_run_first(unsigned fails);

/* Every image of every moment; `base` is the disk when the recording began. */
void loss_check(const struct fake_disk *disk, const struct fake_disk *base,
                const struct loss_history *story, unsigned workload);

/* Bugs, planted into the disk or into the replies. */
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
/* Plants the bug into a disk: the recorded one, or one that is recovered. */
void loss_bug_into(struct fake_disk *disk, bool recovering);

#endif
