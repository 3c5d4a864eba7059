/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of `leasehold why`: the facts about one key, and what can be done. It changes
 * nothing: every choice is a command for people to run.
 */
#ifndef LEASEHOLD_FACE_CLI_WHY_H
#define LEASEHOLD_FACE_CLI_WHY_H

#include "face/cli/cli.h"

enum {
    WHY_CHANGES = 5,
    WHY_CHOICES = 4,
    WHY_PROCESSES = 32,
    WHY_COMMAND = 160, /* the shown part of a process's command line */
    WHY_LINE = 1024,
    WHY_FOREIGN_END = 24 * 3600 * 1000 /* a foreign lock that lasts as long, or longer */
};

/* ---- why_holder.c ---- */

enum why_liveness {
    WHY_UNKNOWN, /* it cannot be known from here */
    WHY_ALIVE,
    WHY_GONE,
    WHY_NO_PROCESS /* the lease is not bound to a process */
};

struct why_process {
    int pid, parent;
    bool is_leasehold;      /* by the name of its program */
    char state;             /* as in /proc: 'T' is stopped; 0: it does not exist, or is hidden */
    int64_t started_ago_ms; /* -1: unknown */
    char command[WHY_COMMAND];
};

struct why_holder {
    struct lh_holder holder;
    char host[LH_HOLDER_SIZE]; /* empty: unknown */
    bool is_here;              /* that host is this one */
    bool stalled;              /* each process that would renew the lease is stopped */
    enum why_liveness liveness;
    char reason[WHY_LINE]; /* of the liveness, in words */
    struct why_process processes[WHY_PROCESSES];
    size_t process_count;
};

/* Finds out about the holder with this index. False: there is none. */
bool why_find_holder(const struct lh_view *view, size_t index, struct why_holder *out);
/* Adds one more holder to `all`, which is the first holder and stands for all of them: it is gone
 * only if all are, and ends with the last one. */
void why_merge_holder(struct why_holder *all, const struct why_holder *found);
const char *why_liveness_name(enum why_liveness liveness);

/* ---- why_choices.c ---- */

struct why_choice {
    const char *name;        /* one word, for JSON */
    char command[LINE_SIZE]; /* empty: there is none */
    char risk[WHY_LINE];     /* its effect, and its risk */
};

/* Finds the operator's choices; `all` stands for the holders of the key, NULL if it is not held.
 * Returns how many choices there are, the most harmless first. */
size_t why_find_choices(const struct context *context, const struct lh_view *view,
                        const struct why_holder *all, struct why_choice out[WHY_CHOICES]);

/* ---- why_output.c ---- */

/* A change of the key that the store has kept. */
struct why_change {
    char at[32];     /* "2026-01-02T03:04:05.678Z"; empty: unknown */
    int64_t ago_ms;  /* -1: unknown */
    unsigned repeat; /* how often it was written again without a change: renewals */
    enum lh_state state;
    enum lh_kind kind;
    uint64_t token;
    uint32_t holders, waiters;
    bool broken;
    char holder[LH_HOLDER_SIZE];
    char text[WHY_LINE];
};

struct why {
    struct context *context;
    bool has_history;
    size_t change_count;
    struct why_change changes[WHY_CHANGES + 1]; /* newest first; the last one only ends the list */
};

/* Within the callback that received the view. */
void why_to_text(const struct why *why, const struct lh_view *view);
void why_to_json(const struct why *why, const struct lh_view *view);

#endif
