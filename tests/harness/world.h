/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small world in virtual time: actors (processes with a lease on the shipped core), one store
 * (the shipped in-memory driver) and a network between them that loses, duplicates, delays and
 * reorders messages. Everything follows from the seed. oracle.h checks the invariants on every
 * step; a script (simulation, story) decides what the actors do.
 */
#ifndef LEASEHOLD_TESTS_WORLD_H
#define LEASEHOLD_TESTS_WORLD_H

#include "session_judge.h"

#include "base/random.h"
#include "store/translate.h"

#include <stdio.h>

enum {
    ACTORS_MAX = 24,
    KEYS_MAX = 40,
    NUMBERS_MAX = 8192,
    TOKENS_MAX = 4,
    IDS_MAX = 16384, /* a power of two, above NUMBERS_MAX */
    ORDER_STEP = 64  /* between two grants of the store; hand-offs count in between */
};

/* Chances are in 1/10,000. */
struct faults {
    unsigned lose_request, lose_answer, doubled, slow, lose_notice;
    int64_t least_ms, latency_ms, slow_ms; /* each is added to the previous one, at random */
};

struct world_rules {
    struct store_facts facts;
    bool knows_sessions;   /* the store reports dead processes */
    bool keeps_copies;     /* a lease starts with its process's last reply for the key */
    bool watches;          /* all actors are notified, with the record; else only the named ones */
    bool names_collide;    /* two keys share one name in the store */
    int64_t tick_ms;       /* resolution of the times in replies */
    int64_t fastest;       /* clock rate of any actor, in thousandths */
    bool overlaps_allowed; /* clocks differ so much that only fencing helps */
};

struct counts {
    uint64_t operations, grants, renewals, expiries, takeovers, offers, passed_on, waits;
    uint64_t returned;    /* to its place, after its first offer was taken over */
    uint64_t passed_live; /* offers passed on from a waiter that could have accepted */
    uint64_t lost_requests, lost_answers, doubled, slow, lost_notices, pauses, crashes, outages;
    uint64_t raises; /* of the epoch */
    uint64_t told_lost, stale_attempts, stale_accepted, overlaps, breaks, cooldowns, histories;
    uint64_t steps, unavailable, ghosts, undecided;
    uint64_t claims, deeds, polls, advances, events, full; /* of ids and watermarks … */
    uint64_t running, told_done, retaken, abandoned, mismatches, refused_advances, refused_tokens;
    uint64_t beats, read_renewals; /* of a store that renews by session */
    uint64_t hand_overs, local_waits, known_busy, cancels, away; /* of a local queue */
};

/* Faults of the next message, requested by a story. */
struct next_faults {
    bool lose_request, lose_answer, double_request, double_answer;
    int64_t hold_request_ms, hold_answer_ms, hold_notice_ms;
    bool lose_notices; /* all, from then on */
};

/* The state of an actor that is one of several callers of a local queue. */
struct caller {
    struct world *world;
    struct local_waiter *claim;
    bool named;              /* has its own request id: shares no grant */
    bool entering;           /* its call has not returned */
    bool waiting;            /* neither held nor refused yet … */
    bool gave_up;            /* … and has cancelled … */
    bool paused;             /* … or is away: it keeps its place and gets nothing */
    uint64_t arrived;        /* the order of the requests */
    uint32_t passed;         /* how often a later one was served first */
    uint64_t answers, turns; /* those of heard_of at its request … */
    bool found_taken;        /* … and another caller of its process held the key */
};

/* A process's view of a key. */
struct heard_of {
    uint64_t revision;
    bool outsiders;          /* a waiter of another process is queued */
    uint64_t answers, turns; /* numbers of replies, and of local holders */
};

struct actor {
    size_t index;
    char name[8];
    bool alive, paused;
    uint64_t session;
    int64_t offset_ms, resumes_at_ms, asleep_ms;
    int64_t rate; /* thousandths: the rate of its clock relative to the store's */
    bool busy;    /* has a lease that has not ended */
    struct lease lease;
    struct lease_options options;
    struct store_facts facts; /* the world's, with its own poll interval … */
    int64_t poll_ms;          /* … unless this is 0 */
    struct observations sightings[KEYS_MAX];
    struct next_faults next_faults;
    char holder[16], request[24];
    char repeats[24]; /* a story: the request id of the next request; empty: a new one */
    uint32_t number;  /* of the lease; old messages carry an older one */
    size_t key;
    int64_t began_ms; /* global */
    uint64_t timer;   /* generation */
    bool answered;    /* this lease has had a reply */
    int64_t alive_ms; /* when its last confirmed heartbeat was sent, by its clock */
    /* the last reply */
    bool known;
    size_t known_key;
    struct store_reply heard; /* its bytes are owned by the actor */
    char *bytes;
    /* its work */
    bool inside, lost;
    uint64_t token;
    uint32_t order;
    uint32_t grant;        /* the acquisition of the grant that it holds */
    struct runner *runner; /* with world.on_executor */
    uint32_t ticket;       /* of its last request there */
    struct actor *process; /* a local caller's process; NULL: the actor is a process … */
    bool has_callers;      /* … with callers */
    struct caller caller;
    struct heard_of heard_of[KEYS_MAX]; /* of a process with a local queue */
};

struct world;
typedef void script_told(struct world *world, struct actor *actor, const struct lease_output *out);
typedef void script_event(struct world *world, struct actor *actor, int what, uint64_t value);

/* The oracle's state of each lease, by number. */
struct acquisition {
    size_t key;
    enum verb verb; /* of the lease, or of the operation */
    int32_t priority;
    bool bound;
    int64_t ttl_ms, lock_delay_ms;
    uint64_t operation_token; /* renewed or released by an operation */
    /* The store's grants to it, the newest last: a ghost may follow the one that it received. */
    size_t grant_count;
    uint64_t tokens[TOKENS_MAX];
    uint32_t orders[TOKENS_MAX]; /* their positions among all grants of the key */
    bool did;                    /* it did an id, or moved a watermark, in the store … */
    bool said;                   /* … or the stored result is its own */
    uint32_t word;               /* the result that it writes */
    int64_t expected;            /* advance: the expected watermark, -1 for none */
    char payload[8];
    bool taken_away; /* by `break --now`, or by another client with its token */
    size_t writes_in_flight;
    bool told_waiting;
    uint64_t ticket;  /* that it had before it was passed over … */
    bool passed_over; /* … and its first offer was taken over; until it returns */
    /* With a local queue, whose requests have ids of the executor. */
    uint64_t session;
    enum mode mode;
    uint32_t limit;
    int64_t cooldown_ms, deadline_ms, kill_at_ms, heard_ms;
    bool answered;
    bool stands;     /* queued, releasing or backing off, without store failures */
    uint32_t served; /* number of callers that held by its grant */
};

/* The owner of a request id, by a hash of its text. */
struct known_id {
    uint64_t hash;
    uint32_t number;
};

struct key_truth {
    const char *key;
    uint64_t top_token;   /* highest ever granted */
    uint32_t grant_order; /* of the grants, in the store's order */
    uint64_t guard_token; /* the highest that the guarded resource has received */
    uint32_t guard_order;
    int64_t done_ms, keep_ms, until; /* of an id: when it was done, and its window */
    int64_t payload_ms;              /* since when it has this payload, as written */
    char payload[PAYLOAD_MAX + 1];
};

struct world {
    struct random random;
    int64_t now_ms;
    unsigned steps_here; /* since time last moved */
    struct world_rules rules;
    struct faults faults;
    bool store_down;
    bool on_executor;  /* actors run their leases on the shipped executor */
    uint64_t arrivals; /* in local queues */
    size_t actor_count, key_count;
    struct actor actors[ACTORS_MAX];
    struct key_truth keys[KEYS_MAX];
    void *store;
    struct counts *counts;
    script_told *notify;
    script_event *event;
    void *script;      /* the script's own */
    int64_t watermark; /* the highest that was stored */
    /* True if there is an unhandled event at or before this position. NULL: no events. */
    bool (*unhandled)(struct world *world, int64_t position);
    FILE *trace;             /* NULL: no trace */
    struct history *history; /* NULL: not recorded */
    uint32_t next_number;
    uint64_t next_session;
    struct acquisition acquisitions[NUMBERS_MAX];
    struct known_id ids[IDS_MAX];
    struct session_life sessions[NUMBERS_MAX]; /* with heartbeats */
    bool dead_session[NUMBERS_MAX];
    uint64_t dead[NUMBERS_MAX];   /* the same as a list, for the store's replies … */
    int64_t died_ms[NUMBERS_MAX]; /* … and when each ended */
    size_t dead_count;
    struct heap *heap;
    char violation[512];
    /* scratch */
    struct record record, before, after;
    struct session_judge judge; /* with JUDGE_SESSION */
    struct lease_output output;
    char encoded[RECORD_MAX];
};

void world_init(struct world *world, uint64_t seed, struct counts *counts);
/* The store renews by session: JUDGE_SESSION, with this TTL for all bound grants. */
void world_use_heartbeats(struct world *world, int64_t ttl_ms);
/* The actor's process sends one, if it holds something. */
void actor_beat(struct world *world, struct actor *actor);
/* A new, empty store; its URL limits the number of ids. */
void world_open_store(struct world *world, const char *url);
void world_done(struct world *world);
/* Runs until that time, the end of all events, or a violation. */
void world_run(struct world *world, int64_t until_ms);
bool world_idle(const struct world *world);

/* A script's own event: `event` is called with it at that time or, if the actor is paused and
 * `what` is not negative, when it resumes. */
void world_plan(struct world *world, struct actor *actor, int64_t at_ms, int what, uint64_t value);
int64_t actor_clock(const struct world *world, const struct actor *actor);
/* The first moment at which the actor's clock has that time. */
int64_t actor_moment(const struct world *world, const struct actor *actor, int64_t clock_ms);

struct actor *world_add_actor(struct world *world, const char *name);
/* One of several callers in `process`, which must be on the executor and then makes no requests
 * itself. A fault of one of them affects the whole process. */
struct actor *world_add_caller(struct world *world, struct actor *process, const char *name);
bool actor_same_process(const struct actor *a, const struct actor *b);
/* The caller has filled options (except holder, request, session) and key. */
void actor_start(struct world *world, struct actor *actor);
void actor_let_go(struct world *world, struct actor *actor);
/* A local caller cancels; its grant is released … */
void actor_cancel(struct world *world, struct actor *actor);
/* A caller of a local queue goes away for that long, keeps its place, and gets nothing meanwhile;
 * its script passes on the event CALLER_RETURNS, with that value. */
void actor_stay_away(struct world *world, struct actor *actor, int64_t for_ms);
void actor_return(struct world *world, struct actor *actor, uint64_t value);
enum { CALLER_RETURNS = 1000 };
/* … or, for any actor, left in the store. */
void actor_forget(struct world *world, struct actor *actor);
void actor_crash(struct world *world, struct actor *actor);
void actor_revive(struct world *world, struct actor *actor);
void actor_pause(struct world *world, struct actor *actor, int64_t until_ms);
void actor_resume(struct world *world, struct actor *actor);
/* A write to the guarded resource with the token of the actor's grant; arrives later. */
void actor_write(struct world *world, struct actor *actor, int64_t delay_ms);

bool chance(struct world *world, unsigned in_ten_thousand);
void world_say(struct world *world, const char *who, const char *what);

#endif
