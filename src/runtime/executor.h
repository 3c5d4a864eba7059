/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carries any number of leases and errands of one client between the core and one store. Time, the
 * store and the wake-up are injected: it makes no system call, and a simulation links it as it is.
 * Decides nothing that lease_step() decides.
 *
 * Everything happens in executor_tick(): the other calls, and the store's answers, only queue and
 * ask for a tick. There the holders' deadlines come first, then answers, then what callers want,
 * then other timers; all requests of one tick are submitted together. Callers are told in a tick
 * only, and may call anything but executor_tick() and executor_free() from there. One thread at a
 * time.
 */
#ifndef LEASEHOLD_RUNTIME_EXECUTOR_H
#define LEASEHOLD_RUNTIME_EXECUTOR_H

#include "store/store.h"

struct executor;
struct task; /* a lease or an errand; gone once its caller was told TASK_ENDED */

/* One step of the core, for those who write down what happens; it must call nothing here. */
struct executor_step {
    const struct lease *before, *after;
    const struct event *event;
    const struct lease_output *output;
    const struct record *record; /* after the step */
    const char *trace;           /* the core's line; empty when nothing moved */
};

typedef void executor_watcher(void *owner, const struct executor_step *step);

/* A request that failed, or could not be sent, and will be repeated. */
struct executor_failure {
    const char *key;
    uint64_t token; /* of the lease that is held, or 0 */
    bool renews;    /* that lease */
    enum reply_status reply;
    int64_t took_ms;
};

struct executor_callbacks {
    int64_t (*now_ms)(void *owner); /* a clock that also runs in suspend */
    /* Queues it in the store, which the owner steps; an answer may also come within the call. */
    void (*submit)(void *owner, const struct store_request *request, store_done *done,
                   void *caller);
    /* Wants a tick then; the last call counts, NEVER means none. */
    void (*wake_at)(void *owner, int64_t at_ms);
    void *owner;
    struct store_facts facts;
    uint64_t session;
    uint64_t seed;
    executor_watcher *watcher; /* NULL: nobody watches */
    /* Called in a tick, for metrics; NULL: nobody counts. */
    void (*failed)(void *owner, const struct executor_failure *failure);
};

enum task_event {
    TASK_WAITING, /* has a place in line, at most once */
    TASK_HELD,
    TASK_RENEWED, /* the deadline moved */
    TASK_LOST,    /* the work must have stopped by the kill time; then let go */
    TASK_ENDED,   /* with its outcome; the last thing that is told */
};

/* Valid until the callback returns. */
struct task_news {
    enum task_event event;
    enum outcome outcome; /* TASK_ENDED */
    const char *why;      /* NULL or a few words */
    const char *trouble;  /* NULL, or what the store last said about its trouble */
    uint64_t token;       /* while held or lost */
    bool took_over;       /* TASK_HELD: from a holder that was dead, or had run out */
    int64_t deadline_ms, kill_at_ms;
    struct key_info
        key_info; /* who stands in the way, since when, for how long; free when unknown … */
    const struct record *record; /* … and all that stands there, NULL when nothing was heard */
    struct stamp at;
};

struct executor_caller {
    void (*notify)(void *owner, struct task *task, const struct task_news *news);
    void *owner;
};

/* NULL when out of memory. The facts and the session are the executor's for all its leases. */
struct executor *executor_new(const struct executor_callbacks *callbacks);
/* Says nothing to anybody. The store is closed, or has answered everything. NULL is fine. */
void executor_free(struct executor **executor);

/*
 * VERB_ACQUIRE makes a lease, any other verb an errand. The options are copied, with all their
 * words; store and session are filled in, and so is the request id when it is NULL. The caller has
 * asked request_broken(). NULL when out of memory or there are too many tasks.
 */
struct task *executor_start(struct executor *executor, const struct lease_options *options,
                            const struct executor_caller *caller);
/* Gives up waiting, is done, or, after TASK_LOST, has stopped. TASK_ENDED follows. */
void executor_release(struct task *task);
/* When it lets go, no cooldown begins. */
void executor_drop_cooldown(struct task *task);
/* As executor_release(), but the caller hears no more of it. The task must not be used again. */
void executor_cancel(struct task *task);
/* Without a word to the store: what stands there is left behind. Nothing more is told. */
void executor_forget(struct task *task);
/* Another process's write named us: the key must be looked at, unless it comes with what stands
 * there (NULL: it does not). A hint, may be lost, doubled or old. Without a record it is not for
 * changes that a watch tells, since our own are among them: a holder would renew without end. */
void executor_on_notify(struct executor *executor, const char *key,
                        const struct store_reply *stands);
/* What a watch tells, with its key and the record that stands there; may be old. */
void executor_on_change(struct executor *executor, const struct store_reply *reply);
void executor_tick(struct executor *executor);

/* Held at this moment: granted, and the deadline is ahead. */
bool executor_holds(const struct task *task);
/* The store is in trouble with what this task asked, or owes it a word and said none after that. */
bool executor_in_trouble(const struct task *task, int64_t since_ms);
/* Until when the answer to a write that would be the grant is awaited; NEVER when none is on its
 * way, or the store is in trouble. */
int64_t executor_grant_due(const struct task *task);
/* Somebody of another process is in line for the task's key, as far as this one has heard. */
bool executor_others_wait(const struct task *task);
const struct lease_options *executor_options(const struct task *task);
/* The copy of what was last heard of the key, until the next call; NULL when there is none. */
const struct record *executor_cached_record(struct executor *executor, const char *key,
                                            struct stamp *out_at);

/* The same as the store said it, until anything more is heard. */
const struct store_reply *executor_last_reply(const struct executor *executor, const char *key);

struct executor_counts {
    uint64_t requests;  /* sent to the store … */
    uint64_t refused;   /* … and not, by the breaker or for lack of memory */
    uint64_t conflicts; /* among the answers */
    uint64_t troubles;  /* among the answers, or none in time */
    uint64_t renewals, lost;
    uint64_t tasks, copies, copy_bytes; /* at this moment */
    bool breaker_open;
};

/* For so long the breaker lets nobody through who holds nothing; -1: somebody may try. */
int64_t executor_retry_after(const struct executor *executor);
struct executor_counts executor_counts(const struct executor *executor);

#endif
