/* SPDX-License-Identifier: Apache-2.0 */
/* Lists, histories, watches, and events. */
#include "lib_kit.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { KEYS = 20 };

struct seen {
    int count, most;
    char last[LH_KEY_SIZE], meta[64];
    enum lh_state states[64];
    struct lh_client *client;
    enum lh_outcome within;
};

static bool note(void *user, const struct lh_view *status)
{
    struct seen *seen = user;
    struct lh_view ignored = LH_VIEW_INIT;
    if (seen->count < 64)
        seen->states[seen->count] = status->state;
    seen->count++;
    (void)snprintf(seen->last, sizeof seen->last, "%s", status->key);
    if (status->meta_count > 0)
        (void)snprintf(seen->meta, sizeof seen->meta, "%s=%s", status->meta[0].name,
                       status->meta[0].value);
    if (seen->client != NULL)
        seen->within = lh_status(seen->client, "k", &ignored, NULL);
    return seen->most == 0 || seen->count < seen->most;
}

static void a_list_tells_every_key_under_a_prefix(void **state)
{
    (void)state;
    struct lh_lease *leases[KEYS];
    struct lh_report report = LH_REPORT_INIT;
    struct lh_meta pair = {"commit", "3f2a"};
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct seen all = {0}, some = {.most = 3}, none = {0}, one = {0};
    struct lh_client *client = kit_open(NULL);
    options.meta = &pair;
    options.meta_count = 1;
    for (int i = 0; i < KEYS; i++) {
        char key[32];
        (void)snprintf(key, sizeof key, "%s/%d", i % 2 == 0 ? "even" : "odd", i);
        leases[i] = kit_acquire(client, key, i == 7 ? &options : NULL);
    }
    all.client = client;
    ASSERT_OUTCOME(lh_list(client, NULL, note, &all, &report), LH_OK, &report);
    assert_int_equal(all.count, KEYS);
    assert_int_equal(all.within, LH_USAGE);
    assert_string_equal(all.meta, "commit=3f2a");
    ASSERT_OUTCOME(lh_list(client, "odd/", note, &some, &report), LH_OK, &report);
    assert_int_equal(some.count, 3);
    ASSERT_OUTCOME(lh_list(client, "odd/13", note, &one, &report), LH_OK, &report);
    assert_int_equal(one.count, 1);
    assert_string_equal(one.last, "odd/13");
    assert_int_equal(one.states[0], LH_HELD);
    for (int i = 0; i < KEYS; i++)
        kit_release(&leases[i], LH_OK);
    ASSERT_OUTCOME(lh_list(client, "", note, &none, &report), LH_OK, &report);
    assert_int_equal(none.count, 0);
    ASSERT_OUTCOME(lh_list(client, "", NULL, NULL, &report), LH_USAGE, &report);
    lh_close(&client);
}

struct kinds {
    int count;
    struct lh_view running, failed, watermark, lock;
    char result[64], value[64];
};

static bool note_kind(void *user, const struct lh_view *view)
{
    struct kinds *kinds = user;
    kinds->count++;
    if (view->kind == LH_LOCK)
        kinds->lock = *view;
    else if (view->kind == LH_ONCE)
        *(view->state == LH_HELD ? &kinds->running : &kinds->failed) = *view;
    else
        kinds->watermark = *view;
    if (view->kind == LH_ONCE && view->state == LH_COOLING_DOWN)
        (void)snprintf(kinds->result, sizeof kinds->result, "%s", view->result);
    if (view->kind == LH_WATERMARK)
        (void)snprintf(kinds->value, sizeof kinds->value, "%s", view->result);
    return true;
}

static void a_list_names_ids_and_watermarks(void **state)
{
    (void)state;
    struct kinds kinds = {0};
    struct lh_once once = LH_ONCE_INIT;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_view view = LH_VIEW_INIT;
    struct lh_completion done = LH_COMPLETION_INIT;
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *lease = kit_acquire(client, "k", NULL);
    done.status = 3;
    done.result = "no room";
    ASSERT_OUTCOME(lh_once_begin(client, "r", NULL, &once, &report), LH_OK, &report);
    ASSERT_OUTCOME(lh_mark(client, "f", &done, &report), LH_OK, &report);
    ASSERT_OUTCOME(lh_watermark_advance(client, "w", "", "42", &report), LH_OK, &report);
    ASSERT_OUTCOME(lh_list(client, "", note_kind, &kinds, &report), LH_OK, &report);
    assert_int_equal(kinds.count, 4);
    assert_string_equal(kinds.lock.key, "k");
    assert_string_equal(kinds.running.key, "once:r");
    assert_true(kinds.running.token == once.token);
    assert_int_equal(kinds.running.status, 0);
    assert_string_equal(kinds.failed.key, "once:f");
    assert_int_equal(kinds.failed.status, 3);
    assert_string_equal(kinds.result, "no room");
    assert_string_equal(kinds.watermark.key, "watermark:w");
    assert_int_equal(kinds.watermark.state, LH_FREE);
    assert_true(kinds.watermark.since_ms >= 0 && kinds.watermark.holder[0] != '\0');
    assert_string_equal(kinds.value, "42");
    ASSERT_OUTCOME(lh_status(client, "once:f", &view, &report), LH_OK, &report);
    assert_int_equal(view.kind, LH_ONCE);
    assert_int_equal(view.status, 3);
    assert_null(view.result);
    kit_release(&lease, LH_OK);
    lh_close(&client);
}

static void a_history_tells_the_newest_first(void **state)
{
    (void)state;
    struct seen seen = {0};
    struct lh_report report = LH_REPORT_INIT;
    struct lh_client *client = kit_open(NULL);
    for (int i = 0; i < 3; i++) {
        struct lh_lease *lease = kit_acquire(client, "k", NULL);
        kit_release(&lease, LH_OK);
    }
    ASSERT_OUTCOME(lh_history(client, "k", note, &seen, &report), LH_OK, &report);
    assert_int_equal(seen.count, 6);
    for (int i = 0; i < 6; i++)
        assert_int_equal(seen.states[i], i % 2 == 0 ? LH_FREE : LH_HELD);
    lh_close(&client);
}

struct closer {
    int count;
    struct lh_view view;
    char reason[64], note[64];
};

static bool look_closely(void *user, const struct lh_view *view)
{
    struct closer *closer = user;
    closer->count++;
    closer->view = *view;
    (void)snprintf(closer->reason, sizeof closer->reason, "%s", view->reason);
    closer->note[0] = '\0';
    if (view->meta_count == 1)
        (void)snprintf(closer->note, sizeof closer->note, "%s=%s", view->meta[0].name,
                       view->meta[0].value);
    return false;
}

static void a_look_shows_notes_renewal_and_the_reason_of_a_break(void **state)
{
    (void)state;
    struct lh_report report = LH_REPORT_INIT;
    struct closer closer = {0};
    struct lh_meta pair = {"commit", "3f2a"};
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_client *client = kit_open(NULL);
    options.meta = &pair;
    options.meta_count = 1;
    options.unbound = true;
    ASSERT_OUTCOME(lh_status_details(client, "k", look_closely, &closer, &report), LH_OK, &report);
    assert_int_equal(closer.view.state, LH_FREE);
    assert_int_equal(closer.view.renewed_ago_ms, -1);
    struct lh_lease *lease = kit_acquire(client, "k", &options);
    uint64_t token = lh_token(lease);
    ASSERT_OUTCOME(lh_detach(&lease, &report), LH_OK, &report);
    kit_sleep_ms(50);
    ASSERT_OUTCOME(lh_renew(client, "k", token, 0, &report), LH_OK, &report);
    ASSERT_OUTCOME(lh_status_details(client, "k", look_closely, &closer, &report), LH_OK, &report);
    assert_int_equal(closer.count, 2);
    assert_string_equal(closer.note, "commit=3f2a");
    assert_string_equal(closer.reason, "");
    assert_true(closer.view.since_ms >= 50);
    assert_true(closer.view.renewed_ago_ms >= 0);
    assert_true(closer.view.renewed_ago_ms <= closer.view.since_ms - 50);
    assert_false(closer.view.broken);
    ASSERT_OUTCOME(lh_break(client, "k", "fire", false, &report), LH_OK, &report);
    ASSERT_OUTCOME(lh_status_details(client, "k", look_closely, &closer, &report), LH_OK, &report);
    assert_true(closer.view.broken);
    assert_string_equal(closer.reason, "fire");
    ASSERT_OUTCOME(lh_status_details(client, "k", NULL, NULL, &report), LH_USAGE, &report);
    ASSERT_OUTCOME(lh_status_details(client, "", look_closely, &closer, &report), LH_USAGE,
                   &report);
    lh_close(&client);
}

static void await_count(atomic_int *count, int expected)
{
    int64_t until_ms = kit_now_ms() + KIT_WITHIN_MS;
    while (atomic_load(count) < expected && kit_now_ms() < until_ms)
        kit_sleep_ms(5);
    assert_int_equal(atomic_load(count), expected);
}

struct ending {
    atomic_int over;
    struct lh_lease *lease;
    struct lh_report report;
};

static void on_end(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct ending *ending = user;
    ending->lease = lease;
    ending->report = *report;
    atomic_store(&ending->over, 1);
}

static void await_waiters(struct lh_client *client, const char *key, uint32_t expected,
                          struct lh_view *out)
{
    struct lh_report report = LH_REPORT_INIT;
    for (int i = 0; i < 1000; i++) {
        ASSERT_OUTCOME(lh_status(client, key, out, &report), LH_OK, &report);
        if (out->waiters == expected)
            return;
        kit_sleep_ms(5);
    }
    fail_msg("%s never had %u waiters", key, expected);
}

/* Several keys, started: the request waits for the second, the report names it, and it can be
 * cancelled. */
static void several_keys_are_started_and_given_up(void **state)
{
    (void)state;
    static const char *const keys[] = {"b", "a"};
    struct lh_report report = LH_REPORT_INIT;
    struct lh_view view = LH_VIEW_INIT;
    struct ending first = {0}, second = {0};
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_client *holder = kit_open(NULL), *ahead = kit_open(NULL), *client = kit_open(NULL);
    struct lh_lease *lease = kit_acquire(holder, "b", NULL);
    options.wait_ms = LH_WAIT_FOREVER;
    struct lh_request *other =
        lh_acquire_all_start(ahead, &keys[0], 1, &options, on_end, &first, &report);
    kit_started(other);
    await_waiters(client, "b", 1, &view);
    assert_int_equal(view.position, 0);
    struct lh_request *request =
        lh_acquire_all_start(client, keys, 2, &options, on_end, &second, &report);
    kit_started(request);
    await_waiters(client, "b", 2, &view);
    assert_int_equal(view.position, 2);
    assert_int_equal(kit_state(client, "a"), LH_HELD);
    lh_cancel(request);
    await_count(&second.over, 1);
    assert_int_equal(second.report.outcome, LH_BUSY);
    assert_null(second.lease);
    assert_int_equal(kit_state(client, "a"), LH_FREE);
    lh_cancel(other);
    await_count(&first.over, 1);
    options.wait_ms = 0;
    ASSERT_OUTCOME(lh_acquire_all(client, keys, 2, &options, &second.lease, &report), LH_BUSY,
                   &report);
    assert_string_equal(report.key, "b");
    kit_release(&lease, LH_OK);
    assert_null(lh_acquire_all_start(client, keys, 0, NULL, on_end, &second, &report));
    assert_int_equal(report.outcome, LH_USAGE);
    lh_close(&client);
    lh_close(&ahead);
    lh_close(&holder);
}

/* ---- holders and waiters ---- */

enum { SLOTS = 2, QUEUED = 2 };

struct parties {
    struct lh_holder holders[SLOTS + 1];
    struct lh_waiter waiters[QUEUED + 1];
    char meta[SLOTS][32], record[LH_RECORD_SIZE];
    size_t holder_count, waiter_count, record_length;
};

static bool note_parties(void *user, const struct lh_view *view)
{
    struct parties *parties = user;
    for (size_t i = 0; i <= SLOTS; i++) {
        struct lh_holder *holder = &parties->holders[i];
        *holder = (struct lh_holder)LH_HOLDER_INIT;
        if (!lh_view_holder(view, i, holder))
            break;
        parties->holder_count = i + 1;
        if (holder->meta_count == 1)
            (void)snprintf(parties->meta[i], sizeof parties->meta[i], "%s=%s", holder->meta[0].name,
                           holder->meta[0].value);
    }
    for (size_t i = 0; i <= QUEUED; i++) {
        parties->waiters[i] = (struct lh_waiter)LH_WAITER_INIT;
        if (!lh_view_waiter(view, i, &parties->waiters[i]))
            break;
        parties->waiter_count = i + 1;
    }
    parties->record_length = lh_view_record(view, parties->record, sizeof parties->record);
    assert_int_equal(lh_view_record(view, parties->meta[0], 1), 0);
    return true;
}

/* A semaphore of two slots with two holders, and a queue that the priority orders. */
static void every_holder_and_waiter_is_shown(void **state)
{
    (void)state;
    static const char *const names[] = {"first", "second", "low", "high"};
    static struct parties seen;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_view view = LH_VIEW_INIT;
    struct lh_holder ignored = LH_HOLDER_INIT;
    struct lh_meta pair = {"run", "7"};
    struct lh_client *clients[4];
    struct lh_lease *leases[SLOTS];
    struct lh_request *requests[QUEUED];
    struct ending endings[QUEUED] = {0};
    for (size_t i = 0; i < 4; i++) {
        struct lh_open_options open = LH_OPEN_OPTIONS_INIT;
        struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
        open.holder = names[i];
        clients[i] = kit_open(&open);
        options.limit = SLOTS;
        options.meta = &pair;
        options.meta_count = i == 1 ? 1 : 0;
        options.priority = i == 3 ? 5 : 0;
        if (i < SLOTS) {
            leases[i] = kit_acquire(clients[i], "k", &options);
            continue;
        }
        options.wait_ms = LH_WAIT_FOREVER;
        requests[i - SLOTS] =
            lh_acquire_start(clients[i], "k", &options, on_end, &endings[i - SLOTS], &report);
        kit_started(requests[i - SLOTS]);
        await_waiters(clients[0], "k", (uint32_t)(i - SLOTS + 1), &view);
    }
    assert_false(lh_view_holder(&view, 0, &ignored)); /* a view of lh_status() has none */
    ASSERT_OUTCOME(lh_status_details(clients[0], "k", note_parties, &seen, &report), LH_OK,
                   &report);
    assert_int_equal(seen.holder_count, SLOTS);
    for (size_t i = 0; i < SLOTS; i++) {
        assert_string_equal(seen.holders[i].name, names[i]);
        assert_true(seen.holders[i].token == lh_token(leases[i]));
        assert_true(seen.holders[i].since_ms >= 0 && seen.holders[i].ends_in_ms > 0);
        assert_int_equal(seen.holders[i].ttl_ms, 30000);
        assert_true(seen.holders[i].bound && !seen.holders[i].broken);
    }
    assert_string_equal(seen.meta[1], "run=7");
    assert_int_equal(seen.waiter_count, QUEUED);
    assert_string_equal(seen.waiters[0].name, "high");
    assert_int_equal(seen.waiters[0].priority, 5);
    assert_true(seen.waiters[0].since_ms >= 0 && seen.waiters[0].since_ms < KIT_WITHIN_MS);
    assert_true(seen.waiters[1].since_ms >= seen.waiters[0].since_ms);
    assert_string_equal(seen.waiters[1].name, "low");
    assert_int_equal(seen.waiters[0].position, 1);
    assert_int_equal(seen.waiters[1].position, 2);
    assert_true(seen.waiters[0].since_ms >= 0); /* it was queued last */
    assert_true(seen.waiters[1].since_ms >= seen.waiters[0].since_ms);
    assert_true(seen.record_length == strlen(seen.record));
    assert_non_null(strstr(seen.record, "\"key\":\"k\",\"limit\":2"));
    for (size_t i = 0; i < QUEUED; i++) { /* all, before a release grants to one of them */
        lh_cancel(requests[i]);
        await_count(&endings[i].over, 1);
    }
    for (size_t i = 0; i < SLOTS; i++)
        kit_release(&leases[i], LH_OK);
    for (size_t i = 0; i < 4; i++)
        lh_close(&clients[i]);
}

static void a_store_without_history_says_so(void **state)
{
    (void)state;
    struct seen seen = {0};
    struct lh_report report = LH_REPORT_INIT;
    struct lh_client *client = kit_open(NULL);
    ASSERT_OUTCOME(lh_history(client, "k", note, &seen, &report), LH_USAGE, &report);
    lh_close(&client);
}

struct stream {
    atomic_int held, free, ended;
};

static void on_change(void *user, const struct lh_view *status, const struct lh_report *report)
{
    struct stream *stream = user;
    (void)report;
    if (status == NULL)
        atomic_fetch_add(&stream->ended, 1);
    else if (status->state == LH_HELD)
        atomic_fetch_add(&stream->held, 1);
    else
        atomic_fetch_add(&stream->free, 1);
}

static void a_watch_tells_changes_under_its_prefix(void **state)
{
    (void)state;
    struct stream streams[2] = {0};
    struct lh_watcher *watches[2] = {NULL, NULL};
    struct lh_report report = LH_REPORT_INIT;
    struct lh_client *client = kit_open(NULL);
    ASSERT_OUTCOME(lh_watch(client, "a/", on_change, &streams[0], &watches[0], &report), LH_OK,
                   &report);
    ASSERT_OUTCOME(lh_watch(client, NULL, on_change, &streams[1], &watches[1], &report), LH_OK,
                   &report);
    struct lh_lease *lease = kit_acquire(client, "a/1", NULL);
    await_count(&streams[0].held, 1);
    await_count(&streams[1].held, 1);
    kit_release(&lease, LH_OK);
    await_count(&streams[0].free, 1);
    ASSERT_OUTCOME(lh_unwatch(&watches[0], &report), LH_OK, &report);
    assert_null(watches[0]);
    lease = kit_acquire(client, "a/2", NULL);
    await_count(&streams[1].held, 2);
    assert_int_equal(atomic_load(&streams[0].held), 1);
    ASSERT_OUTCOME(lh_unwatch(&watches[0], &report), LH_USAGE, &report);
    kit_release(&lease, LH_OK);
    lh_close(&client); /* ends the other one, too */
    assert_int_equal(atomic_load(&streams[1].ended), 0);
}

static struct {
    atomic_int kinds[LH_EVENT_BREAKER + 1];
    atomic_int refused_busy, negative;
    atomic_int breaker_opened, breaker_closed;
    atomic_bool breaker_twice; /* opened though it was open, or closed though it was not */
} events;

static void on_breaker(const struct lh_event *event)
{
    bool opens = event->outcome == LH_UNAVAILABLE;
    bool was_open = atomic_load(&events.breaker_opened) > atomic_load(&events.breaker_closed);
    if (opens == was_open)
        atomic_store(&events.breaker_twice, true);
    atomic_fetch_add(opens ? &events.breaker_opened : &events.breaker_closed, 1);
}

static void on_event(void *user, const struct lh_event *event)
{
    assert_ptr_equal(user, &events);
    atomic_fetch_add(&events.kinds[event->kind], 1);
    if (event->kind == LH_EVENT_REFUSED && event->outcome == LH_BUSY)
        atomic_fetch_add(&events.refused_busy, 1);
    if (event->kind == LH_EVENT_BREAKER)
        on_breaker(event);
    if (event->after_us < 0 || event->key == NULL)
        atomic_fetch_add(&events.negative, 1);
}

static void events_carry_what_metrics_need(void **state)
{
    (void)state;
    struct lh_open_options open = LH_OPEN_OPTIONS_INIT;
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_lease *second = NULL;
    memset(&events, 0, sizeof events);
    open.on_event = on_event;
    open.user = &events;
    options.ttl_ms = 1500;
    struct lh_client *client = kit_open(&open);
    struct lh_lease *lease = kit_acquire(client, "k", &options);
    assert_int_equal(lh_acquire(client, "k", NULL, &second, NULL), LH_BUSY);
    await_count(&events.kinds[LH_EVENT_RENEWED], 1);
    kit_release(&lease, LH_OK);
    assert_int_equal(atomic_load(&events.kinds[LH_EVENT_ATTEMPT]), 2);
    assert_int_equal(atomic_load(&events.kinds[LH_EVENT_GRANTED]), 1);
    assert_int_equal(atomic_load(&events.kinds[LH_EVENT_REFUSED]), 1);
    assert_int_equal(atomic_load(&events.refused_busy), 1);
    assert_int_equal(atomic_load(&events.kinds[LH_EVENT_RELEASED]), 1);
    assert_int_equal(atomic_load(&events.kinds[LH_EVENT_LOST]), 0);
    assert_true(atomic_load(&events.kinds[LH_EVENT_STORE]) >= 3);
    lh_close(&client);
    assert_int_equal(atomic_load(&events.negative), 0);
}

static void a_takeover_is_told(void **state)
{
    (void)state;
    struct lh_open_options open = LH_OPEN_OPTIONS_INIT;
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    memset(&events, 0, sizeof events);
    open.on_event = on_event;
    open.user = &events;
    options.ttl_ms = 1000;
    options.unbound = true;
    struct lh_client *client = kit_open(&open);
    struct lh_lease *lease = kit_acquire(client, "k", &options);
    assert_int_equal(lh_detach(&lease, NULL), LH_OK);
    assert_int_equal(atomic_load(&events.kinds[LH_EVENT_TAKEOVER]), 0);
    kit_sleep_ms(1300);
    lease = kit_acquire(client, "k", NULL);
    assert_int_equal(atomic_load(&events.kinds[LH_EVENT_TAKEOVER]), 1);
    kit_release(&lease, LH_OK);
    lease = kit_acquire(client, "k", NULL);
    assert_int_equal(atomic_load(&events.kinds[LH_EVENT_TAKEOVER]), 1);
    kit_release(&lease, LH_OK);
    lh_close(&client);
}

/* The event follows the outcome in the same turn of the loop, possibly after the call returned. */
static bool breaker_is_closed(void)
{
    int64_t until_ms = kit_now_ms() + KIT_WITHIN_MS;
    while (atomic_load(&events.breaker_closed) < atomic_load(&events.breaker_opened) &&
           kit_now_ms() < until_ms)
        kit_sleep_ms(5);
    return atomic_load(&events.breaker_closed) == atomic_load(&events.breaker_opened);
}

static void a_breaker_that_opens_is_told(void **state)
{
    (void)state;
    struct lh_open_options open = LH_OPEN_OPTIONS_INIT;
    memset(&events, 0, sizeof events);
    open.on_event = on_event;
    open.user = &events;
    open.timeout_ms = 200;
    /* The client that creates the store has the default timeout. */
    struct lh_client *maker = kit_open(NULL), *client = kit_open(&open);
    struct lh_lease *lease = NULL;
    int stopped = kit_stop_store();
    for (int i = 0; i < 50 && atomic_load(&events.breaker_opened) == 0; i++)
        assert_int_equal(lh_acquire(client, "k", NULL, &lease, NULL), LH_UNAVAILABLE);
    assert_int_equal(atomic_load(&events.breaker_opened), 1);
    assert_int_equal(atomic_load(&events.breaker_closed), 0);
    kit_resume(stopped);
    /* A disk that is slower than the timeout opens the breaker again, with another event. */
    int64_t until_ms = kit_now_ms() + KIT_WITHIN_MS;
    while (lh_acquire(client, "k", NULL, &lease, NULL) != LH_OK && kit_now_ms() < until_ms)
        kit_sleep_ms(50);
    assert_non_null(lease);
    assert_true(breaker_is_closed());
    assert_false(atomic_load(&events.breaker_twice));
    assert_int_equal(atomic_load(&events.negative), 0);
    (void)lh_release(&lease, NULL);
    lh_close(&client);
    lh_close(&maker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_MEMORY(a_list_tells_every_key_under_a_prefix),
        ON_FILE(a_list_tells_every_key_under_a_prefix),
        ON_MEMORY(a_list_names_ids_and_watermarks),
        ON_FILE(a_list_names_ids_and_watermarks),
        ON_FILE(a_history_tells_the_newest_first),
        ON_MEMORY(a_look_shows_notes_renewal_and_the_reason_of_a_break),
        ON_FILE(a_look_shows_notes_renewal_and_the_reason_of_a_break),
        ON_FILE(several_keys_are_started_and_given_up),
        ON_FILE(every_holder_and_waiter_is_shown),
        ON_MEMORY(a_store_without_history_says_so),
        ON_MEMORY(a_watch_tells_changes_under_its_prefix),
        ON_FILE(a_watch_tells_changes_under_its_prefix),
        ON_MEMORY(events_carry_what_metrics_need),
        ON_FILE(events_carry_what_metrics_need),
        ON_MEMORY(a_takeover_is_told),
        ON_FILE(a_takeover_is_told),
        ON_FILE(a_breaker_that_opens_is_told),
    };
    return cmocka_run_group_tests_name("lib_look", tests, NULL, NULL);
}
