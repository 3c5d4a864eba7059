/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explicit-state exploration: every interleaving of a few clients and one store, up to a stated
 * bound, with the shipped core, codec and conditions. Shared by the files of the harness:
 *
 *   explore.c            the search, the command line, the report
 *   explore_scenarios.c  the clients, the store's capabilities, and the bounds
 *   explore_choices.c    the possible next steps of a world
 *   explore_world.c      the effects of the steps
 *   explore_checks.c     the checks of every write, every notification and every state
 *   explore_state.c      encoded records kept once, and the canonical hash of a world
 *
 * A world is plain data that is copied at every branch; the data that it points to never changes.
 */
#ifndef LEASEHOLD_TESTS_EXPLORE_H
#define LEASEHOLD_TESTS_EXPLORE_H

#include "store/store.h"

enum {
    CLIENTS_MAX = 3,
    OPERATOR = CLIENTS_MAX, /* the actor that runs operations */
    ACTORS_MAX = CLIENTS_MAX + 1,
    LIVES_MAX = 4,
    OPERATIONS_MAX = 4,
    MESSAGES_MAX = 12,
    REVISIONS_MAX = 128, /* of one path; a rank is a count of bits in two words */
    CHOICES_MAX = 64,
    BRIEF_MAX = 4,
};

#define BEGIN_MS ((int64_t)1000000)
#define UNTIMED  INT32_MIN

/* Scenarios */

enum operation_kind {
    OPERATION_BREAK,
    OPERATION_BREAK_NOW,
    OPERATION_CLEAR,
    OPERATION_RELEASE,
    OPERATION_RENEW
};

/* The limits of a world; events that are not listed are unlimited. */
struct bound {
    uint8_t lives;   /* acquisitions of each client */
    uint8_t lost;    /* writes and notifications that are lost, or whose sender gets a failure */
    uint8_t doubled; /* writes that arrive twice */
    uint8_t ticks;   /* times that the clock advances */
    uint8_t crashes;
    uint8_t cancels;    /* waiters that give up */
    uint8_t operations; /* of the operator */
};

struct part {
    const char *key;
    enum mode mode;
    int32_t priority;
    bool waits;
    int64_t wait_ms;
    int64_t cooldown_ms;
    bool once; /* one acquisition, regardless of the bound */
};

struct scenario {
    const char *name;
    const char *summary;
    uint8_t clients;
    struct part parts[CLIENTS_MAX];
    uint32_t limit;
    struct store_facts facts;
    int64_t lock_delay_ms;
    bool tells_dead;    /* the store reports which sessions have ended */
    bool unbound;       /* grants outlive their processes */
    bool remembers;     /* clients act on their last reply instead of reading first */
    bool loses_notices; /* every notification is lost */
    bool bare_notices;  /* notifications do not carry the record */
    bool same_name;     /* all holders have one name */
    bool pauses;        /* the clock advances while a timer is due: processes pause */
    bool troubles;      /* the sender of a lost message may also get a failure */
    uint8_t operation_count;
    enum operation_kind operations[OPERATIONS_MAX];
    struct bound test, proof;
};

extern const struct scenario scenarios[];
extern const size_t scenario_count;
extern const struct scenario *playing; /* the current one */

/* Encoded records, each kept once, with the data for the checks and the hash. */

struct mark {
    int32_t at_ms;    /* since BEGIN_MS; or UNTIMED */
    uint8_t revision; /* 0: this write */
};

struct brief_grant {
    struct mark granted, renewed;
    int32_t ttl_ms, lock_delay_ms;
    uint16_t n;
    uint8_t request, session, mode;
    bool bound, broken;
};

struct brief_place {
    struct mark offer;
    uint64_t ticket;
    int16_t rank; /* priority, and one step for each time passed over */
    uint8_t request, session, mode;
    bool bound, offered;
};

struct brief_span {
    struct mark since;
    int32_t length_ms;
};

struct brief {
    uint8_t grant_count, waiter_count, limit;
    char key[4];
    uint64_t next_ticket;
    struct brief_grant grants[BRIEF_MAX];
    struct brief_place waiters[BRIEF_MAX];
    struct brief_span cooling, delay;
};

struct page {
    uint64_t hash;
    struct brief brief;
    uint16_t length;
    char bytes[];
};

/* NULL if the bytes are not a valid record. */
const struct page *page_of(const char *bytes, size_t length);
void pages_forget(void);
size_t pages_kept(void);
/* The page's content, its marks replaced by the write that carried it; NULL: absent. */
struct brief brief_of(const struct page *page, uint64_t revision, int64_t time_ms);

/* The world */

/* A reply's view of the store, and its time. */
struct store_view {
    const struct page *page; /* NULL: absent */
    struct stamp written;
    int64_t now_ms;
    uint16_t dead; /* sessions, a bit each */
    uint8_t over;  /* grants by their position in the record, a bit each; then the two spans */
    bool outdated; /* since then an abandoned attempt has taken effect */
};

enum { OVER_COOLING = 1 << BRIEF_MAX, OVER_DELAY = 2 << BRIEF_MAX };

enum message_kind { MESSAGE_REQUEST, MESSAGE_ANSWER, MESSAGE_NOTICE };

struct message {
    enum message_kind kind;
    uint8_t actor, life;
    uint32_t serial;
    /* of a request */
    enum verb verb; /* its purpose */
    uint64_t token;
    enum store_verb store_verb;
    struct condition condition;
    const struct page *page;
    uint64_t session;
    bool bound, cools, breaks_now;
    uint8_t pokes; /* actors, a bit each */
    /* of a reply or a notification */
    enum reply_status result;
    struct store_view store_view;
};

/* The lease's observations, in a smaller array. */
struct brief_sighting {
    uint64_t offer;
    int64_t offer_since_ms;
    uint8_t count;
    struct observation observed[BRIEF_MAX + 2];
};

struct actor {
    struct lease lease;
    bool alive, started, cancelled;
    bool excused;      /* broken `now`: works until it is notified, and fencing must help */
    uint8_t life;      /* the index of the acquisition, or of the operation */
    uint8_t operation; /* of the operator: which one */
    uint8_t incarnation;
    uint64_t token;   /* of the operation */
    uint64_t granted; /* the token of this life's grant, or 0 */
    int64_t wake_at_ms;
    struct store_view heard; /* the last reply */
    bool has_heard;
    struct brief_sighting observations;
    bool has_old;
    struct message old; /* a received or late reply; not part of the state */
};

struct world {
    int64_t now_ms;
    const struct page *page; /* the store: one slot */
    struct stamp written;
    uint64_t revision;
    int32_t written_at_ms[REVISIONS_MAX]; /* the time of each revision, since BEGIN_MS */
    uint64_t first_token, last_token;
    uint16_t dead; /* sessions */
    struct bound left;
    struct actor actors[ACTORS_MAX];
    uint8_t message_count;
    struct message messages[MESSAGES_MAX];
};

enum choice_kind {
    CHOICE_START,
    CHOICE_DELIVER,
    CHOICE_LOSE,
    CHOICE_FAIL, /* lost, and its sender gets a failure */
    CHOICE_DOUBLE,
    CHOICE_TIMER,
    CHOICE_TICK,
    CHOICE_LET_GO,
    CHOICE_CRASH,
    CHOICE_OPERATION,
};

struct choice {
    enum choice_kind kind;
    uint8_t which; /* actor, message or operation */
    int64_t at_ms; /* of a tick */
};

void world_begin(struct world *world, const struct bound *bound);
size_t world_choices(const struct world *world, struct choice *out);
/* False if no step is left for any actor: the fair run, without faults, has ended. */
bool world_fair_choice(const struct world *world, struct choice *out);
const char *actor_name(uint8_t actor);
void choice_describe(const struct world *world, const struct choice *choice, struct text *out);
void world_apply(struct world *world, const struct choice *choice);
/* A repeated or late reply must change nothing: tries one, and discards the result. */
void world_probe(const struct world *world);
/* Started and not ended; holding or killed while it held; not granted yet. */
bool actor_at_work(const struct actor *actor);
bool actor_holds(const struct actor *actor);
bool actor_waits(const struct actor *actor);
uint8_t request_id(uint8_t actor, uint8_t life);
uint64_t session_of(const struct world *world, uint8_t actor);
/* The output of the readable path; NULL while searching. */
extern struct text *story;

/* Two independent hashes of the state that determines all further steps, with the bound or not. */
struct digest {
    uint64_t a, b;
};

struct digest world_digest(const struct world *world, bool with_bound);

/* Checks */

/* The first violation, or NULL; cleared before each scenario. */
extern const char *violation;

/* The kinds of events that occurred, so that no check passes untested. */
#define SEEN_LIST(X)                   \
    X(GRANTS, "grants")                \
    X(RENEWALS, "renewals")            \
    X(RELEASES, "releases")            \
    X(TAKEOVERS, "expired or dead")    \
    X(OFFERS, "offers")                \
    X(ACCEPTED, "accepted")            \
    X(LAPSED, "lapsed")                \
    X(HANDED, "granted by a release")  \
    X(CONFLICTS, "conflicts")          \
    X(STALE_ANSWERS, "stale answers")  \
    X(LOST, "told lost")               \
    X(BUSY, "told busy")               \
    X(COOLING, "told cooling")         \
    X(MISMATCH, "told mismatch")       \
    X(UNAVAILABLE, "told unavailable") \
    X(BROKEN, "broken")                \
    X(REFUSED, "stale tokens refused")

enum seen {
#define SEEN_NAME(name, summary) SEEN_##name,
    SEEN_LIST(SEEN_NAME)
#undef SEEN_NAME
        SEEN_COUNT
};

extern uint64_t seen[SEEN_COUNT];

void check_write(struct world *world, const struct brief *before, const struct brief *after,
                 const struct message *message);
void check_told(const struct world *world, const struct actor *before, const struct actor *after,
                const struct lease_output *out, const struct store_view *store_view);
void check_unmoved(const struct actor *before, const struct lease *lease,
                   const struct observations *observations, const struct lease_output *out);
void check_state(const struct world *world);
void check_that(bool holds, const char *what);
struct brief world_truth(const struct world *world);
uint64_t brief_token(const struct brief_grant *grant);
bool brief_ended(const struct world *world, const struct brief_grant *grant);
/* By its length alone. */
bool brief_expired(const struct world *world, const struct brief_grant *grant);
/* A store that judges by sessions tests a token itself: its records carry no time. */
bool session_refuses(const struct world *world, uint64_t token);
bool brief_blocks(const struct world *world, const struct brief_span *span);

#endif
