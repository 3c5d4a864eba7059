/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client: one store, one local queue, one loop and, without own_loop, one thread with all signals
 * blocked. Connects them; decides nothing about locks.
 */
#include "face/lib/lib_internal.h"

#include "base/check.h"
#include "process/host.h"
#include "net/poller.h"
#include "wire/url_redact.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

enum { PAGE = 4096, HOST_SHOWN = 100 };

/* Its address identifies the thread. */
static _Thread_local char this_thread;

static int64_t client_now(void *owner)
{
    (void)owner;
    return host_boot_ms();
}

/* ---- admission of calls ---- */

bool client_is_forked(const struct lh_client *client)
{
    return *(volatile const unsigned char *)client->alive == 0;
}

enum lh_outcome client_admits(const struct lh_client *client, bool blocks, struct lh_report *report)
{
    if (!sized_is_valid(report))
        return LH_USAGE;
    if (client == NULL)
        return report_set(report, LH_USAGE, "usage: there is no client; open one first");
    if (client_is_forked(client))
        return report_set(report, LH_LOST,
                          "lost: this process was forked from the one that opened the client; "
                          "nothing is held here; open a client of its own");
    ASSERT(client->magic == CLIENT_MAGIC);
    const void *calling = atomic_load(&client->calling_thread);
    bool within = calling != NULL && calling == &this_thread;
    if (blocks && (within || client->closing))
        return report_set(report, LH_USAGE,
                          "usage: a blocking call within a callback of the client would wait for "
                          "itself; use its _start function, or another thread");
    return LH_OK;
}

enum lh_outcome client_admits_start(const struct lh_client *client, struct lh_report *report)
{
    enum lh_outcome outcome = client_admits(client, /* blocks= */ false, report);
    return outcome == LH_OK && client->closing ? report_set(report, LH_BUSY, CLOSING_TEXT)
                                               : outcome;
}

void client_enter_callback(struct lh_client *client)
{
    client->calling++;
    atomic_store(&client->calling_thread, &this_thread);
}

void client_leave_callback(struct lh_client *client)
{
    if (--client->calling == 0)
        atomic_store(&client->calling_thread, NULL);
}

/* ---- loop, local queue and store ---- */

static int64_t wakes_at_ms(struct lh_client *client)
{
    int64_t query_ms = query_next_ms(client);
    return query_ms < client->queue_wakes_at_ms ? query_ms : client->queue_wakes_at_ms;
}

void client_arm_timer(struct lh_client *client)
{
    loop_wake_at(client->loop, wakes_at_ms(client));
}

int64_t client_retry_after(const struct lh_client *client)
{
    return executor_retry_after(client->executor);
}

static void emit_breaker_event(struct lh_client *client)
{
    bool open = executor_counts(client->executor).breaker_open;
    if (client->breaker_open == open)
        return;
    client->breaker_open = open;
    client_emit(client, &(struct lh_event){.kind = LH_EVENT_BREAKER,
                                           .outcome = open ? LH_UNAVAILABLE : LH_OK,
                                           .key = ""});
}

static void client_on_timer(void *owner)
{
    struct lh_client *client = owner;
    int64_t now_ms = host_boot_ms();
    client->turning = true;
    if (now_ms >= client->queue_wakes_at_ms) {
        client->queue_wakes_at_ms = NEVER;
        executor_tick(client->executor);
        emit_breaker_event(client);
    }
    query_on_timer(client, now_ms);
    fast_lease_settle(client);
    client->turning = false;
    client_arm_timer(client);
}

static void local_queue_wake_at(void *owner, int64_t at_ms)
{
    struct lh_client *client = owner;
    if (client->queue_wakes_at_ms == at_ms)
        return;
    client->queue_wakes_at_ms = at_ms;
    if (!client->turning)
        client_arm_timer(client);
}

/* The first item that is posted wakes the loop; until a tick has collected it, others do not
 * (inbox.h). With own_loop items are posted in the loop's thread: none needs a wake-up that
 * lh_step() or lh_run() handles before it returns, or that the next lh_run() will handle. */
static void wake_client(void *owner)
{
    const struct lh_client *client = owner;
    if (!client->stepping && !client->runs)
        loop_wake(client->loop);
}

static void client_on_notify(void *owner, const char *key, const struct store_reply *current)
{
    struct lh_client *client = owner;
    executor_on_notify(client->executor, key, current);
}

static void step_store(struct lh_client *client)
{
    client->submitted = false;
    client->turning = true;
    client->driver->step(client->state);
    client->turning = false;
    client_arm_timer(client);
}

static bool queue_is_due(const struct lh_client *client)
{
    return host_boot_ms() >= client->queue_wakes_at_ms;
}

static void on_store_readable(void *owner)
{
    struct lh_client *client = owner;
    client->turning = true;
    if (client->store_thread != NULL) {
        store_thread_step(client->store_thread);
    } else {
        client->submitted = false;
        client->driver->step(client->state);
    }
    client->turning = false;
    if (queue_is_due(client))
        client_on_timer(client);
    else
        client_arm_timer(client);
}

/* All requests of one turn are sent together. */
static void on_turn_end(void *owner)
{
    struct lh_client *client = owner;
    if (!client->submitted)
        return;
    if (client->store_thread == NULL) {
        step_store(client);
        return;
    }
    client->submitted = false;
    store_thread_wake(client->store_thread);
}

/* Something was posted. */
static void client_on_wake(void *owner)
{
    struct lh_client *client = owner;
    client->queue_wakes_at_ms = 0;
    client_on_timer(client);
}

void client_turn(struct lh_client *client)
{
    client_on_wake(client);
    on_turn_end(client);
}

bool client_is_due(struct lh_client *client)
{
    return host_boot_ms() >= wakes_at_ms(client);
}

/* As in the loop, items that were posted before run first. */
void client_run_item(struct lh_client *client, struct inbox_item *item)
{
    loop_enter(client->loop);
    if (item == NULL && queue_is_due(client)) /* with an item the tick below does it */
        client_on_timer(client);
    client->turning = true;
    if (item != NULL)
        executor_add(client->executor, item);
    else
        client->driver->step(client->state);
    client->turning = false;
    client_turn(client);
    loop_leave(client->loop);
}

/* Most replies arrive at once. This wait ignores posted tasks and timers that include suspend, so
 * it is short; the loop itself waits for slower replies. */
bool client_poll_store(struct lh_client *client)
{
    enum { REST_MS = 10 };
    int64_t left_ms = wakes_at_ms(client) - host_boot_ms();
    return client->store_thread == NULL && client->driver->step != NULL && left_ms >= REST_MS &&
           poller_wait_fd(client->driver->fd(client->state), REST_MS);
}

/* ---- opening ---- */

const char *client_default_holder(char *out, size_t size)
{
    char host[HOST_SHOWN + 1] = "";
    if (gethostname(host, HOST_SHOWN) != 0 || host[0] == '\0')
        (void)snprintf(host, sizeof host, "host");
    host[HOST_SHOWN] = '\0';
    (void)snprintf(out, size, "%s:%ld", host, (long)getpid());
    return out;
}

bool client_is_holder(const char *name)
{
    size_t length = strnlen(name, HOLDER_MAX + 1);
    return length > 0 && length <= HOLDER_MAX && text_is_clean(name, length);
}

static const char *apply_options(struct lh_client *client, const char *url,
                                 const struct lh_open_options *given)
{
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    char own[HOLDER_MAX + 1];
    if (given != NULL && !sized_read(&options, sizeof options, given))
        return "usage: the options have a wrong size, or a member that this library does not "
               "know; initialise them with LH_OPEN_OPTIONS_INIT";
    const char *holder =
        options.holder != NULL ? options.holder : client_default_holder(own, sizeof own);
    if (!client_is_holder(holder))
        return "usage: the holder must be 1 to 128 bytes of UTF-8 without control characters";
    if (options.timeout_ms < 0 || options.timeout_ms > TTL_MAX_MS)
        return "usage: the timeout must be 0 (the default) to 24 h";
    struct text shown;
    text_init(&shown, client->url, sizeof client->url);
    url_redact(url, &shown);
    (void)snprintf(client->holder, sizeof client->holder, "%s", holder);
    client->timeout_ms = options.timeout_ms;
    client->own_loop = options.own_loop;
    client->on_event = options.on_event;
    client->event_user = options.user;
    return NULL;
}

static uint64_t draw_session(void)
{
    uint64_t number = 0;
    while (number == 0) {
        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
            number = (uint64_t)host_boot_ms() << 22 ^ (uint64_t)getpid();
    }
    return number;
}

static bool map_fork_page(struct lh_client *client)
{
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, 0, 0);
    if (page == MAP_FAILED)
        return false;
    client->alive = page;
    *client->alive = 1;
    return madvise(page, PAGE, MADV_WIPEONFORK) == 0;
}

/* NULL on success; otherwise the cause, which begins with "usage: " if the URL is wrong. */
static const char *client_open_store(struct lh_client *client, const char *url, uint64_t session,
                                     struct text *why)
{
    client->facts = store_facts_at(client->driver, url);
    if (client->timeout_ms == 0) /* a slow store has time for a second attempt */
        client->timeout_ms = 2 * client->facts.reply_timeout_ms > STORE_TIMEOUT_MS
                                 ? 2 * client->facts.reply_timeout_ms
                                 : STORE_TIMEOUT_MS;
    struct store_callbacks callbacks = {.clock = {.now_ms = client_now},
                                        .session = session,
                                        .timeout_ms = client->timeout_ms,
                                        .notice = client_on_notify,
                                        .owner = client};
    if (client->driver->waits) {
        client->store_thread = store_thread_new(client->driver, url, &callbacks, why);
        return client->store_thread != NULL ? NULL : why->bytes;
    }
    client->state = malloc(client->driver->state_size);
    if (client->state == NULL)
        return "out of memory";
    if (client->driver->open(client->state, url, &callbacks, why))
        return NULL;
    free(client->state);
    client->state = NULL;
    return why->bytes;
}

static bool client_build_layers(struct lh_client *client, uint64_t session)
{
    struct executor_callbacks callbacks = {.now_ms = client_now,
                                           .submit = client_submit,
                                           .wake_at = local_queue_wake_at,
                                           .wake = wake_client,
                                           .owner = client,
                                           .replies_at_once = client->driver->step == NULL,
                                           .facts = client->facts,
                                           .session = session,
                                           .seed = session,
                                           .failed = client_on_failure};
    client->local_queue = local_queue_new(&callbacks);
    client->executor = local_queue_executor(client->local_queue);
    /* The fast path emits no events. */
    if (client->driver == &memory_driver && client->on_event == NULL) {
        client->fast_path = fast_path_new(session);
        if (client->fast_path == NULL)
            return false;
    }
    int file = client->store_thread != NULL ? store_thread_fd(client->store_thread)
               : client->driver->fd != NULL ? client->driver->fd(client->state)
                                            : -1;
    return client->local_queue != NULL && watch_cache_init(&client->watch_cache) &&
           (file < 0 || loop_listen(client->loop, file, on_store_readable, client));
}

static void *client_thread_main(void *argument)
{
    struct lh_client *client = argument;
    loop_run(client->loop);
    return NULL;
}

static bool client_start_thread(struct lh_client *client)
{
    sigset_t all, before;
    if (client->own_loop)
        return true;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    bool runs = pthread_create(&client->thread, NULL, client_thread_main, client) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return runs;
}

/* The store first: no reply may arrive after its callers are freed. */
static void client_free(struct lh_client *client)
{
    store_thread_free(&client->store_thread);
    if (client->state != NULL) {
        client->driver->close(client->state);
        free(client->state);
    }
    local_queue_free(&client->local_queue);
    fast_path_free(&client->fast_path);
    query_free_all(client);
    watch_cache_done(&client->watch_cache);
    events_free(client);
    loop_free(&client->loop);
    if (client->alive != NULL)
        (void)munmap(client->alive, PAGE);
    free(client->source);
    client->magic = 0;
    free(client);
}

static enum lh_outcome report_open_failed(const struct lh_client *client, const char *why,
                                          struct lh_report *report)
{
    static const char blame[] = "usage: ";
    char message[LH_TEXT_SIZE];
    bool wrong = strncmp(why, blame, sizeof blame - 1) == 0;
    (void)snprintf(message, sizeof message, "%s%.100s: %s",
                   wrong ? blame : "unavailable: ", client->url,
                   wrong ? why + sizeof blame - 1 : why);
    return report_set(report, wrong ? LH_USAGE : LH_UNAVAILABLE, message);
}

/* True if the store could not be opened for lack of descriptors; it has closed its own again. */
static bool lacks_descriptors(const struct lh_client *client)
{
    enum { MOST = 16, FOR_THREAD = 2 };
    int files[MOST] = {0}, count = 0;
    int needed = client->driver->descriptors + (client->driver->waits ? FOR_THREAD : 0);
    ASSERT(needed <= MOST);
    while (count < needed) {
        int file = fcntl(loop_fd(client->loop), F_DUPFD_CLOEXEC, 0);
        if (file < 0)
            break;
        files[count++] = file;
    }
    bool lacks = count < needed;
    while (count > 0)
        (void)close(files[--count]);
    return lacks;
}

static enum lh_outcome report_no_resources(const struct lh_client *client, struct lh_report *report)
{
    char message[LH_TEXT_SIZE];
    (void)snprintf(message, sizeof message,
                   "failed: %.100s: no memory or too few file descriptors are free; close some, or "
                   "raise the limit (ulimit -n)",
                   client->url);
    return report_set(report, LH_FAILED, message);
}

static enum lh_outcome report_bad_scheme(const char *url, struct lh_report *report)
{
    char message[LH_TEXT_SIZE];
    struct text text;
    text_init(&text, message, sizeof message);
    bool planned = store_is_planned(url);
    text_add(&text, planned ? "unavailable: " : "usage: ");
    store_describe_unknown(url, &text);
    return report_set(report, planned ? LH_UNAVAILABLE : LH_USAGE, message);
}

static enum lh_outcome client_build(struct lh_client *client, const char *url,
                                    struct lh_report *report)
{
    char message[512] = "";
    struct text why;
    struct loop_callbacks callbacks = {.due = client_on_timer,
                                       .woken = client_on_wake,
                                       .after_step = on_turn_end,
                                       .owner = client};
    uint64_t session = client->session = draw_session();
    text_init(&why, message, sizeof message);
    client->loop = loop_new(&callbacks);
    if (client->loop == NULL || !map_fork_page(client))
        return report_no_resources(client, report);
    const char *trouble = client_open_store(client, url, session, &why);
    if (trouble != NULL)
        return lacks_descriptors(client) ? report_no_resources(client, report)
                                         : report_open_failed(client, trouble, report);
    if (!client_build_layers(client, session) || !client_start_thread(client))
        return report_set(report, LH_FAILED, "failed: out of memory or threads");
    return report_set(report, LH_OK, message[0] != '\0' ? message : "ok: open");
}

enum lh_outcome lh_open(const char *url, const struct lh_open_options *options,
                        struct lh_client **out, struct lh_report *report)
{
    if (!sized_is_valid(report))
        return LH_USAGE;
    if (url == NULL || out == NULL)
        return report_set(report, LH_USAGE,
                          "usage: lh_open() needs a URL and a pointer for the client");
    const struct store_driver *driver = store_find(url);
    if (driver == NULL)
        return report_bad_scheme(url, report);
    struct lh_client *client = calloc(1, sizeof *client);
    if (client == NULL)
        return report_set(report, LH_FAILED, "failed: out of memory");
    client->magic = CLIENT_MAGIC;
    client->driver = driver;
    client->queue_wakes_at_ms = NEVER;
    client->source = strdup(url);
    const char *wrong = apply_options(client, url, options);
    enum lh_outcome outcome = client->source == NULL
                                  ? report_set(report, LH_FAILED, "failed: out of memory")
                              : wrong != NULL ? report_set(report, LH_USAGE, wrong)
                                              : client_build(client, url, report);
    if (outcome != LH_OK) {
        client_free(client);
        return outcome;
    }
    *out = client;
    return LH_OK;
}

/* ---- closing ---- */

void client_stop_if_idle(struct lh_client *client)
{
    if (!client->closing || atomic_load(&client->started) > 0)
        return;
    for (struct list_node *node = client->leases.first; node != NULL; node = node->next) {
        if (LIST_ENTRY(node, struct lh_lease, node)->multi.state != MULTI_ENDED)
            return;
    }
    loop_stop(client->loop);
}

struct close_task {
    struct inbox_item task; /* first */
    struct lh_client *client;
};

static void begin_close(struct inbox_item *task)
{
    struct lh_client *client = ((struct close_task *)task)->client;
    client->closing = true;
    lease_abandon_all(client);
    client_stop_if_idle(client);
}

void lh_close(struct lh_client **client_pointer)
{
    struct lh_client *client = client_pointer != NULL ? *client_pointer : NULL;
    if (client == NULL)
        return;
    if (client_is_forked(client)) { /* it is the parent's, and its mutexes may be locked */
        *client_pointer = NULL;
        return;
    }
    if (client_admits(client, /* blocks= */ true, NULL) != LH_OK)
        return;
    struct close_task close_task = {.client = client, .task = {.run = begin_close}};
    executor_post(client->executor, &close_task.task);
    client_expect_wait(client);
    if (client->own_loop)
        loop_run(client->loop);
    else
        (void)pthread_join(client->thread, NULL);
    loop_step(client->loop, /* wait= */ false); /* tasks of the last callbacks */
    lease_orphan_all(client);
    fast_lease_orphan_all(client);
    client_free(client);
    *client_pointer = NULL;
}

int64_t lh_poll_ms(const struct lh_client *client)
{
    bool polls = client != NULL && (client->driver->capabilities & STORE_WATCHES) == 0;
    return polls ? client->facts.poll_ms : 0;
}
