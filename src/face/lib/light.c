/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain locks on a store inside the process (runtime/light.h): taken and given back in the
 * caller's own thread. Such a handle is small, and stands for a full one once somebody else wants
 * anything of its key: then the loop writes the grant that the hold stands for into the store, and
 * lets the desk adopt it. Nobody can take the key away before that, so until then it needs no
 * renewal. Decides nothing.
 */
#include "face/lib/lib_inside.h"

#include "base/check.h"
#include "io/host.h"
#include "wire/record_codec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_MAX = 4096 /* one grant, every letter of it escaped */ };

struct light_lease {
    uint32_t magic;
    struct lh_client *client;         /* NULL once it is closed */
    _Atomic(struct lh_lease *) thick; /* what it stands for by now, or NULL */
    int64_t ttl_ms;
    lh_lost_fn *on_lost;
    void *user;
    struct light_hold hold;
    char key[];
};

bool light_is(const struct lh_lease *lease)
{
    /* Both kinds begin with their magic. */
    return *(const uint32_t *)(const void *)lease == LIGHT_LEASE_MAGIC;
}

static const struct light_lease *light_seen(const struct lh_lease *lease)
{
    ASSERT(light_is(lease));
    return (const struct light_lease *)(const void *)lease;
}

static struct light_lease *light_of(struct lh_lease *lease)
{
    ASSERT(light_is(lease));
    return (struct light_lease *)(void *)lease;
}

static struct light_lease *owner_of(struct light_hold *hold)
{
    return (struct light_lease *)(void *)((char *)hold - offsetof(struct light_lease, hold));
}

static uint64_t token_of_hold(const struct light_hold *hold)
{
    return token_of(&(struct stamp){.revision = hold->node.revision}, /* n= */ 0);
}

struct lh_lease *light_grown(const struct lh_lease *lease)
{
    return atomic_load(&light_seen(lease)->thick);
}

struct lh_client *light_client(const struct lh_lease *lease)
{
    const struct light_lease *light = light_seen(lease);
    const struct lh_lease *full = atomic_load(&light->thick);
    return full != NULL ? full->client : light->client;
}

void light_forget(struct lh_lease *lease)
{
    struct light_lease *light = light_of(lease);
    light->magic = 0;
    free(light);
}

/* ---- what is known without asking ---- */

uint64_t light_token(const struct lh_lease *lease)
{
    return token_of_hold(&light_seen(lease)->hold);
}

const char *light_key(const struct lh_lease *lease)
{
    return light_seen(lease)->key;
}

int64_t light_remaining_ms(const struct lh_lease *lease)
{
    return light_seen(lease)->ttl_ms * 2 / 3;
}

/* ---- taking and giving back, in the caller's thread ---- */

/* Exclusive, bound, without words or times of its own: that is all that a hold can say. */
static bool is_plain(const struct lh_acquire_options *options)
{
    return options->size == sizeof *options && options->cooldown_ms == 0 &&
           options->lock_delay_ms == 0 && options->priority == 0 && options->limit == 0 &&
           !options->shared && !options->unbound && options->holder == NULL &&
           options->request_id == NULL && options->meta_count == 0 && options->ttl_ms >= 0 &&
           (options->ttl_ms == 0 || options->ttl_ms >= memory_driver.ttl_least_ms) &&
           options->ttl_ms <= TTL_MAX_MS && options->wait_ms >= LH_WAIT_FOREVER;
}

static enum lh_outcome say_granted(struct lh_report *report, uint64_t token)
{
    (void)report_say(report, LH_OK, "ok: granted");
    if (report != NULL)
        report->token = token;
    return LH_OK;
}

static enum lh_outcome say_busy(const struct lh_client *client, const char *key,
                                const struct light_hold *holder, struct lh_report *report)
{
    struct task_news news = {.look = {.state = KEY_HELD,
                                      .holder = client->holder,
                                      .token = token_of_hold(holder),
                                      .ends_in_ms = -1,
                                      .takeover_in_ms = -1}};
    if (report != NULL) {
        report_news(client, key, &news, OUTCOME_BUSY, report);
        report->since_ms = age_of(holder->since_ms, host_boot_ms());
    }
    return LH_BUSY;
}

bool light_acquire(struct lh_client *client, const char *key,
                   const struct lh_acquire_options *options, struct lh_lease **out,
                   struct lh_report *report, enum lh_outcome *out_outcome)
{
    size_t length = strnlen(key, KEY_MAX + 1);
    struct light_hold holder;
    if ((options != NULL && !is_plain(options)) || length == 0 || length > KEY_MAX ||
        !text_is_clean(key, length))
        return false;
    struct light_lease *light = malloc(sizeof *light + length + 1);
    if (light == NULL)
        return false;
    bool waits = options != NULL && options->wait_ms != 0;
    light->magic = LIGHT_LEASE_MAGIC;
    light->client = client;
    atomic_init(&light->thick, NULL);
    light->ttl_ms = options != NULL && options->ttl_ms > 0 ? options->ttl_ms : TTL_USUAL_MS;
    light->on_lost = options != NULL ? options->on_lost : NULL;
    light->user = options != NULL ? options->user : NULL;
    light->hold.since_ms = host_boot_ms();
    memcpy(light->key, key, length + 1);
    enum light_answer answer = light_take(client->light, &light->hold, light->key, length, &holder);
    if (answer == LIGHT_TAKEN) {
        *out = (struct lh_lease *)(void *)light;
        *out_outcome = say_granted(report, token_of_hold(&light->hold));
        return true;
    }
    free(light);
    if (answer == LIGHT_NOT || waits)
        return false;
    *out_outcome = say_busy(client, key, &holder, report);
    return true;
}

bool light_release(struct lh_lease *lease)
{
    struct light_lease *light = light_of(lease);
    if (!light_give(light->client->light, &light->hold))
        return false;
    light_forget(lease);
    return true;
}

/* ---- becoming a grant, in the loop ---- */

/* What the store would say had the grant been written there, and renewed now. */
static void write_down(const struct lh_client *client, const struct light_lease *light,
                       const char *request, struct record *record)
{
    record_init(record, light->key);
    struct grant *grant = record_add_grant(record);
    text_copy(grant->holder, sizeof grant->holder, client->holder);
    text_copy(grant->request, sizeof grant->request, request);
    grant->session = client->session;
    grant->mode = MODE_EXCLUSIVE;
    grant->bound = true;
    grant->granted =
        (struct stamp){.revision = light->hold.node.revision, .time_ms = light->hold.since_ms};
    grant->renewed = (struct stamp){.revision = THIS_WRITE};
    grant->ttl_ms = light->ttl_ms;
}

struct written {
    enum answer result;
    uint64_t revision;
};

static void hear(void *caller, const struct store_answer *answer)
{
    *(struct written *)caller =
        (struct written){.result = answer->result, .revision = answer->written.revision};
}

static bool store_grant(struct lh_client *client, const struct light_lease *light,
                        const char *request, uint64_t *out_revision)
{
    char bytes[BYTES_MAX];
    struct written written = {.result = ANSWER_TROUBLE};
    write_down(client, light, request, &client->scratch);
    size_t length = record_encode(&client->scratch, bytes, sizeof bytes);
    ASSERT(length > 0);
    struct store_request swap = {.verb = VERB_STORE_SWAP,
                                 .key = light->key,
                                 .condition = {.kind = IF_ABSENT},
                                 .bytes = bytes,
                                 .length = length};
    client->driver->submit(client->state, &swap, hear, &written);
    /* A light key has no record. */
    ASSERT(written.result == ANSWER_OK || written.result == ANSWER_TROUBLE);
    *out_revision = written.revision;
    return written.result == ANSWER_OK;
}

/* Needs no memory. */
static void erase_grant(struct lh_client *client, const char *key, uint64_t revision)
{
    struct written written = {.result = ANSWER_TROUBLE};
    struct store_request erase = {.verb = VERB_STORE_DELETE,
                                  .key = key,
                                  .condition = {.kind = IF_REVISION, .revision = revision}};
    client->driver->submit(client->state, &erase, hear, &written);
    ASSERT(written.result == ANSWER_OK);
}

/* False when memory is short, and nothing has changed. The grant uses the mark until it ends. */
static bool thicken(struct lh_client *client, struct light_lease *light, struct light_mark *mark)
{
    char request[REQUEST_MAX + 1];
    uint64_t revision;
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct light_hold *hold = &light->hold;
    /* With the session in it: nobody else's request can be mistaken for this one. */
    (void)snprintf(request, sizeof request, "%" PRIx64 "-light-%" PRIu64, client->session,
                   token_of_hold(hold));
    options.ttl_ms = light->ttl_ms;
    options.on_lost = light->on_lost;
    options.user = light->user;
    options.request_id = request;
    if (!store_grant(client, light, request, &revision))
        return false;
    struct lh_lease *full = lease_adopt(client, light->key, &options, token_of_hold(hold),
                                        hold->since_ms, (struct lh_lease *)(void *)light);
    if (full == NULL) {
        erase_grant(client, light->key, revision);
        return false;
    }
    light_use(mark);
    full->parts[0].mark = mark;
    atomic_store(&light->thick, full);
    return true;
}

bool light_enter_key(struct lh_client *client, const char *key, struct light_mark **out_mark)
{
    struct light_hold *hold = NULL;
    *out_mark = NULL;
    if (client->light == NULL)
        return true;
    struct light_mark *mark = light_mark(client->light, key, &hold);
    if (mark == NULL)
        return false;
    (void)memory_raise(client->state, mark->above); /* tokens grow, whoever grants */
    if (hold != NULL && !thicken(client, owner_of(hold), mark)) {
        light_put_back(client->light, mark, hold);
        return false;
    }
    *out_mark = mark;
    return true;
}

void light_leave_key(struct lh_client *client, struct light_mark **mark)
{
    if (*mark != NULL)
        light_return(client->light, *mark);
    *mark = NULL;
}

static void note_presence(void *caller, const struct store_answer *answer)
{
    *(bool *)caller = answer->present;
}

static enum light_rest judge(void *owner, const char *key)
{
    struct lh_client *client = owner;
    bool present = true;
    struct store_request read = {.verb = VERB_STORE_READ, .key = key};
    if (front_desk_knows(client->desk, key))
        return REST_LATER;
    client->driver->submit(client->state, &read, note_presence, &present);
    return present ? REST_KEPT : REST_FREE;
}

void light_rest(struct lh_client *client)
{
    if (client->light != NULL)
        light_settle(client->light, judge, client, memory_raise(client->state, 0));
}

struct lh_lease *light_thicken(struct lh_lease *lease)
{
    struct light_lease *light = light_of(lease);
    struct lh_client *client = light->client;
    struct light_mark *mark = NULL;
    if (atomic_load(&light->thick) == NULL && light_enter_key(client, light->key, &mark)) {
        front_desk_tick(client->desk); /* before it is given back, it must be held */
        light_leave_key(client, &mark);
    }
    struct lh_lease *full = atomic_load(&light->thick);
    if (full == NULL) /* memory is short: nobody but a watch can notice */
        light_drop(client->light, &light->hold);
    return full;
}

/* ---- the whole table ---- */

struct showing {
    struct lh_client *client;
    lh_view_fn *fn;
    void *user;
    struct light_node *copies; /* of the holds that are to be shown */
    bool enough, scarce;
};

/* The function must not be called here: it may want to give back what it is shown. */
static bool pick(void *owner, const struct light_hold *hold)
{
    struct showing *showing = owner;
    size_t size = sizeof(struct light_lease) + strlen(hold->node.key) + 1;
    struct light_lease *copy = malloc(size);
    showing->scarce = copy == NULL;
    if (copy == NULL)
        return false;
    memcpy(copy, (const char *)hold - offsetof(struct light_lease, hold), size);
    copy->hold.node.next = showing->copies;
    showing->copies = &copy->hold.node;
    return true;
}

static bool show(struct showing *showing, const struct light_lease *light)
{
    struct lh_client *client = showing->client;
    struct stamp at = {.revision = light->hold.node.revision, .time_ms = host_boot_ms()};
    struct lh_view view;
    write_down(client, light, "light", &client->scratch);
    record_resolve(&client->scratch, &at);
    status_fill(client, &client->scratch, &at, light->key, NULL, &view);
    view.written_ago_ms = view.since_ms;
    client_enter(client);
    bool more = showing->fn(showing->user, &view);
    client_leave(client);
    return more;
}

static bool show_picked(void *owner)
{
    struct showing *showing = owner;
    while (showing->copies != NULL) {
        struct light_lease *copy = owner_of((struct light_hold *)showing->copies);
        showing->copies = copy->hold.node.next;
        showing->enough = showing->enough || !show(showing, copy);
        free(copy);
    }
    return !showing->enough;
}

bool light_list(struct lh_client *client, const char *prefix, lh_view_fn *fn, void *user,
                bool *out_enough)
{
    struct showing showing = {.client = client, .fn = fn, .user = user};
    struct light_visitor visitor = {.pick = pick, .picked = show_picked, .owner = &showing};
    if (client->light != NULL && !light_each(client->light, prefix, &visitor))
        (void)show_picked(&showing); /* what was copied before memory ran out */
    *out_enough = showing.enough;
    return !showing.scarce;
}

static void orphan(void *owner, struct light_hold *hold)
{
    (void)owner;
    owner_of(hold)->client = NULL;
}

void light_orphan_all(struct lh_client *client)
{
    if (client->light != NULL)
        light_empty(client->light, orphan, NULL);
}
