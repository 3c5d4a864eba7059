/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between front_desk.c (what callers see, the tick, the claims) and hand_over.c (what goes on at
 * one key: who is next, what is asked of the store, who is given what it grants).
 */
#ifndef LEASEHOLD_RUNTIME_FRONT_DESK_INSIDE_H
#define LEASEHOLD_RUNTIME_FRONT_DESK_INSIDE_H

#include "base/heap.h"
#include "runtime/front_desk.h"
#include "runtime/table.h"

enum claim_wish { WISHES_ENTRY = 1, WISHES_OUT = 2, WISHES_OBLIVION = 4 };

enum claim_state {
    CLAIM_NEW,
    CLAIM_QUEUED,  /* in the key's queue; a bid may be on its way for it and others */
    CLAIM_BIDDING, /* has a bid of its own: it does not wait */
    CLAIM_HOLDING,
    CLAIM_LEAVING, /* told once its bid has ended */
};

struct claim {
    uint32_t magic;
    enum claim_state state;
    unsigned wishes;
    bool silent, told_waiting;
    bool adopts;     /* a grant that stands already */
    uint32_t passed; /* how often a later one went before: each is one step of priority */
    struct front_desk *desk;
    struct claim_caller caller;
    struct desk_key *key;
    struct bid *bid;
    struct claim *next, *before; /* in the key's queue, in order of arrival */
    struct claim *next_wishing, *before_wishing;
    struct claim *next_of_all, *before_of_all;
    struct heap_node give_up;
    int64_t entered_ms;
    const char *why_left;
    struct lease_options options;
    char words[]; /* of the options */
};

/* What the desk asks of the store: one task, for one claim after the other. */
enum bid_state { BID_ASKING, BID_HELD, BID_LOST, BID_ENDING };

struct bid {
    enum bid_state state;
    struct bid *next;
    struct desk_key *key;
    struct task *task;
    struct claim *claim; /* whom it serves now; NULL: all in the queue that it fits, or nobody */
    const struct claim *starter; /* whose words it carries; NULL when that one has left */
    bool shareable;              /* it may serve others who want the same */
    bool adopts;                 /* nobody is let in while it asks */
    int64_t deadline_ms, kill_at_ms;
    uint64_t token; /* as granted by the store */
    unsigned hand_overs;
};

/* A key that somebody wants. */
struct desk_key {
    struct table_node node;
    struct front_desk *desk;
    size_t users; /* claims and bids */
    size_t queued;
    struct claim *first, *last; /* the queue */
    struct bid *bids;
    struct bid *asking; /* the one for the queue, while it is not granted */
    char key[];
};

struct front_desk {
    uint32_t magic;
    bool ticking, closing;
    struct executor_site site;
    struct executor *executor;
    int64_t executor_at_ms; /* its next tick */
    struct table keys;
    struct heap give_ups;
    struct claim *claims;
    struct claim *first_wishing, *last_wishing;
    size_t wishing;
    struct front_desk_counts counts;
};

/* front_desk.c */
void claim_tell(struct claim *claim, const struct task_news *news);
/* Tells TASK_ENDED and frees the claim. */
void claim_end(struct claim *claim, const struct task_news *news);
void claim_end_with(struct claim *claim, enum outcome outcome, const char *why);
void desk_key_return(struct desk_key *key);

/* hand_over.c */
void desk_enter(struct claim *claim);
/* Comes in at once, with a bid of its own; false when memory is short. */
bool desk_adopt(struct claim *claim);
/* The claim's caller is done, or gives up; `why` when it only waited. */
void desk_leave(struct claim *claim, const char *why);
/* Its wait is over. */
void desk_give_up(struct claim *claim);
/* Without a word to the store. */
void desk_forget(struct claim *claim);
/* The key and all bids on it, when no claim is left. */
void desk_key_drop(struct desk_key *key);

#endif
