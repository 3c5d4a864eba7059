/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking keys as a person at a terminal or a script wants it: wait in line, try again with pauses,
 * or fail; give the place up on a signal. The line itself, and who is next, are the store's.
 */
#include "face/cli/cli.h"

#include "face/cli/stop.h"
#include "face/cli/waiting.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* ---- one try ---- */

struct taking {
    struct visit *visit;
    struct stop stop;
    struct waiting waiting;
    struct lh_request *(*ask)(struct taking *taking);
    const char *const *keys; /* of a claim: the id */
    size_t count;
    struct lh_acquire_options options;
    const struct lh_once_options *claim;
    struct lh_once *once;
    struct lh_lease *lease;
    struct lh_report report;
    bool over;
    int stopped_by; /* a signal, or 0 */
};

static void on_done(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct taking *taking = user;
    taking->lease = lease;
    taking->report = *report;
    taking->over = true;
}

static struct lh_request *ask_keys(struct taking *taking)
{
    return lh_acquire_all_start(taking->visit->client, taking->keys, taking->count,
                                &taking->options, on_done, taking, &taking->report);
}

static struct lh_request *ask_claim(struct taking *taking)
{
    return lh_once_claim_start(taking->visit->client, taking->keys[0], taking->claim, taking->once,
                               on_done, taking, &taking->report);
}

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The key that we stand in line for; until the store said so, the first. */
static const char *waited_for(const struct taking *taking)
{
    const struct visit *visit = taking->visit;
    return visit->waiting_for[0] != '\0' ? visit->waiting_for : taking->keys[0];
}

/* A signal gives up our place; a second one does not wait for the store to hear of it. */
static void try_once(struct taking *taking)
{
    struct lh_client *client = taking->visit->client;
    int stopped_by = 0;
    taking->over = false;
    struct lh_request *request = taking->ask(taking);
    while (request != NULL && !taking->over) {
        int64_t pause_ms = waiting_pause_ms(&taking->waiting), began_ms = now_ms();
        stop_sleep(&taking->stop, client, pause_ms);
        int number = stop_take();
        if (number != 0 && stopped_by != 0)
            _exit(EXIT_SIGNAL + stopped_by);
        if (number != 0)
            lh_cancel(request);
        stopped_by = number != 0 ? number : stopped_by;
        (void)lh_step(client);
        if (!taking->over && pause_ms >= 0 && now_ms() - began_ms >= pause_ms)
            waiting_show(&taking->waiting, waited_for(taking), now_ms());
    }
    waiting_end(&taking->waiting);
    taking->stopped_by = stopped_by;
}

/* ---- several tries ---- */

/* Up to a quarter more, so that those who met once do not meet again. */
static int64_t with_jitter(int64_t pause_ms)
{
    uint32_t random;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        random = (uint32_t)getpid() << 16;
    return pause_ms + (int64_t)((uint64_t)pause_ms * (random >> 16) >> 18);
}

static void pause_for(struct taking *taking, int64_t length_ms)
{
    int64_t end_ms = now_ms() + length_ms;
    for (int64_t left_ms = length_ms; left_ms > 0 && taking->stopped_by == 0;
         left_ms = end_ms - now_ms()) {
        stop_sleep(&taking->stop, NULL, left_ms);
        taking->stopped_by = stop_take();
    }
}

static void try_again(struct taking *taking)
{
    const struct settings *settings = &taking->visit->settings;
    int64_t limit_ms = settings->wait_ms, pause_ms = settings->backoff_first_ms;
    int64_t began_ms = now_ms();
    for (int64_t left = settings->retries; left > 0; left--) {
        int64_t jittered_ms = with_jitter(pause_ms);
        if (taking->report.outcome != LH_BUSY || taking->stopped_by != 0 ||
            (limit_ms >= 0 && now_ms() - began_ms + jittered_ms > limit_ms))
            return;
        say_detail(taking->visit, "%s; trying again in %lld ms", taking->report.text,
                   (long long)jittered_ms);
        pause_for(taking, jittered_ms);
        if (taking->stopped_by != 0)
            return;
        try_once(taking);
        pause_ms =
            pause_ms * 2 < settings->backoff_most_ms ? pause_ms * 2 : settings->backoff_most_ms;
    }
}

/* ---- what commands call ---- */

void take_options(const struct visit *visit, struct lh_acquire_options *out)
{
    static const struct lh_acquire_options usual = LH_ACQUIRE_OPTIONS_INIT;
    const struct settings *settings = &visit->settings;
    *out = usual;
    out->ttl_ms = settings->ttl_ms;
    out->wait_ms = settings->on_conflict == CONFLICT_WAIT ? settings->wait_ms : 0;
    out->cooldown_ms = settings->cooldown_ms;
    out->lock_delay_ms = settings->lock_delay_ms;
    out->priority = (int32_t)settings->priority;
    out->limit = (uint32_t)settings->limit;
    out->shared = settings->shared;
    out->request_id = settings->request_id;
    out->meta = settings->meta;
    out->meta_count = settings->meta_count;
}

int take_check_keys(const struct visit *visit, const char *const *keys, size_t count)
{
    if (count > LH_KEYS_MAX)
        return say_usage(visit, "at most %d keys can be taken together", LH_KEYS_MAX);
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(keys[i]);
        if (length == 0)
            return say_usage(visit, "a key must not be empty");
        if (length >= LH_KEY_SIZE)
            return say_usage(visit, "the key '%.32s...' has %zu bytes; 512 is the most", keys[i],
                             length);
        if (!text_is_clean(keys[i], length))
            return say_usage(visit, "key %zu is not UTF-8 or has control characters", i + 1);
        for (size_t j = 0; j < i; j++) {
            if (strcmp(keys[i], keys[j]) == 0)
                return say_usage(visit, "the key '%.64s' is named twice", keys[i]);
        }
    }
    return EXIT_DONE;
}

/* EXIT_DONE, or the status of a signal: then there is no lease. */
static int take(struct taking *taking)
{
    waiting_begin(&taking->waiting, taking->visit);
    stop_begin(&taking->stop);
    try_once(taking);
    if (taking->visit->settings.on_conflict == CONFLICT_RETRY)
        try_again(taking);
    stop_end(&taking->stop);
    if (taking->stopped_by == 0)
        return EXIT_DONE;
    if (taking->lease != NULL)
        (void)lh_abandon(&taking->lease, NULL);
    return EXIT_SIGNAL + taking->stopped_by;
}

int take_claim(struct visit *visit, const char *id, const struct lh_once_options *options,
               struct lh_lease **out_lease, struct lh_once *out_once, struct lh_report *out_report)
{
    struct taking taking = {.visit = visit,
                            .ask = ask_claim,
                            .keys = &id,
                            .count = 1,
                            .claim = options,
                            .once = out_once};
    int status = take(&taking);
    *out_lease = taking.lease;
    *out_report = taking.report;
    return status;
}

int take_keys(struct visit *visit, const char *const *keys, size_t count,
              const struct lh_acquire_options *options, struct lh_lease **out_lease)
{
    struct taking taking = {
        .visit = visit, .ask = ask_keys, .keys = keys, .count = count, .options = *options};
    int status = take_check_keys(visit, keys, count);
    if (status == EXIT_DONE)
        status = take(&taking);
    if (status != EXIT_DONE)
        return status;
    if (taking.lease == NULL)
        return say_report(visit, count == 1 ? keys[0] : NULL, &taking.report);
    *out_lease = taking.lease;
    return EXIT_DONE;
}
