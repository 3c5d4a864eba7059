/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the executor: executor.c (the interface, the tick), task.c (one step of a
 * task) and send_queue.c (requests in flight).
 */
#ifndef LEASEHOLD_RUNTIME_EXECUTOR_INTERNAL_H
#define LEASEHOLD_RUNTIME_EXECUTOR_INTERNAL_H

#include "base/heap.h"
#include "runtime/breaker.h"
#include "runtime/executor.h"
#include "runtime/inbox.h"
#include "runtime/record_cache.h"

enum {
    TASKS_MAX = 1 << 20,
    REQUESTS_MAX = 1 << 16, /* queued or in flight */
    IN_FLIGHT_MAX = 512,    /* submitted without a reply; the others wait in the queue */
    TROUBLE_MAX = 256,
};

/* Commands of callers and other tasks for the next tick. */
enum task_command {
    COMMAND_START = 1,
    COMMAND_NOTIFY = 2,
    COMMAND_UPDATE = 4,
    COMMAND_RELEASE = 8
};

struct task {
    uint32_t magic;
    unsigned commands;
    bool took_over; /* its granting write removes an expired grant */
    bool silent;    /* no further callbacks */
    bool forgotten; /* during its callback; freed after it */
    struct executor *executor;
    struct executor_caller caller;
    struct list_node in_all, in_key; /* of the executor's tasks; of the entry's users */
    struct inbox_item item;          /* in the inbox while there are commands */
    struct record_cache_entry *entry;
    struct list sents;     /* its requests without a reply */
    int64_t last_reply_ms; /* time of the last reply to it */
    struct heap_node deadline, wake;
    struct lease lease;
    struct lease_options options;
    char storage[]; /* of the options */
};

/* A request with all data that must live until the reply. */
struct sent {
    struct list_node in_all;   /* without a reply */
    struct list_node in_queue; /* in a send queue, or among the answered */
    struct list_node in_task;
    struct executor *executor;
    struct task *task; /* NULL: no task needs the reply */
    uint32_t serial;
    bool urgent;                     /* a holder's */
    struct saved_reply *saved_reply; /* the reply; NULL when out of memory */
    struct store_request request;
    uint64_t storage[];
};

/* Runs in a tick once all requests of that tick were sent. */
struct executor_timer {
    struct heap_node node;
    void (*due)(struct executor_timer *timer);
};

struct executor {
    uint32_t magic;
    bool ticking, scheduled;
    int64_t now_ms; /* in a tick: read at its start and after every callback of a caller */
    struct executor_callbacks callbacks;
    struct executor_counts counts;
    struct breaker breaker;
    struct record_cache record_cache;
    struct random random;
    uint64_t number; /* of the last task */
    struct heap deadlines, wakes, timers;
    struct inbox inbox;
    struct list tasks;
    const struct task *notifying; /* the task whose callback is running */
    struct list sents;
    size_t sent_count, in_flight_count;
    struct list urgent, ordinary, answered;
    char trouble[TROUBLE_MAX];
    /* scratch */
    struct observations observations;
    struct lease_output output;
    struct record record;
    char encoded[RECORD_MAX];
};

/* In a tick the time is constant between callbacks, so that it is read seldom. */
int64_t executor_now(const struct executor *executor);
void executor_read_clock(struct executor *executor);
/* Requests a tick at once, unless one is running. */
void executor_schedule(struct executor *executor);
void executor_set_timer(struct executor *executor, struct executor_timer *timer, int64_t at_ms);

/* Notes whether others wait, from the scratch record, unless it is older than the last source. */
void executor_note_others(const struct executor *executor, struct record_cache_entry *entry,
                          const struct stamp *at);

/* send_queue.c: false if it is not sent: the breaker is open, or out of memory. */
bool send_queue_add(struct executor *executor, struct task *task);
/* Submits up to IN_FLIGHT_MAX requests. */
void send_queue_submit(struct executor *executor);
/* The task no longer needs the replies to its requests. */
void send_queue_abandon(struct task *task);
/* The first answered request, to be freed by the caller; NULL if there is none. */
struct sent *send_queue_pop_answered(struct executor *executor);
void send_queue_free(struct executor *executor, struct sent *sent);

/* task.c */
struct task *task_new(struct executor *executor, const struct lease_options *options,
                      const struct executor_caller *caller);
void task_free(struct task *task);
/* Queued in order of arrival; all commands of a task run at once. */
void task_queue_command(struct task *task, enum task_command command);
/* `saved_reply` is the store's reply, or NULL. The task may be freed afterwards. */
void task_step(struct task *task, struct event *event, const struct saved_reply *saved_reply);

#endif
