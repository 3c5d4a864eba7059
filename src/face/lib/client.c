/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client: one store, one front desk, one loop, and, unless the user has a loop of its own, one
 * thread with all signals blocked. Wires them together; decides nothing about locks.
 */
#include "face/lib/lib_inside.h"

#include "base/check.h"
#include "io/host.h"
#include "io/net.h"
#include "wire/url_shown.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

enum { PAGE = 4096, HOST_SHOWN = 100 };

/* Its address is a name of the thread. */
static _Thread_local char this_thread;

static int64_t now_of(void *owner)
{
    (void)owner;
    return host_boot_ms();
}

/* ---- who may call ---- */

bool client_is_forked(const struct lh_client *client)
{
    return *(volatile const unsigned char *)client->alive == 0;
}

enum lh_outcome client_admits(const struct lh_client *client, bool blocks, struct lh_report *report)
{
    if (client == NULL)
        return report_say(report, LH_USAGE, "usage: there is no client; open one first");
    if (client_is_forked(client))
        return report_say(report, LH_LOST,
                          "lost: this process was forked from the one that opened the client; "
                          "nothing is held here; open a client of its own");
    ASSERT(client->magic == CLIENT_MAGIC);
    const void *calling = atomic_load(&client->calling_thread);
    bool within = calling != NULL && calling == &this_thread;
    if (blocks && (within || client->closing))
        return report_say(report, LH_USAGE,
                          "usage: a blocking call within a function that the client calls would "
                          "wait for itself; start it instead, or use another thread");
    return LH_OK;
}

enum lh_outcome client_admits_start(const struct lh_client *client, struct lh_report *report)
{
    enum lh_outcome outcome = client_admits(client, /* blocks= */ false, report);
    return outcome == LH_OK && client->closing ? report_say(report, LH_BUSY, CLOSING_WORDS)
                                               : outcome;
}

void client_enter(struct lh_client *client)
{
    client->calling++;
    atomic_store(&client->calling_thread, &this_thread);
}

void client_leave(struct lh_client *client)
{
    if (--client->calling == 0)
        atomic_store(&client->calling_thread, NULL);
}

/* ---- loop, desk and store ---- */

static int64_t wakes_at_ms(struct lh_client *client)
{
    int64_t gaze_ms = gaze_next_ms(client);
    return gaze_ms < client->desk_wakes_at_ms ? gaze_ms : client->desk_wakes_at_ms;
}

void client_wake(struct lh_client *client)
{
    loop_wake_at(client->loop, wakes_at_ms(client));
}

int64_t client_retry_after(const struct lh_client *client)
{
    return executor_retry_after(front_desk_executor(client->desk));
}

static void tell_breaker(struct lh_client *client)
{
    bool open = executor_counts(front_desk_executor(client->desk)).breaker_open;
    if (client->breaker_open == open)
        return;
    client->breaker_open = open;
    client_tell(client, &(struct lh_event){.kind = LH_EVENT_BREAKER,
                                           .outcome = open ? LH_UNAVAILABLE : LH_OK,
                                           .key = ""});
}

static void on_due(void *owner)
{
    struct lh_client *client = owner;
    int64_t now_ms = host_boot_ms();
    client->turning = true;
    if (now_ms >= client->desk_wakes_at_ms) {
        client->desk_wakes_at_ms = NEVER;
        front_desk_tick(client->desk);
        tell_breaker(client);
    }
    gaze_due(client, now_ms);
    light_rest(client);
    client->turning = false;
    client_wake(client);
}

static bool is_due(const struct lh_client *client)
{
    return host_boot_ms() >= client->desk_wakes_at_ms;
}

static void wake_desk_at(void *owner, int64_t at_ms)
{
    struct lh_client *client = owner;
    if (client->desk_wakes_at_ms == at_ms)
        return;
    client->desk_wakes_at_ms = at_ms;
    if (!client->turning)
        client_wake(client);
}

static void on_notice(void *owner, const char *key, const struct store_answer *stands)
{
    struct lh_client *client = owner;
    executor_notice(front_desk_executor(client->desk), key, stands);
}

static void step_store(struct lh_client *client)
{
    client->submitted = false;
    client->turning = true;
    client->driver->step(client->state);
    client->turning = false;
    client_wake(client);
}

static void on_news(void *owner)
{
    struct lh_client *client = owner;
    if (client->beside != NULL)
        beside_step(client->beside);
    else
        step_store(client);
}

/* All that was submitted in this turn of the loop travels together. */
static void on_turned(void *owner)
{
    struct lh_client *client = owner;
    if (client->submitted)
        step_store(client);
}

void client_do(struct lh_client *client, struct loop_task *task)
{
    loop_enter(client->loop);
    /* As in the loop: what was started before comes first, with all that it brings about. */
    loop_catch_up(client->loop);
    if (is_due(client))
        on_due(client);
    client->turning = true;
    if (task != NULL)
        task->run(task);
    else
        client->driver->step(client->state);
    client->turning = false;
    if (is_due(client))
        on_due(client);
    else
        client_wake(client);
    on_turned(client);
    loop_leave(client->loop);
}

/* Most answers come at once. Nothing else wakes us here, and no clock that runs in suspend: for
 * what takes longer, the loop sleeps. */
bool client_rest(struct lh_client *client)
{
    enum { REST_MS = 10 };
    int64_t left_ms = wakes_at_ms(client) - host_boot_ms();
    return client->beside == NULL && client->driver->step != NULL && left_ms >= REST_MS &&
           net_rest(client->driver->fd(client->state), REST_MS);
}

static void submit_for_desk(void *owner, const struct store_request *request, store_done *done,
                            void *caller)
{
    client_submit(owner, request, done, caller);
}

/* ---- opening ---- */

const char *client_default_holder(char *words, size_t size)
{
    char host[HOST_SHOWN + 1] = "";
    if (gethostname(host, HOST_SHOWN) != 0 || host[0] == '\0')
        (void)snprintf(host, sizeof host, "host");
    host[HOST_SHOWN] = '\0';
    (void)snprintf(words, size, "%s:%ld", host, (long)getpid());
    return words;
}

bool client_is_holder(const char *words)
{
    size_t length = strnlen(words, HOLDER_MAX + 1);
    return length > 0 && length <= HOLDER_MAX && text_is_clean(words, length);
}

static const char *apply_options(struct lh_client *client, const char *url,
                                 const struct lh_open_options *options)
{
    static const struct lh_open_options usual = LH_OPEN_OPTIONS_INIT;
    char words[HOLDER_MAX + 1];
    if (options == NULL)
        options = &usual;
    if (options->size != sizeof *options)
        return "usage: the options are of another size; set them with LH_OPEN_OPTIONS_INIT";
    const char *holder =
        options->holder != NULL ? options->holder : client_default_holder(words, sizeof words);
    if (!client_is_holder(holder))
        return "usage: the holder must be 1 to 128 bytes of UTF-8 without control characters";
    if (options->patience_ms < 0 || options->patience_ms > TTL_MAX_MS)
        return "usage: the patience must be from 0 (the default, 10 s) to 24 h";
    struct text shown;
    text_init(&shown, client->url, sizeof client->url);
    url_show(url, &shown);
    (void)snprintf(client->holder, sizeof client->holder, "%s", holder);
    client->patience_ms = options->patience_ms > 0 ? options->patience_ms : PATIENCE_USUAL_MS;
    client->own_loop = options->own_loop;
    client->on_event = options->on_event;
    client->event_user = options->user;
    return NULL;
}

static uint64_t draw_number(void)
{
    uint64_t number = 0;
    while (number == 0) {
        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
            number = (uint64_t)host_boot_ms() << 22 ^ (uint64_t)getpid();
    }
    return number;
}

static bool mark_page(struct lh_client *client)
{
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, 0, 0);
    if (page == MAP_FAILED)
        return false;
    client->alive = page;
    *client->alive = 1;
    return madvise(page, PAGE, MADV_WIPEONFORK) == 0;
}

/* Reads NULL when it is open; otherwise why not, and whose fault it is. */
static const char *open_store(struct lh_client *client, const char *url, uint64_t session,
                              struct text *why)
{
    struct store_site site = {.clock = {.now_ms = now_of},
                              .session = session,
                              .patience_ms = client->patience_ms,
                              .notice = on_notice,
                              .owner = client};
    client->facts = store_facts_at(client->driver, url);
    if (client->driver->waits) {
        client->beside = beside_new(client->driver, url, &site, why);
        return client->beside != NULL ? NULL : why->bytes;
    }
    client->state = malloc(client->driver->state_size);
    if (client->state == NULL)
        return "memory is short";
    if (client->driver->open(client->state, url, &site, why))
        return NULL;
    free(client->state);
    client->state = NULL;
    return why->bytes;
}

static bool build_rooms(struct lh_client *client, uint64_t session)
{
    struct executor_site site = {.now_ms = now_of,
                                 .submit = submit_for_desk,
                                 .wake_at = wake_desk_at,
                                 .owner = client,
                                 .facts = client->facts,
                                 .session = session,
                                 .seed = session};
    client->desk = front_desk_new(&site);
    /* Who wants to hear of every event gets it from the desk. */
    if (client->driver == &memory_driver && client->on_event == NULL) {
        client->light = light_new(session);
        if (client->light == NULL)
            return false;
    }
    int file = client->beside != NULL       ? beside_fd(client->beside)
               : client->driver->fd != NULL ? client->driver->fd(client->state)
                                            : -1;
    return client->desk != NULL && watched_init(&client->watched) &&
           (file < 0 || loop_listen(client->loop, file, on_news, client));
}

static void *run(void *argument)
{
    struct lh_client *client = argument;
    loop_run(client->loop);
    return NULL;
}

static bool start_thread(struct lh_client *client)
{
    sigset_t all, before;
    if (client->own_loop)
        return true;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    bool runs = pthread_create(&client->thread, NULL, run, client) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return runs;
}

/* The store first: nothing must be answered any more when its callers go. */
static void take_apart(struct lh_client *client)
{
    beside_free(&client->beside);
    if (client->state != NULL) {
        client->driver->close(client->state);
        free(client->state);
    }
    front_desk_free(&client->desk);
    light_free(&client->light);
    gaze_free_all(client);
    watched_done(&client->watched);
    events_free(client);
    loop_free(&client->loop);
    if (client->alive != NULL)
        (void)munmap(client->alive, PAGE);
    client->magic = 0;
    free(client);
}

static enum lh_outcome refuse_open(const struct lh_client *client, const char *why,
                                   struct lh_report *report)
{
    static const char blame[] = "usage: ";
    char words[LH_TEXT_SIZE];
    bool wrong = strncmp(why, blame, sizeof blame - 1) == 0;
    (void)snprintf(words, sizeof words, "%s%.100s: %s",
                   wrong ? blame : "unavailable: ", client->url,
                   wrong ? why + sizeof blame - 1 : why);
    return report_say(report, wrong ? LH_USAGE : LH_UNAVAILABLE, words);
}

/* The store is not open, and what it had opened is closed again: was there too little room? */
static bool lacks_descriptors(const struct lh_client *client)
{
    enum { MOST = 16, FOR_THREAD = 2 };
    int files[MOST], count = 0;
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

static enum lh_outcome refuse_short(const struct lh_client *client, struct lh_report *report)
{
    char words[LH_TEXT_SIZE];
    (void)snprintf(words, sizeof words,
                   "failed: %.100s: no memory or too few file descriptors are free; close some, or "
                   "raise the limit (ulimit -n)",
                   client->url);
    return report_say(report, LH_FAILED, words);
}

static enum lh_outcome refuse_scheme(const char *url, struct lh_report *report)
{
    char words[LH_TEXT_SIZE];
    struct text text;
    text_init(&text, words, sizeof words);
    bool planned = store_is_planned(url);
    text_add(&text, planned ? "unavailable: " : "usage: ");
    store_describe_unknown(url, &text);
    return report_say(report, planned ? LH_UNAVAILABLE : LH_USAGE, words);
}

static enum lh_outcome build(struct lh_client *client, const char *url, struct lh_report *report)
{
    char words[512] = "";
    struct text why;
    /* Where a request waits for a disk, a call of the system more is nothing beside it. */
    struct loop_site site = {
        .due = on_due, .turned = on_turned, .owner = client, .lazy = !client->driver->waits};
    uint64_t session = client->session = draw_number();
    text_init(&why, words, sizeof words);
    client->loop = loop_new(&site);
    if (client->loop == NULL || !mark_page(client))
        return refuse_short(client, report);
    const char *trouble = open_store(client, url, session, &why);
    if (trouble != NULL)
        return lacks_descriptors(client) ? refuse_short(client, report)
                                         : refuse_open(client, trouble, report);
    if (!build_rooms(client, session) || !start_thread(client))
        return report_say(report, LH_FAILED, "failed: no memory or no thread is left");
    return report_say(report, LH_OK, words[0] != '\0' ? words : "ok: open");
}

enum lh_outcome lh_open(const char *url, const struct lh_open_options *options,
                        struct lh_client **out, struct lh_report *report)
{
    if (url == NULL || out == NULL)
        return report_say(report, LH_USAGE,
                          "usage: lh_open() needs a URL and a place for the client");
    const struct store_driver *driver = store_find(url);
    if (driver == NULL)
        return refuse_scheme(url, report);
    struct lh_client *client = calloc(1, sizeof *client);
    if (client == NULL)
        return report_say(report, LH_FAILED, "failed: memory is short");
    client->magic = CLIENT_MAGIC;
    client->driver = driver;
    client->desk_wakes_at_ms = NEVER;
    const char *wrong = apply_options(client, url, options);
    enum lh_outcome outcome =
        wrong != NULL ? report_say(report, LH_USAGE, wrong) : build(client, url, report);
    if (outcome != LH_OK) {
        take_apart(client);
        return outcome;
    }
    *out = client;
    return LH_OK;
}

/* ---- closing ---- */

void client_settle(struct lh_client *client)
{
    if (!client->closing || atomic_load(&client->started) > 0)
        return;
    for (const struct lh_lease *lease = client->leases; lease != NULL; lease = lease->next) {
        if (lease->several.state != SEVERAL_ENDED)
            return;
    }
    loop_stop(client->loop);
}

struct close_task {
    struct loop_task task; /* first */
    struct lh_client *client;
};

static void begin_close(struct loop_task *task)
{
    struct lh_client *client = ((struct close_task *)task)->client;
    client->closing = true;
    lease_abandon_all(client);
    client_settle(client);
}

void lh_close(struct lh_client **client_pointer)
{
    struct lh_client *client = client_pointer != NULL ? *client_pointer : NULL;
    if (client == NULL)
        return;
    if (client_is_forked(client)) { /* all of it is the parent's, locked by who knows whom */
        *client_pointer = NULL;
        return;
    }
    if (client_admits(client, /* blocks= */ true, NULL) != LH_OK)
        return;
    struct close_task close_task = {.client = client, .task = {.run = begin_close}};
    loop_post(client->loop, &close_task.task);
    if (client->own_loop)
        loop_run(client->loop);
    else
        (void)pthread_join(client->thread, NULL);
    loop_step(client->loop, /* wait= */ false); /* what was cancelled within the last functions */
    lease_orphan_all(client);
    light_orphan_all(client);
    take_apart(client);
    *client_pointer = NULL;
}

int lh_fd(struct lh_client *client)
{
    bool usable = client != NULL && !client_is_forked(client) && client->own_loop;
    return usable ? loop_fd(client->loop) : -1;
}

enum lh_outcome lh_step(struct lh_client *client)
{
    enum lh_outcome outcome = client_admits(client, /* blocks= */ true, NULL);
    if (outcome != LH_OK)
        return outcome;
    if (!client->own_loop)
        return LH_USAGE;
    loop_step(client->loop, /* wait= */ false);
    return LH_OK;
}
