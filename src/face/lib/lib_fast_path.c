/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases of the fast path (runtime/fast_path.h), acquired and released in the caller's own thread.
 * When any other operation needs the key, the loop promotes the hold: it writes the grant to the
 * store, and the local queue adopts it as a full lease under the same handle. Until then no other
 * client can acquire the key, so the lease needs no renewal. Decides nothing.
 */
#include "face/lib/lib_internal.h"

#include "base/check.h"
#include "process/host.h"
#include "store/translate.h"
#include "wire/record_codec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_MAX = 4096 /* one grant with every character escaped */ };

struct fast_lease {
    uint32_t magic;
    struct lh_client *client;            /* NULL once it is closed */
    _Atomic(struct lh_lease *) promoted; /* the full lease, or NULL */
    int64_t ttl_ms;
    lh_lost_fn *on_lost;
    void *user;
    struct fast_path_hold hold;
    char key[];
};

static const struct fast_lease *fast_lease_const(const struct lh_lease *lease)
{
    ASSERT(fast_lease_is(lease));
    return (const struct fast_lease *)(const void *)lease;
}

static struct fast_lease *fast_lease_of(struct lh_lease *lease)
{
    ASSERT(fast_lease_is(lease));
    return (struct fast_lease *)(void *)lease;
}

static struct fast_lease *fast_lease_of_hold(struct fast_path_hold *hold)
{
    return (struct fast_lease *)(void *)((char *)hold - offsetof(struct fast_lease, hold));
}

static uint64_t token_of_hold(const struct fast_path_hold *hold)
{
    return token_of(&(struct stamp){.revision = hold->node.revision}, /* n= */ 0);
}

struct lh_lease *fast_lease_promoted(const struct lh_lease *lease)
{
    return atomic_load(&fast_lease_const(lease)->promoted);
}

struct lh_client *fast_lease_client(const struct lh_lease *lease)
{
    const struct fast_lease *fast = fast_lease_const(lease);
    const struct lh_lease *full = atomic_load(&fast->promoted);
    return full != NULL ? full->client : fast->client;
}

void fast_lease_free(struct lh_lease *lease)
{
    struct fast_lease *fast = fast_lease_of(lease);
    fast->magic = 0;
    free(fast);
}

/* ---- without a request to the store ---- */

uint64_t fast_lease_token(const struct lh_lease *lease)
{
    return token_of_hold(&fast_lease_const(lease)->hold);
}

const char *fast_lease_key(const struct lh_lease *lease)
{
    return fast_lease_const(lease)->key;
}

int64_t fast_lease_ttl_ms(const struct lh_lease *lease)
{
    return fast_lease_const(lease)->ttl_ms;
}

/* ---- acquire and release, in the caller's thread ---- */

/* The options of 0.2.0 end before `detach`. */
static bool can_read_options(const struct lh_acquire_options *options)
{
    return options->size == sizeof *options
               ? !options->detach
               : options->size == offsetof(struct lh_acquire_options, detach);
}

/* A hold is exclusive and bound, and has no other options than the TTL and on_lost. */
static bool can_use_fast_path(const struct lh_client *client,
                              const struct lh_acquire_options *options)
{
    return can_read_options(options) && options->cooldown_ms == 0 && options->lock_delay_ms == 0 &&
           options->priority == 0 && options->limit == 0 && !options->shared && !options->unbound &&
           options->holder == NULL && options->request_id == NULL && options->meta_count == 0 &&
           options->ttl_ms >= 0 &&
           (options->ttl_ms == 0 || options->ttl_ms >= client->facts.ttl_least_ms) &&
           options->ttl_ms <= TTL_MAX_MS && options->wait_ms >= LH_WAIT_FOREVER;
}

/* For a caller with an older, smaller report. Out of line because of its large frame. */
__attribute__((noinline)) static void report_granted_short(struct lh_report *report, uint64_t token)
{
    struct lh_report full = LH_REPORT_INIT;
    (void)report_ok(&full, "ok: granted");
    full.token = token;
    report_copy(report, &full);
}

static enum lh_outcome report_hold_granted(struct lh_report *report, uint64_t token)
{
    if (report != NULL && report->size < sizeof *report) {
        report_granted_short(report, token);
        return LH_OK;
    }
    (void)report_ok(report, "ok: granted");
    if (report != NULL)
        report->token = token;
    return LH_OK;
}

static enum lh_outcome report_hold_busy(const struct lh_client *client, const char *key,
                                        const struct fast_path_hold *holder,
                                        struct lh_report *report)
{
    struct task_news news = {.key_info = {.state = KEY_HELD,
                                          .holder = client->holder,
                                          .token = token_of_hold(holder),
                                          .ends_in_ms = -1,
                                          .takeover_in_ms = -1}};
    struct lh_report full = LH_REPORT_INIT;
    if (report == NULL)
        return LH_BUSY;
    report_news(client, key, &news, OUTCOME_BUSY, &full);
    full.since_ms = age_of(holder->since_ms, host_boot_ms());
    report_copy(report, &full);
    return LH_BUSY;
}

bool fast_lease_acquire(struct lh_client *client, const char *key,
                        const struct lh_acquire_options *options, struct lh_lease **out,
                        struct lh_report *report, enum lh_outcome *out_outcome)
{
    size_t length = strnlen(key, KEY_MAX + 1);
    struct fast_path_hold holder;
    if ((options != NULL && !can_use_fast_path(client, options)) || length == 0 ||
        length > KEY_MAX || !text_is_clean(key, length))
        return false;
    struct fast_lease *fast = malloc(sizeof *fast + length + 1);
    if (fast == NULL)
        return false;
    bool waits = options != NULL && options->wait_ms != 0;
    fast->magic = FAST_LEASE_MAGIC;
    fast->client = client;
    atomic_init(&fast->promoted, NULL);
    fast->ttl_ms = options != NULL && options->ttl_ms > 0 ? options->ttl_ms : client->facts.ttl_ms;
    fast->on_lost = options != NULL ? options->on_lost : NULL;
    fast->user = options != NULL ? options->user : NULL;
    fast->hold.since_ms = host_boot_ms();
    memcpy(fast->key, key, length + 1);
    enum fast_path_result reply =
        fast_path_acquire(client->fast_path, &fast->hold, fast->key, length, &holder);
    if (reply == FAST_PATH_ACQUIRED) {
        *out = (struct lh_lease *)(void *)fast;
        *out_outcome = report_hold_granted(report, token_of_hold(&fast->hold));
        return true;
    }
    free(fast);
    if (reply == FAST_PATH_MISS || waits)
        return false;
    atomic_fetch_add_explicit(&client->fast_refusals, 1, memory_order_relaxed);
    *out_outcome = report_hold_busy(client, key, &holder, report);
    return true;
}

/* Out of line: few holds are timed. */
__attribute__((noinline)) static void fast_lease_time(const struct fast_lease *fast)
{
    fast_path_time(fast->client->fast_path, &fast->hold, host_boot_ms());
}

bool fast_lease_release(struct lh_lease *lease)
{
    struct fast_lease *fast = fast_lease_of(lease);
    if (!fast_path_release(fast->client->fast_path, &fast->hold))
        return false;
    if (fast_path_is_timed(&fast->hold))
        fast_lease_time(fast);
    fast_lease_free(lease);
    return true;
}

/* ---- promotion, in the loop ---- */

/* The record of the hold as a grant that is renewed by this write. */
static void build_record(const struct lh_client *client, const struct fast_lease *fast,
                         const char *request, struct record *record)
{
    record_init(record, fast->key);
    struct grant *grant = record_add_grant(record);
    text_copy(grant->holder, sizeof grant->holder, client->holder);
    text_copy(grant->request, sizeof grant->request, request);
    grant->session = client->session;
    grant->mode = MODE_EXCLUSIVE;
    grant->bound = true;
    grant->granted =
        (struct stamp){.revision = fast->hold.node.revision, .time_ms = fast->hold.since_ms};
    grant->renewed = (struct stamp){.revision = THIS_WRITE};
    grant->ttl_ms = fast->ttl_ms;
}

struct written {
    enum reply_status result;
    uint64_t revision;
};

static void on_write_reply(void *caller, const struct store_reply *reply)
{
    *(struct written *)caller =
        (struct written){.result = reply->result, .revision = reply->written.revision};
}

static bool store_grant(struct lh_client *client, const struct fast_lease *fast,
                        const char *request, uint64_t *out_revision)
{
    char bytes[BYTES_MAX];
    struct written written = {.result = REPLY_TROUBLE};
    build_record(client, fast, request, &client->scratch);
    size_t length = record_encode(&client->scratch, bytes, sizeof bytes);
    ASSERT(length > 0);
    struct store_request swap = {.verb = VERB_STORE_SWAP,
                                 .key = fast->key,
                                 .condition = {.kind = IF_ABSENT},
                                 .bytes = bytes,
                                 .length = length};
    summarize_record(&client->scratch, client->scratch.grants[0].session, &swap.summary);
    client->driver->submit(client->state, &swap, on_write_reply, &written);
    /* A key on the fast path has no record, so there is no conflict. */
    ASSERT(written.result == REPLY_OK || written.result == REPLY_TROUBLE);
    *out_revision = written.revision;
    return written.result == REPLY_OK;
}

/* Needs no memory. */
static void erase_grant(struct lh_client *client, const char *key, uint64_t revision)
{
    struct written written = {.result = REPLY_TROUBLE};
    struct store_request erase = {.verb = VERB_STORE_DELETE,
                                  .key = key,
                                  .condition = {.kind = IF_REVISION, .revision = revision}};
    client->driver->submit(client->state, &erase, on_write_reply, &written);
    ASSERT(written.result == REPLY_OK);
}

/* False when out of memory: nothing is changed. The full lease refers to the mark until its end. */
static bool promote_hold(struct lh_client *client, struct fast_lease *fast,
                         struct fast_path_mark *mark)
{
    char request[REQUEST_MAX + 1];
    uint64_t revision;
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct fast_path_hold *hold = &fast->hold;
    /* Unique by its session. */
    (void)snprintf(request, sizeof request, "%" PRIx64 "-light-%" PRIu64, client->session,
                   token_of_hold(hold));
    options.ttl_ms = fast->ttl_ms;
    options.on_lost = fast->on_lost;
    options.user = fast->user;
    options.request_id = request;
    if (!store_grant(client, fast, request, &revision))
        return false;
    struct lh_lease *full = lease_adopt(client, fast->key, &options, token_of_hold(hold),
                                        hold->since_ms, (struct lh_lease *)(void *)fast);
    if (full == NULL) {
        erase_grant(client, fast->key, revision);
        return false;
    }
    fast_path_mark_ref(mark);
    full->parts[0].mark = mark;
    atomic_store(&fast->promoted, full);
    return true;
}

bool fast_lease_mark_key(struct lh_client *client, const char *key,
                         struct fast_path_mark **out_mark)
{
    struct fast_path_hold *hold = NULL;
    *out_mark = NULL;
    if (client->fast_path == NULL)
        return true;
    struct fast_path_mark *mark = fast_path_mark(client->fast_path, key, &hold);
    if (mark == NULL)
        return false;
    (void)memory_raise_revision(client->state, mark->revision_floor); /* tokens must grow */
    if (hold != NULL && !promote_hold(client, fast_lease_of_hold(hold), mark)) {
        fast_path_restore(client->fast_path, mark, hold);
        return false;
    }
    *out_mark = mark;
    return true;
}

void fast_lease_unmark_key(struct lh_client *client, struct fast_path_mark **mark)
{
    if (*mark != NULL)
        fast_path_mark_unref(client->fast_path, *mark);
    *mark = NULL;
}

static void note_presence(void *caller, const struct store_reply *reply)
{
    *(bool *)caller = reply->present;
}

static enum mark_state mark_state_of(void *owner, const char *key)
{
    struct lh_client *client = owner;
    bool present = true;
    struct store_request read = {.verb = VERB_STORE_READ, .key = key};
    if (local_queue_has_key(client->local_queue, key))
        return MARK_BUSY;
    client->driver->submit(client->state, &read, note_presence, &present);
    return present ? MARK_KEPT : MARK_UNUSED;
}

void fast_lease_settle(struct lh_client *client)
{
    if (client->fast_path != NULL)
        fast_path_settle(client->fast_path, mark_state_of, client,
                         memory_raise_revision(client->state, 0));
}

struct lh_lease *fast_lease_promote(struct lh_lease *lease)
{
    struct fast_lease *fast = fast_lease_of(lease);
    struct lh_client *client = fast->client;
    struct fast_path_mark *mark = NULL;
    if (atomic_load(&fast->promoted) == NULL && fast_lease_mark_key(client, fast->key, &mark)) {
        executor_tick(client->executor); /* adopts it, so that it can be released */
        fast_lease_unmark_key(client, &mark);
    }
    struct lh_lease *full = atomic_load(&fast->promoted);
    if (full == NULL) /* out of memory: only a watch can miss the change */
        fast_path_drop(client->fast_path, &fast->hold);
    return full;
}

/* ---- lists and close ---- */

struct hold_list {
    struct lh_client *client;
    lh_view_fn *fn;
    void *user;
    struct fast_path_node *copies; /* of the holds to show */
    bool enough, scarce;
};

/* The shard is locked: the user's function, which may release the lease, is called later. */
static bool pick(void *owner, const struct fast_path_hold *hold)
{
    struct hold_list *hold_list = owner;
    size_t size = sizeof(struct fast_lease) + strlen(hold->node.key) + 1;
    struct fast_lease *copy = malloc(size);
    hold_list->scarce = copy == NULL;
    if (copy == NULL)
        return false;
    memcpy(copy, (const char *)hold - offsetof(struct fast_lease, hold), size);
    copy->hold.node.next = hold_list->copies;
    hold_list->copies = &copy->hold.node;
    return true;
}

static bool show_hold(struct hold_list *hold_list, const struct fast_lease *fast)
{
    struct lh_client *client = hold_list->client;
    struct stamp at = {.revision = fast->hold.node.revision, .time_ms = host_boot_ms()};
    struct lh_view_source source;
    struct lh_view view;
    build_record(client, fast, "light", &client->scratch);
    record_resolve(&client->scratch, &at);
    status_fill(client, &client->scratch, &at, fast->key, &source, &view);
    view.written_ago_ms = view.since_ms;
    client_enter_callback(client);
    bool more = hold_list->fn(hold_list->user, &view);
    client_leave_callback(client);
    return more;
}

static bool show_picked(void *owner)
{
    struct hold_list *hold_list = owner;
    while (hold_list->copies != NULL) {
        struct fast_lease *copy = fast_lease_of_hold((struct fast_path_hold *)hold_list->copies);
        hold_list->copies = copy->hold.node.next;
        hold_list->enough = hold_list->enough || !show_hold(hold_list, copy);
        free(copy);
    }
    return !hold_list->enough;
}

bool fast_lease_list(struct lh_client *client, const char *prefix, lh_view_fn *fn, void *user,
                     bool *out_enough)
{
    struct hold_list hold_list = {.client = client, .fn = fn, .user = user};
    struct fast_path_visitor visitor = {.pick = pick, .picked = show_picked, .owner = &hold_list};
    if (client->fast_path != NULL && !fast_path_each(client->fast_path, prefix, &visitor))
        (void)show_picked(&hold_list); /* the copies made before memory ran out */
    *out_enough = hold_list.enough;
    return !hold_list.scarce;
}

static void orphan(void *owner, struct fast_path_hold *hold)
{
    (void)owner;
    fast_lease_of_hold(hold)->client = NULL;
}

void fast_lease_orphan_all(struct lh_client *client)
{
    if (client->fast_path != NULL)
        fast_path_clear(client->fast_path, orphan, NULL);
}
