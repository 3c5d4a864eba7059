/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files that make up the driver of Redis: driver.c, answer.c, ear.c, list.c … */
#ifndef LEASEHOLD_STORE_REDIS_INSIDE_H
#define LEASEHOLD_STORE_REDIS_INSIDE_H

#include "base/random.h"
#include "store/redis/link.h"
#include "store/store.h"
#include "wire/redis_names.h"

enum {
    CHANNEL_MAX = 64,
    STRANGER_SHOWN = 100,
    TOLD_SLOTS = 1024, /* keys of which it is known what was told last */
    SHOWN_SLOTS = 64,
    SCRIPT_MAX = 16 * 1024,
    TOLD_MAX = 8 * 1024, /* a longer record is not sent to those who are woken … */
    TOLD_SESSIONS = 8,   /* … nor is it when there are more of them */
};

/* script.c */
void redis_script(struct text *out);   /* at most SCRIPT_MAX with its end */
extern const char redis_script_call[]; /* the first words of every call, made already */

struct redis;
struct job;
struct listing;
struct deal;

/* A server that we know; of a plain Redis, the only one. */
struct node {
    struct node *next;
    struct redis *redis;
    struct link link;
    uint8_t index;
    bool serves;       /* a master of slots, by the last map */
    struct deal *deal; /* without scripts: of the request on its way; the others wait */
    int64_t ahead_ms;  /* of its clock before ours; 0: not known */
    struct job *first_queued, **last_queued;
};

/* What the script said. */
struct seen {
    bool holds; /* read, or written */
    bool wrote;
    bool unreadable; /* the record does not begin with a revision and a time */
    int64_t now_ms;
    struct stamp written; /* revision 0: there is no record of ours */
    const char *bytes;
    size_t length;
    bool strange; /* somebody else's value stands under the plain name … */
    const char *value;
    size_t value_length;
    int64_t rest_ms; /* … for so long; −1: without an end */
};

/* A look of our own has ended: one of both is there. The key stays until it returns. */
typedef void look_done(void *caller, const char *key, const struct seen *seen,
                       const struct link_error *error);

/* A request on its way; of the seam's user, or a look of our own. */
struct job {
    struct link_call call; /* first */
    struct redis *redis;
    struct job *next, *before; /* of all, in the order of their deadlines */
    struct job *next_queued;
    struct node *node; /* which it goes to; NULL while that is not known */
    struct link *link; /* on which it was sent; NULL while it waits */
    unsigned redirects;
    bool asking;       /* the slot is on its way there */
    bool reloaded;     /* was sent again, because the script was not there */
    bool waits_behind; /* the write takes a place behind a stranger, and ours is the first */
    bool lets_nobody;  /* the write leaves nobody who holds */
    bool breaks;       /* it breaks a stranger's hold */
    int64_t deadline_ms;
    struct store_request request;
    store_done *done; /* NULL: a look of our own … */
    void *caller;     /* … with this in its place */
    look_done *look;
    struct listing *listing; /* of a list */
    char key[];              /* of a look */
};

enum ear_state { EAR_OFF, EAR_ASKED, EAR_ON };

struct ear_channel {
    struct link_call call; /* first */
    struct redis *redis;
    bool wanted;
    enum ear_state state;
    char name[CHANNEL_MAX];
};

struct watcher {
    struct watcher *next;
    store_done *done;
    void *caller;
    bool confirmed;
    char prefix[KEY_MAX + 1];
};

/* A key that changed, being looked at. */
struct change {
    struct change *next;
    struct redis *redis;
    bool again;      /* it changed once more meanwhile … */
    uint64_t newest; /* … to this revision, or, with 0, to who knows what */
    char key[KEY_MAX + 1];
};

/* A key that we wait for and a stranger holds. */
struct stranger {
    struct stranger *next;
    struct redis *redis;
    struct net_timer look;
    char key[KEY_MAX + 1];
};

struct redis {
    uint32_t magic;
    struct store_site site;
    int64_t patience_ms;
    struct redis_url url;
    struct credentials credentials;
    struct net *net;
    struct random random;
    struct node main;  /* the first of all nodes */
    struct link ear;   /* where RESP2 does not let one connection do both */
    struct link guide; /* to a Sentinel */
    struct link_call guiding;
    unsigned turn;  /* which host is tried next */
    unsigned asked; /* Sentinels, for the connection that is being opened */
    /* Connections that were refused, one after the other; and by Sentinels, of those asked. */
    size_t refusals, guide_refusals;
    size_t node_count;
    uint8_t slots[REDIS_SLOTS]; /* the node of each, by index; 0: ask the first */
    bool mapping, mapped;
    struct link_call map_call;
    struct job *first_job, *last_job;
    struct job *first_queued, **last_queued;
    bool submitted; /* something, since the last step */
    struct net_timer overdue;
    struct ear_channel wake, changes;
    struct watcher *watchers;
    struct change *first_change;
    size_t change_count;
    struct {
        uint64_t key, revision;
    } told[TOLD_SLOTS];
    struct stranger *strangers;
    size_t stranger_count;
    struct {
        uint64_t key, revision;
    } shown[SHOWN_SLOTS]; /* keys of which the core was told that a stranger holds them */
    struct listing *listings;
    uint64_t stranger_session; /* how we know again whom we showed the core */
    char why[160];             /* of the last answer, if it was made for it */
    struct record scratch;
    char encoded[RECORD_MAX + 1];
};

/* driver.c */
/* A look of our own; false when memory is short. */
bool redis_look(struct redis *redis, const char *key, look_done *look, void *caller);
/* More has to come for this request: its deadline begins anew. */
void redis_extend(struct job *job);
/* It has had its last answer. */
void redis_forget(struct job *job);
/* Something may be sent now, or no more. */
void redis_flush(struct redis *redis);
/* Its only answer, and its end. */
void redis_end(struct job *job, const struct seen *seen, const struct link_error *error);
/* Sends it now, to its node. */
void redis_send(struct job *job);

/* nodes.c */
void nodes_init(struct redis *redis, uint64_t seed);
void nodes_done(struct redis *redis);
struct node *node_for(struct redis *redis, unsigned slot);
/* Sent when the node can be written to, or told that it cannot. */
void node_queue(struct node *node, struct job *job);
void nodes_send(struct redis *redis, bool flush);
/* True when the reply says where else to go, and the job goes there. */
bool node_redirects(struct job *job, const struct resp_item *item);
/* Learns who serves what; list_mapped() hears when that is known. */
void nodes_map(struct redis *redis);

/* sentinel.c */
void sentinel_init(struct redis *redis, uint64_t seed);
void sentinel_done(struct redis *redis);
/* As a link's locate: the Sentinels say who is the master. */
void sentinel_locate(void *owner);

/* answer.c */
/* What is to be written, and for how long others must find the plain name taken: a length from this
 * write, or until a moment. What it points to stays until the next. */
struct draft {
    const char *bytes; /* none: the record is deleted */
    size_t length;
    bool knows; /* of a stranger who holds */
    int64_t fresh_ms, until_ms;
    int64_t lives_ms; /* 0: for ever; below 0: so much longer than the plain name */
    const char *by;
};

void draft_make(struct redis *redis, struct job *job, struct draft *out);
void wake_channel(const struct redis *redis, uint64_t session, char *out);
/* The command of a swap, delete or look, as it is written. False when the key cannot be. */
bool command_send(struct redis *redis, struct job *job, struct link *link);
/* False when it makes no sense. */
bool seen_read(const struct resp_item *item, struct resp_walk *walk, struct seen *out);
/* Can this be the script's reply to that request? */
bool seen_fits(const struct job *job, const struct seen *seen);
/* Fills the answer of a request, or of a look for it; what it points to stays until the next. */
void seen_answer(struct redis *redis, const struct job *job, const char *key,
                 const struct seen *seen, struct store_answer *out);
/* The same for a look of our own, which may have met a record that cannot be read. */
void look_answer(struct redis *redis, const char *key, const struct seen *seen,
                 const struct link_error *error, struct store_answer *out);

uint64_t redis_hash_of(const char *key);

/* ear.c */
struct link *ear_of(struct redis *redis);
void ear_init(struct redis *redis);
void ear_done(struct redis *redis);
/* Is everything heard that is wanted, or can it not be? */
bool ear_is_settled(const struct redis *redis);
void ear_want(struct redis *redis, struct ear_channel *channel);
void ear_ready(struct redis *redis);
void ear_lost(struct redis *redis, const struct link_error *error);
bool ear_pushed(struct redis *redis, struct link *link, struct resp_walk *walk, size_t count);
void ear_watch(struct redis *redis, const char *prefix, store_done *done, void *caller);

/* stranger.c */
/* Who holds it is no client of ours: looks again and again, while our place is the first. */
void stranger_note(struct redis *redis, const char *key);
void stranger_done(struct redis *redis);

/* plain.c: without scripts */
/* At most one at a time on a connection. */
bool deal_begin(struct node *node, struct job *job);
void deal_free(struct deal *deal);

/* list.c */
/* The job is its own then. */
void list_begin(struct redis *redis, struct job *job);
void list_send(struct job *job, struct link *link);
void list_fail(struct job *job, const struct link_error *error);
/* With an error when it is not known who serves what. */
void list_mapped(struct redis *redis, const struct link_error *error);
void list_done(struct redis *redis);

#endif
