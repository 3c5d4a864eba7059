/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public calls that acquire and release leases. Checks and copies the arguments, then posts a
 * task to the loop, where lib_lease.c continues.
 */
#include "face/lib/lib_internal.h"

#include "base/check.h"
#include "process/host.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *lease_add_meta(struct lh_lease *lease, const struct lh_acquire_options *options)
{
    static const char wrong[] =
        "usage: meta must be at most 16 pairs and 1 KiB of clean text, each name once";
    if (options->meta_count == 0)
        return NULL;
    if (options->meta == NULL || options->meta_count > META_PAIRS_MAX)
        return wrong;
    lease->meta = calloc(1, sizeof *lease->meta);
    if (lease->meta == NULL)
        return "failed: out of memory";
    for (size_t i = 0; i < options->meta_count; i++) {
        const struct lh_meta *pair = &options->meta[i];
        if (pair->name == NULL || pair->value == NULL ||
            !meta_add(lease->meta, pair->name, pair->value))
            return wrong;
    }
    lease->options.request.meta = lease->meta;
    return NULL;
}

static void lease_fill_options(struct lh_lease *lease, const struct lh_acquire_options *options)
{
    bool slot = options->limit > 0;
    lease->on_lost = options->on_lost;
    lease->user = options->user;
    lease->left = options->detach;
    lease->options = (struct lease_options){
        .request = {.verb = VERB_ACQUIRE,
                    .session = 1, /* valid; the executor sets its own */
                    .mode = slot              ? MODE_SLOT
                            : options->shared ? MODE_SHARED
                                              : MODE_EXCLUSIVE,
                    .limit = options->limit,
                    .priority = options->priority,
                    .ttl_ms = options->ttl_ms != 0 ? options->ttl_ms : lease->client->facts.ttl_ms,
                    .lock_delay_ms = options->lock_delay_ms,
                    .cooldown_ms = options->cooldown_ms,
                    .bound = !options->unbound,
                    .waits = options->wait_ms != 0},
        .wait_ms = options->wait_ms < WAIT_MAX_MS ? options->wait_ms : WAIT_MAX_MS,
        .cooldown_ms = options->cooldown_ms,
        .timeout_ms = lease->client->timeout_ms,
        .kill_grace_ms = KILL_GRACE_MS};
}

/* NULL, or the error. */
static const char *lease_check_options(const struct lh_lease *lease,
                                       const struct lh_acquire_options *options)
{
    struct request request = lease->options.request;
    if (options->limit > 0 && options->shared)
        return "a semaphore's slots are shared already; give a limit or shared, not both";
    if (options->limit > GRANTS_MAX)
        return "a semaphore has at most 64 slots";
    if (options->wait_ms < LH_WAIT_FOREVER)
        return "the wait must be 0 or longer, or LH_WAIT_FOREVER";
    if (options->cooldown_ms < 0 || options->cooldown_ms > SPAN_MAX_MS)
        return "the cooldown must be from 0 to 366 days";
    if (options->detach && !options->unbound)
        return "a bound lease ends with its process; detach it only if it is unbound";
    if (request.request == NULL)
        request.request = "-"; /* the executor makes one */
    for (size_t i = 0; i < lease->count; i++) {
        request.key = lease->parts[i].key;
        const char *broken = request_broken(&request);
        if (broken != NULL)
            return broken;
    }
    return NULL;
}

/* Out of line: a valid call needs no such frame. */
__attribute__((noinline)) static void report_usage(struct lh_report *report, const char *wrong)
{
    char message[LH_TEXT_SIZE];
    (void)snprintf(message, sizeof message, "usage: %s", wrong);
    (void)report_set(report, LH_USAGE, message);
}

bool client_admits_ttl(const struct lh_client *client, int64_t ttl_ms, struct lh_report *report)
{
    int64_t least_ms = client->facts.ttl_least_ms;
    if (ttl_ms >= least_ms)
        return true;
    char message[LH_TEXT_SIZE];
    (void)snprintf(message, sizeof message,
                   "usage: the TTL of %" PRId64 " ms is below the %s: store's minimum of %" PRId64
                   " ms; use a longer TTL",
                   ttl_ms, client->driver->scheme, least_ms);
    (void)report_set(report, LH_USAGE, message);
    return false;
}

/* Where the session keeps its bound grants alive together, all of them have the store's TTL. */
static bool lease_settle_ttl(struct lh_lease *lease, struct lh_report *report)
{
    const struct store_facts *facts = &lease->client->facts;
    struct request *request = &lease->options.request;
    if (facts->renews_by_session && request->bound)
        request->ttl_ms = facts->ttl_ms;
    return client_admits_ttl(lease->client, request->ttl_ms, report);
}

static size_t lease_string_size(const char *string)
{
    return string != NULL ? strlen(string) + 1 : 0;
}

static char *lease_copy_string(char **at, const char *string)
{
    if (string == NULL)
        return NULL;
    char *copy = *at;
    *at = stpcpy(copy, string) + 1;
    return copy;
}

/* With its keys and strings, in one piece. NULL when out of memory. */
static struct lh_lease *lease_allocate(struct lh_client *client, const char **keys, size_t count,
                                       const struct lh_acquire_options *options)
{
    size_t size = sizeof(struct lh_lease) + count * sizeof(struct lease_part);
    size_t strings = lease_string_size(options->holder) + lease_string_size(options->request_id);
    for (size_t i = 0; i < count; i++)
        strings += lease_string_size(keys[i]);
    struct lh_lease *lease = malloc(size + strings);
    if (lease == NULL)
        return NULL;
    memset(lease, 0, size);
    char *at = (char *)lease + size;
    lease->magic = LEASE_MAGIC;
    lease->client = client;
    lease->handle = lease;
    lease->count = count;
    for (size_t i = 0; i < count; i++) {
        ASSERT(keys[i] != NULL);
        lease->parts[i].lease = lease;
        lease->parts[i].key = lease_copy_string(&at, keys[i]);
    }
    lease_fill_options(lease, options);
    const char *holder = lease_copy_string(&at, options->holder);
    lease->options.request.holder = holder != NULL ? holder : client->holder;
    lease->options.request.any_holder = holder == NULL; /* "host:pid" differs in a repeat */
    lease->options.request.request = lease_copy_string(&at, options->request_id);
    lease->options.request.repeatable = options->request_id != NULL;
    multi_init(&lease->multi, count);
    return lease;
}

struct lh_lease *lease_new(struct lh_client *client, const char **keys, size_t count,
                           const struct lh_acquire_options *given, struct lh_report *report)
{
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    if (given != NULL && !sized_read(&options, sizeof options, given)) {
        (void)report_set(report, LH_USAGE,
                         "usage: the options have a wrong size, or a member that this library "
                         "does not know; initialise them with LH_ACQUIRE_OPTIONS_INIT");
        return NULL;
    }
    struct lh_lease *lease = lease_allocate(client, keys, count, &options);
    const char *wrong = lease != NULL ? lease_add_meta(lease, &options) : "failed: out of memory";
    if (wrong != NULL) {
        bool usage = strncmp(wrong, "usage", 5) == 0;
        (void)report_set(report, usage ? LH_USAGE : LH_FAILED, wrong);
    } else if ((wrong = lease_check_options(lease, &options)) != NULL) {
        report_usage(report, wrong);
    } else if (lease_settle_ttl(lease, report)) {
        return lease;
    }
    lease_free(lease);
    return NULL;
}

/* ---- acquire ---- */

/* A caller that waits, with the request on its stack. */
struct blocked {
    struct lh_request request;
    sem_t ended;
    enum lh_outcome outcome;
    struct lh_lease *granted;
    struct lh_report *report; /* the caller's, or NULL */
};

static void wake_blocked(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct blocked *blocked = user;
    blocked->outcome = report->outcome;
    blocked->granted = lease;
    report_copy(blocked->report, report);
    (void)sem_post(&blocked->ended);
}

static void request_prepare(struct lh_request *request, struct lh_client *client,
                            struct lh_lease *lease, void (*run)(struct inbox_item *task),
                            lh_done_fn *done, void *user)
{
    memset(request, 0, offsetof(struct lh_request, report));
    request->task.run = run;
    request->client = client;
    request->lease = lease;
    request->done = done;
    request->user = user;
    atomic_init(&request->users, 1);
    report_init(&request->report);
}

/* Runs it in the loop and waits. Out of line: the fast path needs no such large frame. */
__attribute__((noinline)) static enum lh_outcome
block_on(struct lh_client *client, struct lh_lease *lease, void (*run)(struct inbox_item *task),
         struct lh_lease **out_granted, struct lh_report *report)
{
    struct blocked blocked;
    request_prepare(&blocked.request, client, lease, run, wake_blocked, &blocked);
    blocked.request.borrowed = true;
    blocked.report = report;
    call_block(client, &blocked.request.task, &blocked.ended);
    if (blocked.outcome == LH_OK && out_granted != NULL)
        *out_granted = blocked.granted;
    return blocked.outcome;
}

enum lh_outcome lease_await(struct lh_lease *lease, struct lh_lease **out, struct lh_report *report)
{
    return block_on(lease->client, lease, lease_start, out, report);
}

/* LH_USAGE with a report if there are no keys, too many or duplicates. */
static enum lh_outcome sort_keys(const char *const *keys, size_t count, const char **sorted,
                                 struct lh_report *report)
{
    if (keys == NULL || count == 0 || count > LH_KEYS_MAX)
        return report_set(report, LH_USAGE, "usage: give 1 to 16 keys");
    for (size_t i = 0; i < count; i++) {
        if (keys[i] == NULL)
            return report_set(report, LH_USAGE, "usage: a key is NULL");
        sorted[i] = keys[i];
    }
    if (!multi_sort(sorted, count))
        return report_set(report, LH_USAGE, "usage: the same key is named twice");
    return LH_OK;
}

static enum lh_outcome acquire_all(struct lh_client *client, const char *const *keys, size_t count,
                                   const struct lh_acquire_options *options, struct lh_lease **out,
                                   struct lh_report *report)
{
    const char *sorted[LH_KEYS_MAX] = {NULL};
    enum lh_outcome outcome = client_admits(client, /* blocks= */ true, report);
    if (outcome == LH_OK && out == NULL)
        outcome = report_set(report, LH_USAGE, "usage: give a pointer for the lease");
    if (outcome == LH_OK)
        outcome = sort_keys(keys, count, sorted, report);
    if (outcome != LH_OK)
        return outcome;
    struct lh_lease *lease = lease_new(client, sorted, count, options, report);
    return lease != NULL ? lease_await(lease, out, report) : report->outcome;
}

enum lh_outcome lh_acquire_all(struct lh_client *client, const char *const *keys, size_t count,
                               const struct lh_acquire_options *options, struct lh_lease **out,
                               struct lh_report *report)
{
    if (report != NULL)
        return acquire_all(client, keys, count, options, out, report);
    struct lh_report own = LH_REPORT_INIT;
    return acquire_all(client, keys, count, options, out, &own);
}

enum lh_outcome lh_acquire(struct lh_client *client, const char *key,
                           const struct lh_acquire_options *options, struct lh_lease **out,
                           struct lh_report *report)
{
    enum lh_outcome outcome = client_admits(client, /* blocks= */ true, report);
    if (outcome != LH_OK)
        return outcome;
    if (client->fast_path != NULL && key != NULL && out != NULL &&
        fast_lease_acquire(client, key, options, out, report, &outcome))
        return outcome;
    return lh_acquire_all(client, &key, /* count= */ 1, options, out, report);
}

struct lh_request *lease_begin(struct lh_lease *lease, lh_done_fn *done, void *user,
                               struct lh_report *report)
{
    struct lh_client *client = lease->client;
    struct lh_request *request = done != NULL ? malloc(sizeof *request) : NULL;
    if (request == NULL) {
        lease_free(lease);
        (void)report_set(report, done == NULL ? LH_USAGE : LH_FAILED,
                         done == NULL ? "usage: give a function to call when done"
                                      : "failed: out of memory");
        return NULL;
    }
    request_prepare(request, client, lease, lease_start, done, user);
    atomic_store(&request->users, 2); /* the caller, until lh_request_free(), and the library */
    (void)report_ok(report, "ok: started");
    atomic_fetch_add(&client->started, 1);
    executor_post(client->executor, &request->task);
    return request;
}

struct lh_request *lh_acquire_all_start(struct lh_client *client, const char *const *keys,
                                        size_t count, const struct lh_acquire_options *options,
                                        lh_done_fn *done, void *user, struct lh_report *report)
{
    const char *sorted[LH_KEYS_MAX] = {NULL};
    if (client_admits_start(client, report) != LH_OK ||
        sort_keys(keys, count, sorted, report) != LH_OK)
        return NULL;
    struct lh_lease *lease = lease_new(client, sorted, count, options, report);
    return lease != NULL ? lease_begin(lease, done, user, report) : NULL;
}

struct lh_request *lh_acquire_start(struct lh_client *client, const char *key,
                                    const struct lh_acquire_options *options, lh_done_fn *done,
                                    void *user, struct lh_report *report)
{
    return lh_acquire_all_start(client, &key, /* count= */ 1, options, done, user, report);
}

/* ---- release ---- */

static struct lh_client *client_of(const struct lh_lease *lease)
{
    return fast_lease_is(lease) ? fast_lease_client(lease) : lease->client;
}

/* Frees the handle without a release. */
static void handle_free(struct lh_lease *lease)
{
    struct lh_lease *full = fast_lease_is(lease) ? fast_lease_promoted(lease) : lease;
    if (full != NULL)
        lease_free(full); /* and the fast lease with it */
    else
        fast_lease_free(lease);
}

enum lh_outcome lease_admits_end(struct lh_lease **lease, bool blocks, struct lh_report *report)
{
    enum lh_outcome outcome = LH_LOST;
    if (!sized_is_valid(report))
        return LH_USAGE;
    if (lease == NULL || *lease == NULL) {
        (void)report_set(report, LH_USAGE, "usage: there is no lease");
        return LH_USAGE;
    }
    struct lh_client *client = client_of(*lease);
    ASSERT(fast_lease_is(*lease) || (*lease)->magic == LEASE_MAGIC);
    if (client != NULL)
        outcome = client_admits(client, blocks, report);
    else
        (void)report_set(report, LH_LOST, "lost: the client was closed, which released the lease");
    if (outcome == LH_LOST) {
        handle_free(*lease);
        *lease = NULL;
    }
    return outcome;
}

/* In the loop; the handle may be a fast lease. */
static void handle_release(struct inbox_item *task)
{
    struct lh_request *request = (struct lh_request *)task;
    struct lh_lease *handle = request->lease;
    struct lh_lease *full = fast_lease_is(handle) ? fast_lease_promote(handle) : handle;
    if (full != NULL) {
        request->lease = full;
        lease_release(task);
        return;
    }
    (void)report_ok(&request->report, "ok: released");
    request_end(request, fast_lease_client(handle), NULL);
    fast_lease_free(handle);
}

/* The same without a cooldown. A fast lease has none. */
static void handle_abandon(struct inbox_item *task)
{
    const struct lh_request *request = (const struct lh_request *)task;
    if (!fast_lease_is(request->lease))
        lease_drop_cooldown(request->lease);
    handle_release(task);
}

static enum lh_outcome end_lease(struct lh_lease **lease, void (*how)(struct inbox_item *task),
                                 struct lh_report *report)
{
    enum lh_outcome outcome = lease_admits_end(lease, /* blocks= */ true, report);
    if (outcome != LH_OK)
        return outcome;
    if (fast_lease_is(*lease) && fast_lease_release(*lease))
        (void)report_ok(report, "ok: released");
    else
        outcome = block_on(client_of(*lease), *lease, how, NULL, report);
    *lease = NULL;
    return outcome;
}

static enum lh_outcome end_lease_start(struct lh_lease **lease,
                                       void (*how)(struct inbox_item *task), lh_done_fn *done,
                                       void *user)
{
    enum lh_outcome outcome = lease_admits_end(lease, /* blocks= */ false, NULL);
    if (outcome != LH_OK)
        return outcome;
    struct lh_client *client = client_of(*lease);
    if (done == NULL && fast_lease_is(*lease) && fast_lease_release(*lease)) {
        *lease = NULL;
        return LH_OK;
    }
    struct lh_request *request = malloc(sizeof *request);
    if (request == NULL)
        return LH_FAILED;
    request_prepare(request, client, *lease, how, done, user);
    *lease = NULL;
    atomic_fetch_add(&client->started, 1);
    executor_post(client->executor, &request->task);
    return LH_OK;
}

enum lh_outcome lh_release(struct lh_lease **lease, struct lh_report *report)
{
    return end_lease(lease, handle_release, report);
}

enum lh_outcome lh_release_start(struct lh_lease **lease, lh_done_fn *done, void *user)
{
    return end_lease_start(lease, handle_release, done, user);
}

enum lh_outcome lh_abandon(struct lh_lease **lease, struct lh_report *report)
{
    return end_lease(lease, handle_abandon, report);
}

enum lh_outcome lh_abandon_start(struct lh_lease **lease, lh_done_fn *done, void *user)
{
    return end_lease_start(lease, handle_abandon, done, user);
}

enum lh_outcome lh_detach(struct lh_lease **lease, struct lh_report *report)
{
    enum lh_outcome outcome = lease_admits_end(lease, /* blocks= */ true, report);
    if (outcome != LH_OK)
        return outcome;
    if (fast_lease_is(*lease) || (*lease)->options.request.bound)
        return report_set(report, LH_USAGE,
                          "usage: a bound lease ends with its process; acquire it unbound");
    outcome = block_on((*lease)->client, *lease, lease_detach, NULL, report);
    *lease = NULL;
    return outcome;
}

/* ---- without a request to the store ---- */

int64_t lh_ttl_ms(const struct lh_lease *lease)
{
    if (lease == NULL)
        return 0;
    return fast_lease_is(lease) ? fast_lease_ttl_ms(lease) : lease->options.request.ttl_ms;
}

int64_t lh_remaining_ms(const struct lh_lease *lease)
{
    const struct lh_client *client = lease != NULL ? client_of(lease) : NULL;
    if (client == NULL || client_is_forked(client))
        return 0;
    const struct lh_lease *full = fast_lease_is(lease) ? fast_lease_promoted(lease) : lease;
    if (full == NULL)
        return fast_lease_ttl_ms(lease) * 2 / 3;
    int64_t rest_ms = atomic_load(&full->deadline_ms) - host_boot_ms();
    return rest_ms > 0 ? rest_ms : 0;
}

bool lh_held(const struct lh_lease *lease)
{
    return lh_remaining_ms(lease) > 0;
}

uint64_t lh_token_at(const struct lh_lease *lease, size_t index)
{
    if (lease == NULL)
        return 0;
    if (fast_lease_is(lease))
        return index == 0 ? fast_lease_token(lease) : 0;
    return index < lease->count ? atomic_load(&lease->parts[index].token) : 0;
}

uint64_t lh_token(const struct lh_lease *lease)
{
    return lh_token_at(lease, 0);
}

const char *lh_key_at(const struct lh_lease *lease, size_t index)
{
    if (lease == NULL)
        return NULL;
    if (fast_lease_is(lease))
        return index == 0 ? fast_lease_key(lease) : NULL;
    return index < lease->count ? lease->parts[index].key : NULL;
}
