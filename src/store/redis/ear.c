/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Redis tells without being asked: a write that names us, and every change, for those who
 * watch. A change is told by its name only; whoever wants the record looks, so that what is told is
 * what stands. A write that names us may bring what it left there. Messages get lost with their
 * connection: then watches end, and waiters look by themselves. In RESP3 all of it comes on the one
 * connection; RESP2 needs a second one, the ear.
 */
#include "store/redis/redis_inside.h"

#include "base/check.h"
#include "wire/redis_message.h"

#include <stdlib.h>
#include <string.h>

enum { CHANGES_MAX = 4096 };

static const struct link_error no_memory = {.result = ANSWER_TROUBLE, .why = "memory is short"};

struct link *ear_of(struct redis *redis)
{
    return redis->main.link.protocol == 2 ? &redis->ear : &redis->main.link;
}

bool ear_is_settled(const struct redis *redis)
{
    bool wake = !redis->wake.wanted || redis->wake.state == EAR_ON;
    bool changes = !redis->changes.wanted || redis->changes.state == EAR_ON;
    /* On one connection the order is enough, unless writes go to another node of a cluster. */
    const struct link *link = &redis->main.link;
    bool cannot = link->protocol == 3 ? !link->clustered : redis->ear.state == LINK_RESTING;
    return cannot || (wake && changes);
}

/* ---- channels ---- */

static void confirm_watches(struct redis *redis)
{
    for (struct watcher *watcher = redis->watchers; watcher != NULL; watcher = watcher->next) {
        if (watcher->confirmed)
            continue;
        watcher->confirmed = true;
        struct store_answer answer = {.result = ANSWER_OK, .more = true, .now_ms = TIME_UNKNOWN};
        watcher->done(watcher->caller, &answer);
    }
}

static void end_watches(struct redis *redis, const struct link_error *error)
{
    struct watcher *watcher = redis->watchers;
    redis->watchers = NULL;
    while (watcher != NULL) {
        struct watcher *next = watcher->next;
        struct store_answer answer = {
            .result = error->result, .now_ms = TIME_UNKNOWN, .why = error->why};
        watcher->done(watcher->caller, &answer);
        free(watcher);
        watcher = next;
    }
}

static void on_subscribed(struct link_call *call, const struct resp_item *item,
                          struct resp_walk *walk, const struct link_error *error)
{
    struct ear_channel *channel = (struct ear_channel *)call;
    struct redis *redis = channel->redis;
    (void)walk;
    if (error != NULL)
        return;                     /* the loss is told apart */
    if (item->kind == RESP_ERROR) { /* waiters still look by themselves */
        struct link_error refusal = link_explain(ear_of(redis), item);
        channel->state = EAR_ON;
        if (channel == &redis->changes) {
            channel->state = EAR_OFF;
            channel->wanted = false;
            end_watches(redis, &refusal);
        }
    } else {
        channel->state = EAR_ON;
        if (channel == &redis->changes)
            confirm_watches(redis);
    }
    redis_flush(redis);
}

static void subscribe(struct redis *redis, struct ear_channel *channel)
{
    struct link *link = ear_of(redis);
    if (!channel->wanted || channel->state != EAR_OFF || link->state != LINK_READY)
        return;
    channel->state = EAR_ASKED;
    link_begin(link, &channel->call, 2);
    link_say(link, "SUBSCRIBE");
    link_say(link, channel->name);
}

void ear_want(struct redis *redis, struct ear_channel *channel)
{
    channel->wanted = true;
    link_want(ear_of(redis));
    subscribe(redis, channel);
}

void ear_ready(struct redis *redis)
{
    /* The server speaks RESP3 by now: a call may be in the queue of one connection only. */
    bool idle = redis->ear.state == LINK_RESTING && !redis->ear.wanted;
    if (ear_of(redis) != &redis->ear && !idle)
        link_cut(&redis->ear, ANSWER_TROUBLE, "the other connection does both");
    subscribe(redis, &redis->wake);
    subscribe(redis, &redis->changes);
}

void ear_lost(struct redis *redis, const struct link_error *error)
{
    redis->wake.state = redis->changes.state = EAR_OFF;
    redis->changes.wanted = false;
    /* Who comes back may have lost its last writes, and count from further back. */
    memset(redis->told, 0, sizeof redis->told);
    end_watches(redis, error);
}

static void on_ear_ready(void *owner)
{
    ear_ready(owner);
}

static void on_ear_lost(void *owner, const struct link_error *error)
{
    struct redis *redis = owner;
    ear_lost(redis, error);
    /* A waiter sends no more writes, so nothing else would open it again. */
    if (redis->wake.wanted && ear_of(redis) == &redis->ear)
        link_want(&redis->ear);
    redis_flush(redis);
}

static bool on_ear_pushed(void *owner, struct resp_walk *walk, size_t count)
{
    struct redis *redis = owner;
    return ear_pushed(redis, &redis->ear, walk, count);
}

/* ---- watches ---- */

void ear_watch(struct redis *redis, const char *prefix, store_done *done, void *caller)
{
    struct watcher *watcher = calloc(1, sizeof *watcher);
    if (watcher == NULL) {
        struct store_answer answer = {
            .result = ANSWER_TROUBLE, .now_ms = TIME_UNKNOWN, .why = "memory is short"};
        done(caller, &answer);
        return;
    }
    watcher->done = done;
    watcher->caller = caller;
    text_copy(watcher->prefix, sizeof watcher->prefix, prefix);
    watcher->next = redis->watchers;
    redis->watchers = watcher;
    if (redis->changes.state == EAR_ON)
        confirm_watches(redis);
}

static bool matches(const struct watcher *watcher, const char *key)
{
    return strncmp(key, watcher->prefix, strlen(watcher->prefix)) == 0;
}

static bool is_watched(const struct redis *redis, const char *key)
{
    for (const struct watcher *watcher = redis->watchers; watcher != NULL; watcher = watcher->next)
        if (watcher->confirmed && matches(watcher, key))
            return true;
    return false;
}

/* Has this or something newer been told? A message can be late, behind a look that saw it all. */
static bool was_told(const struct redis *redis, const char *key, uint64_t revision)
{
    uint64_t hash = redis_hash_of(key);
    return revision != 0 && redis->told[hash % TOLD_SLOTS].key == hash &&
           redis->told[hash % TOLD_SLOTS].revision >= revision;
}

static void note_told(struct redis *redis, const char *key, uint64_t revision)
{
    uint64_t hash = redis_hash_of(key);
    redis->told[hash % TOLD_SLOTS].key = hash;
    redis->told[hash % TOLD_SLOTS].revision = revision;
}

static void forget_change(struct change *change)
{
    struct change **at = &change->redis->first_change;
    while (*at != change)
        at = &(*at)->next;
    *at = change->next;
    change->redis->change_count--;
    free(change);
}

static void on_look(void *caller, const char *key, const struct seen *seen,
                    const struct link_error *error)
{
    struct change *change = caller;
    struct redis *redis = change->redis;
    if (error != NULL && !error->of_record) {
        end_watches(redis, error);
        forget_change(change);
        return;
    }
    struct watcher *watcher = redis->watchers;
    if (seen != NULL && seen->length > 0)
        note_told(redis, key, seen->written.revision);
    for (; watcher != NULL; watcher = watcher->next) {
        struct store_answer answer;
        if (!watcher->confirmed || !matches(watcher, key))
            continue;
        look_answer(redis, key, seen, error, &answer);
        answer.more = true;
        answer.key = key;
        watcher->done(watcher->caller, &answer);
    }
    bool again = change->again && !was_told(redis, key, change->newest);
    change->again = false;
    change->newest = 0;
    if (again && !redis_look(redis, change->key, on_look, change)) {
        end_watches(redis, &no_memory);
        again = false;
    }
    if (!again)
        forget_change(change);
}

static void changed(struct redis *redis, const char *key, uint64_t revision)
{
    struct change *change = redis->first_change;
    if (!is_watched(redis, key) || was_told(redis, key, revision))
        return;
    while (change != NULL && strcmp(change->key, key) != 0)
        change = change->next;
    if (change != NULL) { /* deletes have no revision: what comes after one is looked at */
        bool known = revision != 0 && (!change->again || change->newest != 0);
        change->again = true;
        change->newest = known ? revision : 0;
        return;
    }
    change = redis->change_count < CHANGES_MAX ? calloc(1, sizeof *change) : NULL;
    if (change == NULL) {
        end_watches(redis, &(struct link_error){.result = ANSWER_TROUBLE,
                                                .why = "more changed at once than can be told"});
        return;
    }
    change->redis = redis;
    text_copy(change->key, sizeof change->key, key);
    change->next = redis->first_change;
    redis->first_change = change;
    redis->change_count++;
    if (!redis_look(redis, change->key, on_look, change)) {
        end_watches(redis, &no_memory);
        forget_change(change);
    }
}

/* ---- messages ---- */

/* Whose names are not ours is somebody else's affair. */
static void hear_change(struct redis *redis, const struct resp_item *message)
{
    char key[KEY_MAX + 1];
    uint64_t revision;
    size_t at;
    if (redis_change_read(message->text, message->length, &revision, &at) &&
        redis_key_of_record(&redis->url.templates, message->text + at, message->length - at, key))
        changed(redis, key, revision);
}

static void hear_wake(struct redis *redis, const struct resp_item *message)
{
    char key[KEY_MAX + 1];
    struct redis_told told = redis_told_read(message->text, message->length);
    struct store_answer stands = {
        .result = ANSWER_OK,
        .present = true,
        .written = {.revision = told.revision, .time_ms = told.time_ms},
        .now_ms = told.time_ms,
        .bytes = told.bytes,
        .length = told.length,
    };
    if (redis->site.notice != NULL &&
        redis_key_of_record(&redis->url.templates, message->text, told.name_length, key))
        redis->site.notice(redis->site.owner, key, told.tells ? &stands : NULL);
}

static void hear_message(struct redis *redis, const struct resp_item *channel,
                         const struct resp_item *message)
{
    if (resp_is(channel, redis->changes.name))
        hear_change(redis, message);
    else if (resp_is(channel, redis->wake.name))
        hear_wake(redis, message);
}

bool ear_pushed(struct redis *redis, struct link *link, struct resp_walk *walk, size_t count)
{
    struct resp_item kind, channel, message;
    if (count < 1 || !resp_next(walk, &kind))
        return false;
    if (resp_is(&kind, "subscribe"))
        return link_confirm(link);
    if (!resp_is(&kind, "message"))
        return true; /* of no interest */
    if (count != 3 || !resp_next(walk, &channel) || !resp_next(walk, &message) ||
        message.kind != RESP_TEXT)
        return false;
    hear_message(redis, &channel, &message);
    return true;
}

/* ---- beginning and end ---- */

static void name_channel(struct redis *redis, struct ear_channel *channel, bool own)
{
    struct text text;
    *channel =
        (struct ear_channel){.call = {.reply = on_subscribed, .subscribes = true}, .redis = redis};
    text_init(&text, channel->name, sizeof channel->name);
    text_add(&text, "leasehold:"); /* channels know no databases: their names must */
    text_add_u64(&text, redis->url.db);
    text_add(&text, own ? ":wake:" : ":changed");
    if (own)
        text_add_hex(&text, redis->site.session);
}

void ear_init(struct redis *redis)
{
    struct link_site site = {
        .ready = on_ear_ready, .lost = on_ear_lost, .pushed = on_ear_pushed, .owner = redis};
    link_init(&redis->ear, redis->net, &redis->url, &redis->credentials, &site,
              random_next(&redis->random));
    redis->ear.patience_ms = redis->patience_ms;
    redis->ear.listens = true;
    name_channel(redis, &redis->wake, /* own= */ true);
    name_channel(redis, &redis->changes, /* own= */ false);
}

void ear_done(struct redis *redis)
{
    while (redis->watchers != NULL) {
        struct watcher *next = redis->watchers->next;
        free(redis->watchers);
        redis->watchers = next;
    }
    struct change *next;
    for (struct change *change = redis->first_change; change != NULL; change = next) {
        next = change->next;
        free(change);
    }
}
