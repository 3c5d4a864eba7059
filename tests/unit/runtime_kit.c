/* SPDX-License-Identifier: Apache-2.0 */
/* See runtime_kit.h. */
#include "runtime_kit.h"

#include "store/translate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t now_ms;
struct process processes[PROCESSES];

static void *store;
static unsigned told_count;
static struct record record;

struct waiting_request {
    struct waiting_request *next;
    const struct store_request *request;
    store_done *done;
    void *caller;
};

static int64_t read_clock(void *owner)
{
    (void)owner;
    return now_ms;
}

static void set_wake(void *owner, int64_t at_ms)
{
    struct process *process = owner;
    process->wake_at_ms = at_ms;
}

struct carried {
    bool written;
    store_done *done;
    void *caller;
};

static void pass_on(void *caller, const struct store_reply *reply)
{
    struct carried *carried = caller;
    carried->written = reply->result == REPLY_OK;
    carried->done(carried->caller, reply);
}

static void wake_named(const uint64_t *named, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < PROCESSES; j++)
            if (processes[j].site.session == named[i] && processes[j].takes_notices)
                executor_on_notify(processes[j].executor, key, /* current= */ NULL);
}

static void carry(const struct store_request *request, store_done *done, void *caller)
{
    uint64_t named[WAITERS_MAX];
    char key[KEY_MAX + 1];
    size_t count = request->wake_count;
    struct carried carried = {.done = done, .caller = caller};
    if (count > 0)
        memcpy(named, request->wake, count * sizeof *named);
    (void)snprintf(key, sizeof key, "%s", request->key);
    memory_driver.submit(store, request, pass_on, &carried);
    if (carried.written)
        wake_named(named, count, key);
}

static void say_trouble(store_done *done, void *caller)
{
    done(caller, &(struct store_reply){
                     .result = REPLY_TROUBLE, .now_ms = TIME_UNKNOWN, .why = "the disk is full"});
}

static void submit(void *owner, const struct store_request *request, store_done *done, void *caller)
{
    struct process *process = owner;
    process->submitted++;
    process->reads += request->verb == VERB_STORE_READ ? 1 : 0;
    if (process->reply_mode == ANSWERS_AT_ONCE) {
        carry(request, done, caller);
    } else if (process->reply_mode == ANSWERS_TROUBLE) {
        say_trouble(done, caller);
    } else if (process->reply_mode == ANSWERS_LATER) {
        struct waiting_request *kept = malloc(sizeof *kept);
        assert_non_null(kept);
        *kept = (struct waiting_request){.request = request, .done = done, .caller = caller};
        *process->last = kept;
        process->last = &kept->next;
    }
}

static struct waiting_request *take_kept(struct process *process)
{
    struct waiting_request *kept = process->first;
    if (kept == NULL)
        return NULL;
    process->first = kept->next;
    if (process->first == NULL)
        process->last = &process->first;
    return kept;
}

bool answer_kept(struct process *process)
{
    struct waiting_request *kept = take_kept(process);
    bool any = kept != NULL;
    for (; kept != NULL; kept = take_kept(process)) {
        carry(kept->request, kept->done, kept->caller);
        free(kept);
    }
    return any;
}

void drop_kept(struct process *process)
{
    for (struct waiting_request *kept; (kept = take_kept(process)) != NULL; free(kept))
        say_trouble(kept->done, kept->caller);
}

static struct store_facts facts_of_memory(bool far)
{
    struct store_facts facts = store_facts_at(&memory_driver, "memory:");
    facts.one_clock = facts.one_clock && !far;
    return facts;
}

static int open_processes(bool desks, bool far)
{
    struct store_callbacks site = {.clock = {.now_ms = read_clock}};
    struct text no_text = {0};
    now_ms = START_MS;
    store = malloc(memory_driver.state_size);
    if (store == NULL || !memory_driver.open(store, "memory:", &site, &no_text))
        return -1;
    memset(processes, 0, sizeof processes);
    for (size_t i = 0; i < PROCESSES; i++) {
        struct process *process = &processes[i];
        process->site = (struct executor_callbacks){.now_ms = read_clock,
                                                    .submit = submit,
                                                    .wake_at = set_wake,
                                                    .owner = process,
                                                    .facts = facts_of_memory(far),
                                                    .session = 100 + i,
                                                    .seed = i};
        process->wake_at_ms = NEVER;
        process->last = &process->first;
        process->takes_notices = true;
        if (desks)
            process->queue = local_queue_new(&process->site);
        process->executor =
            desks ? local_queue_executor(process->queue) : executor_new(&process->site);
        if (process->executor == NULL)
            return -1;
    }
    return 0;
}

int open_executors(void **state)
{
    (void)state;
    return open_processes(/* desks= */ false, /* far= */ false);
}

int open_far(void **state)
{
    (void)state;
    return open_processes(/* desks= */ false, /* far= */ true);
}

int open_local_queues(void **state)
{
    (void)state;
    return open_processes(/* desks= */ true, /* far= */ false);
}

int close_processes(void **state)
{
    (void)state;
    for (size_t i = 0; i < PROCESSES; i++) {
        struct process *process = &processes[i];
        for (struct waiting_request *kept; (kept = take_kept(process)) != NULL;)
            free(kept);
        if (process->queue != NULL)
            local_queue_free(&process->queue);
        else
            executor_free(&process->executor);
    }
    memory_driver.close(store);
    free(store);
    return 0;
}

struct lease_options options_for(const char *key, bool waits)
{
    return (struct lease_options){.request = {.verb = VERB_ACQUIRE,
                                              .key = key,
                                              .holder = "us",
                                              .ttl_ms = 9000,
                                              .bound = true,
                                              .waits = waits},
                                  .wait_ms = waits ? WAIT_WITHOUT_LIMIT : 0,
                                  .timeout_ms = 10000,
                                  .kill_grace_ms = 5000};
}

struct lease_options operation_options(enum verb verb, const char *key, uint64_t token)
{
    struct lease_options options = options_for(key, /* waits= */ false);
    options.request.verb = verb;
    options.request.token = token;
    options.request.reason = "stuck";
    return options;
}

static void note(struct caller *caller, const struct task_news *news)
{
    if (news->notify == NOTIFY_RENEWED) {
        caller->renewed++;
    } else {
        caller->notify = (int)news->notify;
        caller->told_at_ms = now_ms;
        caller->told_as = ++told_count;
    }
    caller->outcome = news->outcome;
    (void)snprintf(caller->why, sizeof caller->why, "%s", news->why != NULL ? news->why : "");
    (void)snprintf(caller->holder, sizeof caller->holder, "%s",
                   news->key_info.holder != NULL ? news->key_info.holder : "");
    caller->token = news->token;
    caller->deadline_ms = news->deadline_ms;
    caller->kill_at_ms = news->kill_at_ms;
    if (caller->then != NULL)
        caller->then(caller, news);
    if (news->notify == NOTIFY_ENDED) {
        caller->task = NULL;
        caller->claim = NULL;
    }
}

static void task_told(void *owner, struct task *task, const struct task_news *news)
{
    struct caller *caller = owner;
    assert_ptr_equal(task, caller->task);
    note(caller, news);
}

static void claim_told(void *owner, struct local_waiter *claim, const struct task_news *news)
{
    struct caller *caller = owner;
    assert_ptr_equal(claim, caller->claim);
    note(caller, news);
}

bool try_to_start(struct process *process, struct caller *caller, const char *name,
                  const struct lease_options *options)
{
    caller->name = name;
    caller->process = process;
    caller->notify = -1;
    caller->renewed = 0;
    if (process->queue != NULL && options->request.verb == VERB_ACQUIRE)
        caller->claim = local_queue_acquire(
            process->queue, options,
            &(struct local_waiter_caller){.notify = claim_told, .owner = caller});
    else
        caller->task =
            executor_start(process->executor, options,
                           &(struct executor_caller){.notify = task_told, .owner = caller});
    return caller->claim != NULL || caller->task != NULL;
}

void start(struct process *process, struct caller *caller, const char *name,
           const struct lease_options *options)
{
    assert_true(try_to_start(process, caller, name, options));
}

void let_go(struct caller *caller)
{
    if (caller->claim != NULL)
        local_queue_release(caller->claim);
    else
        executor_release(caller->task);
}

void cancel(struct caller *caller)
{
    if (caller->claim != NULL)
        local_queue_cancel(caller->claim);
    else
        executor_cancel(caller->task);
    caller->claim = NULL;
    caller->task = NULL;
}

void tick(struct process *process)
{
    process->ticks++;
    executor_tick(process->executor);
}

void run_until(int64_t until_ms)
{
    for (unsigned steps = 0; steps < 100000; steps++) {
        struct process *next = &processes[0];
        for (size_t i = 1; i < PROCESSES; i++)
            if (processes[i].wake_at_ms < next->wake_at_ms)
                next = &processes[i];
        if (next->wake_at_ms > until_ms) {
            now_ms = until_ms > now_ms ? until_ms : now_ms;
            return;
        }
        now_ms = next->wake_at_ms > now_ms ? next->wake_at_ms : now_ms;
        tick(next);
    }
    fail_msg("time stands still");
}

void assert_told(const struct caller *caller, int event)
{
    assert_int_equal(caller->notify, event);
}

void assert_ended(const struct caller *caller, enum outcome outcome)
{
    assert_int_equal(caller->notify, NOTIFY_ENDED);
    assert_string_equal(outcome_name(caller->outcome), outcome_name(outcome));
}

static void load(void *caller, const struct store_reply *reply)
{
    struct event event;
    const char *why = NULL;
    translate_reply(reply, caller, &record, &event, &why);
    assert_true(event.known);
}

static void look_up(const char *key)
{
    char name[KEY_MAX + 1];
    struct store_request read = {.verb = VERB_STORE_READ, .key = key};
    (void)snprintf(name, sizeof name, "%s", key);
    memory_driver.submit(store, &read, load, name);
}

uint64_t token_in_store(const char *key)
{
    look_up(key);
    return record.grant_count > 0 ? grant_token(&record.grants[0]) : 0;
}

const struct waiter *first_waiter(const char *key)
{
    look_up(key);
    return record.waiter_count > 0 ? &record.waiters[0] : NULL;
}

size_t waiters_in_store(const char *key)
{
    look_up(key);
    return record.waiter_count;
}
