/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes in virtual time on the shipped in-memory store, for the cases of executor_*_test.c and
 * local_queue_*_test.c. The store replies at once, later, with trouble or never, as the case says.
 * Notifications of callers are recorded, one line each: "1000 a held 1024".
 */
#ifndef LEASEHOLD_TESTS_RUNTIME_KIT_H
#define LEASEHOLD_TESTS_RUNTIME_KIT_H

#include "runtime/local_queue.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum reply_mode { ANSWERS_AT_ONCE, ANSWERS_LATER, ANSWERS_TROUBLE, ANSWERS_NEVER };

/* A client with an executor, or a local queue on one. */
struct process {
    struct executor_callbacks site;
    struct executor *executor;
    struct local_queue *queue;
    int64_t wake_at_ms;
    enum reply_mode reply_mode;
    unsigned submitted, reads; /* since it was last set to 0 */
    unsigned ticks;
    struct waiting_request *first, **last; /* ANSWERS_LATER */
    bool takes_notices;
};

/* One caller; notify is the last event, or −1. */
struct caller {
    const char *name;
    struct process *process;
    struct task *task;
    struct local_waiter *claim;
    int notify;
    unsigned renewed;
    enum outcome outcome;
    char why[64], holder[HOLDER_MAX + 1];
    uint64_t token;
    unsigned told_as; /* its position among all notified callers */
    int64_t told_at_ms, deadline_ms, kill_at_ms;
    void (*then)(struct caller *caller, const struct task_news *news); /* NULL: nothing more */
};

extern int64_t now_ms; /* of all processes and the store */

enum { START_MS = 10000, PROCESSES = 2 };
extern struct process processes[PROCESSES];

int open_executors(void **state);
int open_far(void **state); /* on a store with a clock of its own, as over a network */
int open_local_queues(void **state);
int close_processes(void **state);
#define EXECUTOR_TEST(name) cmocka_unit_test_setup_teardown(name, open_executors, close_processes)
#define FAR_TEST(name)      cmocka_unit_test_setup_teardown(name, open_far, close_processes)
#define LOCAL_QUEUE_TEST(name) \
    cmocka_unit_test_setup_teardown(name, open_local_queues, close_processes)

/* Options of a lease of 9 s: deadline after 6 s. Waits without limit, or not at all. */
struct lease_options options_for(const char *key, bool waits);
struct lease_options operation_options(enum verb verb, const char *key, uint64_t token);

/* Starts a task or a local waiter; false when out of memory. */
bool try_to_start(struct process *process, struct caller *caller, const char *name,
                  const struct lease_options *options);
/* The same, and fails the case then. */
void start(struct process *process, struct caller *caller, const char *name,
           const struct lease_options *options);
void let_go(struct caller *caller);
void cancel(struct caller *caller);
void tick(struct process *process);
/* Runs all processes until that moment, each tick at its requested time. */
void run_until(int64_t until_ms);
/* The store replies to the kept request now; false when there is none. */
bool answer_kept(struct process *process);
/* The kept request never reaches the store: trouble. */
void drop_kept(struct process *process);

void assert_told(const struct caller *caller, int event);
void assert_ended(const struct caller *caller, enum outcome outcome);
uint64_t token_in_store(const char *key);
size_t waiters_in_store(const char *key);
/* Valid until the next read of the store; NULL: no waiter. */
const struct waiter *first_waiter(const char *key);

#endif
