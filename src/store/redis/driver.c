/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redis as a store. All that was submitted since the last step travels together, in one pipeline;
 * each request is one call of one script (script.c) and has one answer. Nothing is sent a second
 * time, but what the server said it did not run. Requests have deadlines; a connection that lets
 * one pass is ended, and what was on its way is told as trouble: it may have happened.
 */
#include "store/redis/redis_inside.h"

#include "base/check.h"
#include "io/host.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { REDIS_MAGIC = 0x4ed15, PATIENCE_MS = 10000 };

static const char name_is_anothers[] =
    "the key's name in Redis is the one of another kind of key; see the templates in the URL";

/* ---- jobs ---- */

static void on_reply(struct link_call *call, const struct resp_item *item, struct resp_walk *walk,
                     const struct link_error *error);

static void set_timer(struct redis *redis)
{
    int64_t first_ms = redis->first_job != NULL ? redis->first_job->deadline_ms : NET_NEVER;
    if (redis->overdue.at_ms > first_ms || first_ms == NET_NEVER)
        net_call_at(redis->net, &redis->overdue, first_ms);
}

/* All have the same patience: the last one's deadline is the last. */
static void append_job(struct job *job)
{
    struct redis *redis = job->redis;
    job->deadline_ms = host_boot_ms() + redis->patience_ms;
    job->next = NULL;
    job->before = redis->last_job;
    if (job->before != NULL)
        job->before->next = job;
    else
        redis->first_job = job;
    redis->last_job = job;
    set_timer(redis);
}

static struct job *add_job(struct redis *redis, const char *key)
{
    size_t size = key != NULL ? strlen(key) + 1 : 0;
    struct job *job = calloc(1, sizeof *job + size);
    if (job == NULL)
        return NULL;
    if (key != NULL)
        memcpy(job->key, key, size);
    job->call.reply = on_reply;
    job->redis = redis;
    append_job(job);
    *redis->last_queued = job;
    redis->last_queued = &job->next_queued;
    return job;
}

static void unlink_job(const struct job *job)
{
    struct redis *redis = job->redis;
    if (job->next != NULL)
        job->next->before = job->before;
    else
        redis->last_job = job->before;
    if (job->before != NULL)
        job->before->next = job->next;
    else
        redis->first_job = job->next;
}

void redis_extend(struct job *job)
{
    unlink_job(job);
    append_job(job);
}

void redis_forget(struct job *job)
{
    unlink_job(job);
    free(job);
}

static struct job *take_queued(struct redis *redis)
{
    struct job *job = redis->first_queued;
    redis->first_queued = job->next_queued;
    if (redis->first_queued == NULL)
        redis->last_queued = &redis->first_queued;
    return job;
}

/* Its only answer. */
void redis_end(struct job *job, const struct seen *seen, const struct link_error *error)
{
    struct redis *redis = job->redis;
    if (job->listing != NULL) {
        list_fail(job, error);
        return;
    }
    if (job->look != NULL) {
        job->look(job->caller, job->key, seen, error);
    } else if (error != NULL) {
        struct store_answer answer = {.result = error->result,
                                      .now_ms = TIME_UNKNOWN,
                                      .refused = error->refused,
                                      .why = error->why};
        job->done(job->caller, &answer);
    } else {
        struct store_answer answer;
        char key[KEY_MAX + 1]; /* the request is gone with its answer */
        text_copy(key, sizeof key, job->request.key);
        seen_answer(redis, job, key, seen, &answer);
        job->done(job->caller, &answer);
    }
    redis_forget(job);
}

static void end_in_trouble(struct job *job, const char *why)
{
    redis_end(job, NULL, &(struct link_error){.result = ANSWER_TROUBLE, .why = why});
}

/* ---- the script that is not there yet ---- */

/* It did not run, so sending it again is safe. False when there is no more to try. */
static bool load_and_repeat(struct job *job)
{
    struct link *link = job->link;
    char script[SCRIPT_MAX];
    struct text text;
    if (job->reloaded || !link_begin_unheard(link, 3))
        return false;
    text_init(&text, script, sizeof script);
    redis_script(&text);
    ASSERT(!text.cut);
    job->reloaded = true;
    link_say(link, "SCRIPT");
    link_say(link, "LOAD");
    link_word(link, script, text.length);
    return command_send(job->redis, job, link);
}

static void on_reply(struct link_call *call, const struct resp_item *item, struct resp_walk *walk,
                     const struct link_error *error)
{
    struct job *job = (struct job *)call;
    struct seen seen;
    if (error != NULL) {
        redis_end(job, NULL, error);
    } else if (item->kind == RESP_ERROR &&
               ((resp_begins(item, "NOSCRIPT") && load_and_repeat(job)) ||
                node_redirects(job, item))) {
        return;
    } else if (item->kind == RESP_ERROR) {
        struct link *link = job->link;
        struct link_error refusal = link_explain(link, item);
        bool demoted = resp_begins(item, "READONLY") && link->state == LINK_READY;
        redis_end(job, NULL, &refusal);
        if (demoted) /* the next connection finds out who is the master now */
            link_cut(link, ANSWER_TROUBLE, "it is a replica by now");
    } else if (seen_read(item, walk, &seen) && seen_fits(job, &seen)) {
        redis_end(job, &seen, NULL);
    } else {
        redis_end(job, NULL,
                  &(struct link_error){.result = ANSWER_TROUBLE,
                                       .why = "Redis replied what our script never says",
                                       .of_record = seen.unreadable});
    }
}

/* ---- sending ---- */

/* Whoever takes a place has to be woken: it listens before it waits. */
static bool takes_place(const struct job *job)
{
    static const char places[] = "\"places\":[";
    return job->request.verb == VERB_STORE_SWAP &&
           memmem(job->request.bytes, job->request.length, places, sizeof places - 1) != NULL;
}

void redis_send(struct job *job)
{
    struct redis *redis = job->redis;
    bool sent = true;
    if (job->listing != NULL)
        list_send(job, &job->node->link);
    else if (redis->url.no_scripts)
        sent = deal_begin(job->node, job);
    else
        sent = command_send(redis, job, &job->node->link);
    if (!sent)
        end_in_trouble(job, name_is_anothers);
}

static struct node *node_of(struct redis *redis, const char *key)
{
    if (redis->main.next == NULL)
        return &redis->main;
    struct redis_names names;
    return node_for(redis, redis_names_of(&redis->url.templates, key, &names) ? names.slot : 0);
}

static void route(struct redis *redis, struct job *job)
{
    switch (job->request.verb) {
    case VERB_STORE_LIST:
        list_begin(redis, job);
        return;
    case VERB_STORE_WATCH:
        ear_watch(redis, job->request.key, job->done, job->caller);
        redis_forget(job);
        return;
    case VERB_STORE_HISTORY:
        end_in_trouble(job, "redis: keeps no history");
        return;
    default:
        node_queue(node_of(redis, job->request.key), job);
    }
}

/* Those who have to hear something first wait for the connection on which they will. */
static bool must_listen(struct redis *redis, const struct job *job)
{
    bool watches = job->request.verb == VERB_STORE_WATCH;
    bool writes =
        job->request.verb == VERB_STORE_SWAP && job->request.condition.kind == IF_REVISION;
    if (!watches && !writes && job->request.verb != VERB_STORE_LIST)
        return false;
    link_want(&redis->main.link);
    if (redis->main.link.state != LINK_READY)
        return true;
    if (watches || writes)
        ear_want(redis, watches ? &redis->changes : &redis->wake);
    return (watches || takes_place(job)) && !ear_is_settled(redis);
}

void redis_flush(struct redis *redis)
{
    while (redis->first_queued != NULL && !must_listen(redis, redis->first_queued))
        route(redis, take_queued(redis));
    nodes_send(redis, /* flush= */ false);
}

/* A deadline has passed: whatever is said on that connection from now on comes too late. */
static void on_overdue(void *owner)
{
    struct redis *redis = owner;
    int64_t now_ms = host_boot_ms();
    if (redis->first_job != NULL && redis->first_job->deadline_ms <= now_ms) {
        const struct job *job = redis->first_job;
        bool deaf = ear_of(redis) == &redis->ear && !ear_is_settled(redis);
        link_cut(job->node != NULL ? &job->node->link : &redis->main.link, ANSWER_TROUBLE,
                 "it did not answer in time");
        if (deaf) /* that may be what was waited for */
            link_cut(&redis->ear, ANSWER_TROUBLE, "it did not answer in time");
    }
    set_timer(redis);
}

bool redis_look(struct redis *redis, const char *key, look_done *look, void *caller)
{
    struct job *job = add_job(redis, key);
    if (job == NULL)
        return false;
    job->request = (struct store_request){.verb = VERB_STORE_READ, .key = job->key};
    job->look = look;
    job->caller = caller;
    return true;
}

/* ---- the seam ---- */

static void submit(void *state, const struct store_request *request, store_done *done, void *caller)
{
    struct redis *redis = state;
    ASSERT(redis->magic == REDIS_MAGIC);
    struct job *job = add_job(redis, NULL);
    if (job == NULL) {
        struct store_answer answer = {
            .result = ANSWER_TROUBLE, .now_ms = TIME_UNKNOWN, .why = "memory is short"};
        done(caller, &answer);
        return;
    }
    job->request = *request;
    job->done = done;
    job->caller = caller;
    redis->submitted = true;
}

static void step(void *state)
{
    struct redis *redis = state;
    ASSERT(redis->magic == REDIS_MAGIC);
    bool sends = redis->submitted;
    redis->submitted = false;
    redis_flush(redis);
    if (sends) { /* what has come meanwhile can still be read in the next step */
        net_catch_up(redis->net);
        return;
    }
    net_step(redis->net);
    redis_flush(redis); /* what came from callbacks */
    nodes_send(redis, /* flush= */ true);
    redis->submitted = false;
}

static int fd_of(void *state)
{
    const struct redis *redis = state;
    return net_fd(redis->net);
}

static void close_redis(void *state)
{
    struct redis *redis = state;
    ASSERT(redis->magic == REDIS_MAGIC);
    link_done(&redis->ear);
    nodes_done(redis);
    sentinel_done(redis);
    ear_done(redis);
    stranger_done(redis);
    list_done(redis);
    struct job *next;
    for (struct job *job = redis->first_job; job != NULL; job = next) {
        next = job->next;
        free(job);
    }
    net_call_at(redis->net, &redis->overdue, NET_NEVER);
    credentials_done(&redis->credentials);
    net_free(&redis->net);
    redis->magic = 0;
}

static bool open_redis(void *state, const char *url, const struct store_site *site,
                       struct text *why)
{
    struct redis *redis = state;
    uint64_t seeds[2];
    memset(redis, 0, offsetof(struct redis, scratch));
    text_add(why, "usage: ");
    if (!redis_url_read(url, &redis->url, why))
        return false;
    text_clear(why);
    /* Nobody may guess under which identity a stranger is shown. */
    bool random = getrandom(seeds, sizeof seeds, /* flags= */ 0) == sizeof seeds;
    redis->net = random ? net_new() : NULL;
    if (redis->net == NULL) {
        text_add(why, "memory, descriptors or random numbers are short");
        return false;
    }
    if (!credentials_init(&redis->credentials, &redis->url, redis->net, why)) {
        net_free(&redis->net);
        return false;
    }
    redis->random.state = seeds[0];
    redis->stranger_session = seeds[1];
    redis->site = *site;
    redis->patience_ms = site->patience_ms > 0 ? site->patience_ms : PATIENCE_MS;
    redis->last_queued = &redis->first_queued;
    redis->overdue = (struct net_timer){.at_ms = NET_NEVER, .due = on_overdue, .owner = redis};
    nodes_init(redis, seeds[0]);
    sentinel_init(redis, seeds[0]);
    ear_init(redis);
    redis->magic = REDIS_MAGIC;
    return true;
}

/* What other programs know it by. */
static bool name_of(const char *url, const char *key, struct text *out, struct text *why)
{
    struct redis_names names;
    struct redis_url *read = malloc(sizeof *read);
    bool known = read != NULL && redis_url_read(url, read, why);
    bool named = known && redis_names_of(&read->templates, key, &names);
    if (read == NULL)
        text_add(why, "memory is short");
    else if (known && !named)
        text_add(why, name_is_anothers);
    if (named)
        text_add(out, names.family == REDIS_WATERMARK ? names.record : names.plain);
    free(read);
    return named;
}

#define REDIS_DRIVER(word)                                                                     \
    {                                                                                          \
        .scheme = (word),                                                                      \
        .capabilities = STORE_DURABLE | STORE_WATCHES | STORE_TIME | STORE_TESTS_GRANT |       \
                        STORE_DELETES | STORE_TOKENS_RESTART | STORE_TELLS,                    \
        .state_size = sizeof(struct redis), .descriptors = 3, .ttl_least_ms = 500,             \
        .open = open_redis, .close = close_redis, .submit = submit, .step = step, .fd = fd_of, \
        .name = name_of,                                                                       \
    }

const struct store_driver redis_driver = REDIS_DRIVER("redis");
const struct store_driver rediss_driver = REDIS_DRIVER("rediss");
