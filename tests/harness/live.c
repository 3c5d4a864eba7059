/* SPDX-License-Identifier: Apache-2.0 */
/* See live.h. Replies are copied in the store's callback and handled after it has returned. */
#include "live.h"

#include "base/check.h"
#include "process/host.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMED_MAX = 1024, TROUBLE_MAX = 256 };

/* A request in flight, with all data that must stay until its reply. */
struct sent {
    struct sent *next;
    struct live *live;
    uint32_t number, serial;
    struct store_request request;
    char key[KEY_MAX + 1];
    char holder[HOLDER_MAX + 1], request_id[REQUEST_MAX + 1]; /* of the summary */
    uint64_t wake[WAITERS_MAX];
    char bytes[RECORD_MAX];
};

struct live {
    const struct store_driver *driver;
    void *store;
    uint64_t session;
    int64_t timeout_ms;
    struct store_facts facts;
    struct live_counts counts;
    live_watcher *watcher;
    void *owner;
    struct sent *sent;
    bool unsent; /* submitted, without a step since */
    /* the lease */
    uint32_t number;
    bool busy;
    struct lease lease;
    struct lease_options options;
    struct observations observations;
    char key[KEY_MAX + 1], holder[24], request[48];
    int64_t wake_at_ms;
    enum lease_notify notify;
    enum outcome outcome;
    /* received, not handled yet */
    bool answered, noticed;
    bool tells; /* the notification carried the record */
    uint32_t answered_serial;
    /* the last reply for the key */
    bool known;
    struct store_reply heard;
    uint64_t dead[NAMED_MAX], ended[NAMED_MAX];
    char trouble[TROUBLE_MAX];
    char bytes[RECORD_MAX];
    /* scratch */
    struct record record;
    struct lease_output output;
};

int64_t live_now_ms(void)
{
    return host_boot_ms();
}

static int64_t now_of(void *owner)
{
    (void)owner;
    return live_now_ms();
}

static size_t copy_named(uint64_t *to, const uint64_t *from, size_t count)
{
    size_t copied = 0;
    for (; copied < count && copied < NAMED_MAX; copied++)
        to[copied] = from[copied];
    return copied;
}

static void remember(struct live *live, const struct store_reply *reply)
{
    live->known = reply->result == REPLY_OK || reply->result == REPLY_CONFLICT;
    live->heard = *reply;
    live->counts.conflicts += reply->result == REPLY_CONFLICT ? 1 : 0;
    live->counts.troubles += reply->result == REPLY_TROUBLE ? 1 : 0;
    if (reply->result == REPLY_TROUBLE)
        (void)snprintf(live->trouble, sizeof live->trouble, "%s",
                       reply->why != NULL ? reply->why : "");
    live->heard.why = live->trouble;
    live->heard.dead_sessions = live->dead;
    live->heard.dead_count = copy_named(live->dead, reply->dead_sessions, reply->dead_count);
    live->heard.ended_tokens = live->ended;
    live->heard.ended_count = copy_named(live->ended, reply->ended_tokens, reply->ended_count);
    if (!live->known || !reply->present)
        return;
    ASSERT(reply->length <= sizeof live->bytes);
    memcpy(live->bytes, reply->bytes, reply->length);
    live->heard.bytes = live->bytes;
}

/* The record of a notification counts unless a reply is received before it is handled. */
static void take_notice(void *owner, const char *key, const struct store_reply *stands)
{
    struct live *live = owner;
    bool ours = live->busy && strcmp(key, live->key) == 0;
    live->counts.notices++;
    live->counts.idle += ours ? 0 : 1;
    live->noticed = live->noticed || ours;
    if (ours)
        live->tells = stands != NULL && !live->answered;
    if (ours && live->tells)
        remember(live, stands);
}

/* A reply to an abandoned request is dropped, as the core would do. */
static void receive(void *caller, const struct store_reply *reply)
{
    struct sent *sent = caller;
    struct live *live = sent->live;
    struct sent **at = &live->sent;
    while (*at != sent)
        at = &(*at)->next;
    *at = sent->next;
    if (live->busy && sent->number == live->number && sent->serial == live->lease.serial) {
        remember(live, reply);
        live->answered = true;
        live->tells = false;
        live->answered_serial = sent->serial;
    }
    free(sent);
}

static void send_request(struct live *live)
{
    struct sent *sent = malloc(sizeof *sent);
    if (sent == NULL)
        abort();
    translate_request(&live->lease, &live->output, &live->record, sent->bytes, sizeof sent->bytes,
                      &sent->request);
    sent->live = live;
    sent->number = live->number;
    sent->serial = live->output.serial;
    memcpy(sent->key, live->key, sizeof sent->key);
    sent->request.key = sent->key;
    if (sent->request.wake_count > 0)
        memcpy(sent->wake, live->output.wake, sent->request.wake_count * sizeof sent->wake[0]);
    sent->request.wake = sent->wake;
    if (sent->request.length > 0) {
        text_copy(sent->holder, sizeof sent->holder, sent->request.summary.holder);
        text_copy(sent->request_id, sizeof sent->request_id, sent->request.summary.request);
        sent->request.summary.holder = sent->holder;
        sent->request.summary.request = sent->request_id;
    }
    sent->next = live->sent;
    live->sent = sent;
    live->counts.requests++;
    live->unsent = true;
    live->driver->submit(live->store, &sent->request, receive, sent);
}

static void recall(struct live *live, struct event *event)
{
    const char *why = NULL;
    struct event filled = *event;
    if (!live->known && event->kind != EVENT_REPLY)
        return;
    translate_reply(&live->heard, live->key, &live->record, &filled, &why);
    event->known = filled.known;
    event->at = filled.at;
    if (event->kind == EVENT_REPLY)
        event->reply = filled.reply;
    if (why != NULL)
        (void)snprintf(live->trouble, sizeof live->trouble, "%s", why);
}

static void step(struct live *live, enum event_kind kind)
{
    struct event event = {.kind = kind, .now_ms = live_now_ms(), .serial = live->answered_serial};
    struct lease before = live->lease;
    recall(live, &event);
    lease_step(&live->lease, &event, &live->record, &live->output, /* trace= */ NULL);
    const struct lease_output *out = &live->output;
    live->wake_at_ms = out->wake_at_ms;
    if (kind == EVENT_TIMER && before.state == LEASE_WAITING && out->action == ACTION_READ)
        live->counts.looks++;
    if (out->notify != NOTIFY_NONE) {
        live->notify = out->notify;
        live->outcome = out->outcome;
    }
    if (live->lease.state == LEASE_ENDED)
        live->busy = false;
    if (live->watcher != NULL)
        live->watcher(live->owner, &(struct live_step){.before = &before,
                                                       .after = &live->lease,
                                                       .event = &event,
                                                       .output = out,
                                                       .record = &live->record,
                                                       .heard = live->known ? &live->heard : NULL});
    if (out->action != ACTION_NONE)
        send_request(live);
}

/* Steps the store after a submit; otherwise polls until the store is readable or the time. */
static void turn_to_store(struct live *live, int64_t until_ms)
{
    const struct store_driver *driver = live->driver;
    if (live->unsent && driver->step != NULL) {
        live->unsent = false;
        driver->step(live->store);
        return;
    }
    int64_t length_ms = until_ms == NEVER ? INT32_MAX : until_ms - live_now_ms();
    int timeout = length_ms < 0 ? 0 : length_ms > INT32_MAX ? INT32_MAX : (int)length_ms;
    struct pollfd news = {.fd = driver->fd != NULL ? driver->fd(live->store) : -1,
                          .events = POLLIN};
    if (poll(&news, news.fd >= 0 ? 1 : 0, timeout) > 0 && driver->step != NULL) {
        /* While a request is in flight the wake-up may be its reply. */
        live->counts.wakes += live->sent == NULL ? 1 : 0;
        driver->step(live->store);
    }
}

/* After any wake-up the core checks the holder's deadline first. */
static void turn(struct live *live, int64_t until_ms)
{
    if (live->busy && live->answered) {
        live->answered = false;
        step(live, EVENT_REPLY);
    } else if (live->busy && live->noticed) {
        live->known = live->known && live->tells;
        live->noticed = live->tells = false;
        step(live, EVENT_NOTICE);
    } else if (live->busy && live_now_ms() >= live->wake_at_ms) {
        step(live, EVENT_TIMER);
    } else {
        bool sooner = live->busy && live->wake_at_ms < until_ms;
        turn_to_store(live, sooner ? live->wake_at_ms : until_ms);
    }
}

/* Runs until the caller is notified; the start of a wait does not count. */
static enum lease_notify await(struct live *live, int64_t until_ms)
{
    while (live->notify == NOTIFY_NONE || live->notify == NOTIFY_WAITING) {
        if (live_now_ms() >= until_ms)
            return NOTIFY_NONE;
        turn(live, until_ms);
    }
    enum lease_notify notify = live->notify;
    live->notify = NOTIFY_NONE;
    return notify;
}

static void begin(struct live *live, const char *key)
{
    struct request *request = &live->options.request;
    ASSERT(!live->busy);
    if (strcmp(key, live->key) != 0) {
        live->known = false;
        memset(&live->observations, 0, sizeof live->observations);
        text_copy(live->key, sizeof live->key, key);
    }
    live->number++;
    (void)snprintf(live->request, sizeof live->request, "%016" PRIx64 "-%" PRIu32, live->session,
                   live->number);
    request->key = live->key;
    request->holder = live->holder;
    request->request = live->request;
    request->session = live->session;
    live->options.facts = &live->facts;
    live->options.timeout_ms = live->timeout_ms;
    live->options.kill_grace_ms = 5000;
    live->busy = true;
    live->answered = live->noticed = false;
    live->notify = NOTIFY_NONE;
    lease_init(&live->lease, &live->options, &live->observations, live->session + live->number);
    step(live, EVENT_START);
}

static int64_t or_usual(int64_t wished, int64_t usual)
{
    return wished != 0 ? wished : usual;
}

enum outcome live_acquire(struct live *live, const struct live_request *wanted)
{
    live->options =
        (struct lease_options){.request = {.verb = VERB_ACQUIRE,
                                           .ttl_ms = or_usual(wanted->ttl_ms, live->facts.ttl_ms),
                                           .waits = wanted->wait_ms != 0,
                                           .bound = wanted->bound},
                               .wait_ms = wanted->wait_ms,
                               .cooldown_ms = wanted->cooldown_ms};
    live->facts.poll_ms = or_usual(wanted->poll_ms, live->driver->facts.poll_ms);
    begin(live, wanted->key);
    enum lease_notify notify = await(live, NEVER);
    ASSERT(notify == NOTIFY_HELD || notify == NOTIFY_ENDED);
    return notify == NOTIFY_HELD ? OUTCOME_OK : live->outcome;
}

bool live_work(struct live *live, int64_t length_ms)
{
    int64_t until_ms = live_now_ms() + length_ms;
    if (live->lease.state == LEASE_LOST)
        return false;
    enum lease_notify notify = await(live, until_ms);
    ASSERT(notify == NOTIFY_NONE || notify == NOTIFY_LOST);
    return notify == NOTIFY_NONE && lease_held(&live->lease, live_now_ms());
}

enum outcome live_release(struct live *live)
{
    live->notify = NOTIFY_NONE;
    step(live, EVENT_RELEASE);
    enum lease_notify notify = await(live, NEVER);
    if (notify == NOTIFY_LOST) /* at the last moment; the release goes on */
        notify = await(live, NEVER);
    ASSERT(notify == NOTIFY_ENDED);
    return live->outcome;
}

void live_forget(struct live *live)
{
    live->busy = false;
    live->known = false;
}

enum outcome live_verb(struct live *live, enum verb verb, const char *key, uint64_t token,
                       int64_t ttl_ms)
{
    live->options =
        (struct lease_options){.request = {.verb = verb,
                                           .token = token,
                                           .ttl_ms = or_usual(ttl_ms, live->facts.ttl_ms),
                                           .now = verb == VERB_BREAK,
                                           .reason = "a test"}};
    begin(live, key);
    (void)await(live, NEVER);
    return live->outcome;
}

struct live *live_open(const struct store_driver *driver, const char *url, uint64_t session,
                       int64_t timeout_ms, struct text *why)
{
    struct live *live = calloc(1, sizeof *live);
    void *store = calloc(1, driver->state_size);
    if (live == NULL || store == NULL)
        abort();
    *live = (struct live){.driver = driver,
                          .store = store,
                          .session = session,
                          .timeout_ms = timeout_ms,
                          .facts = store_facts_at(driver, url)};
    (void)snprintf(live->holder, sizeof live->holder, "%016" PRIx64, session);
    struct store_callbacks site = {.clock = {.now_ms = now_of},
                                   .session = session,
                                   .timeout_ms = timeout_ms,
                                   .notice = take_notice,
                                   .owner = live};
    if (driver->open(store, url, &site, why))
        return live;
    free(store);
    free(live);
    return NULL;
}

void live_close(struct live **live)
{
    if (*live == NULL)
        return;
    (*live)->driver->close((*live)->store);
    while ((*live)->sent != NULL) {
        struct sent *sent = (*live)->sent;
        (*live)->sent = sent->next;
        free(sent);
    }
    free((*live)->store);
    free(*live);
    *live = NULL;
}

void live_watch(struct live *live, live_watcher *watcher, void *owner)
{
    live->watcher = watcher;
    live->owner = owner;
}

int live_liveness(const struct live *live)
{
    return live->driver->liveness != NULL ? live->driver->liveness(live->store) : -1;
}

const struct lease *live_lease(const struct live *live)
{
    return &live->lease;
}

const struct live_counts *live_counts(const struct live *live)
{
    return &live->counts;
}

const char *live_trouble(const struct live *live)
{
    return live->trouble;
}
