/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the files that make up the executor: executor.c (what callers see, the tick), task.c (one
 * task's step) and send_queue.c (requests on their way).
 */
#ifndef LEASEHOLD_RUNTIME_EXECUTOR_INTERNAL_H
#define LEASEHOLD_RUNTIME_EXECUTOR_INTERNAL_H

#include "base/heap.h"
#include "runtime/breaker.h"
#include "runtime/executor.h"
#include "runtime/record_cache.h"

enum {
    TASKS_MAX = 1 << 20,
    REQUESTS_MAX = 1 << 16, /* on their way, or about to be */
    IN_FLIGHT_MAX = 512,    /* submitted and not yet answered; the others wait for these */
    TROUBLE_MAX = 256,
};

/* What a caller or a neighbour wants of a task in the next tick. */
enum task_command {
    COMMAND_START = 1,
    COMMAND_NOTIFY = 2,
    COMMAND_UPDATE = 4,
    COMMAND_RELEASE = 8
};

struct task {
    uint32_t magic;
    unsigned commands;
    bool took_over; /* the write that would be its grant removes one that had run out */
    bool silent;    /* its caller hears no more of it */
    bool forgotten; /* while it is being told; freed after that */
    struct executor *executor;
    struct executor_caller caller;
    struct task *next, *before; /* of all tasks */
    struct task *next_ready, *before_ready;
    struct task *next_of_key, *before_of_key; /* see entry->first_user */
    struct record_cache_entry *entry;
    struct sent *sent;     /* its requests that are not answered */
    int64_t last_reply_ms; /* when the store last said something to it */
    struct heap_node deadline, wake;
    struct lease lease;
    struct lease_options options;
    char storage[]; /* of the options */
};

/* A request with all that must stay until it is answered. */
struct sent {
    struct sent *next, *before; /* of all that are not answered */
    struct sent *next_in_queue; /* of the outbox, or of the answered ones */
    struct sent *sibling;       /* the task's next one */
    struct executor *executor;
    struct task *task; /* NULL: nobody listens any more */
    uint32_t serial;
    bool urgent;                     /* a holder's */
    struct saved_reply *saved_reply; /* the answer; NULL when there was no memory for it */
    struct store_request request;
    uint64_t storage[];
};

struct sent_queue {
    struct sent *first, **last;
};

struct executor {
    uint32_t magic;
    bool ticking, scheduled;
    struct executor_callbacks callbacks;
    struct executor_counts counts;
    struct breaker breaker;
    struct record_cache record_cache;
    struct random random;
    uint64_t number; /* of the last task */
    struct heap deadlines, wakes;
    struct task *tasks;
    struct task *first_ready, *last_ready;
    size_t ready_count;
    const struct task *notifying; /* whose caller is being told */
    struct sent *sents;
    size_t sent_count, in_flight_count;
    struct sent_queue urgent, ordinary, answered;
    char trouble[TROUBLE_MAX];
    /* scratch */
    struct observations observations;
    struct lease_output output;
    struct record record;
    char encoded[RECORD_MAX];
};

int64_t executor_now(const struct executor *executor);
/* Wants a tick at once, when none is going on. */
void executor_schedule(struct executor *executor);

/* send_queue.c: false when it is not sent: the breaker is open, or out of memory. */
bool send_queue_add(struct executor *executor, struct task *task);
/* Hands to the store what it can take. */
void send_queue_submit(struct executor *executor);
/* Nobody listens to its requests any more. */
void send_queue_abandon(struct task *task);
void send_queue_init(struct executor *executor);
/* The first answered request, to be freed by the caller; NULL when there is none. */
struct sent *send_queue_pop_answered(struct executor *executor);
void send_queue_free(struct executor *executor, struct sent *sent);

/* task.c */
struct task *task_new(struct executor *executor, const struct lease_options *options,
                      const struct executor_caller *caller);
void task_free(struct task *task);
/* Put in the order in which they came; taken all at once. */
void task_queue_command(struct task *task, enum task_command command);
unsigned task_take_commands(struct task *task);
/* `heard` is what the store answered, or NULL. The task may be gone afterwards. */
void task_step(struct task *task, struct event *event, const struct saved_reply *saved_reply);
/* Its caller let go before anything was sent. */
void task_end_unstarted(struct task *task);

#endif
