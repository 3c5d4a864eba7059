/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LOCK.CLAIM, with a library whose claims the test grants and refuses itself. The store is that of
 * the kit, so that releases and bindings are real. tests/e2e/serve_claim.py has a server.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/text.h"
#include "daemon_kit.h"
#include "leasehold_github.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { CLAIMS_MAX = 64 };

/* The handles and started claims of the library. */
struct lh_claims {
    char label[128];
    enum lh_claim_order order;
    int file;
};

struct lh_claim_request {
    struct lh_claims *claims;
    struct lh_claim_options options;
    struct lh_claim *out;
    lh_done_fn *done;
    void *user;
    char holder[64], request_id[80];
    bool cancelled, over;
};

static struct lh_claim_request requests[CLAIMS_MAX];
static size_t request_count;
static int handles;         /* open ones */
static unsigned may_denies; /* keys below this number; 0: none */
static int may_asked;

static struct daemon *served;
static struct daemon_options options;
static struct peer *ann, *bob;

/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
bool __real_may(const struct may_identity *who, enum may_verb verb, const char *key);
/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
bool __wrap_may(const struct may_identity *who, enum may_verb verb, const char *key);
/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
enum lh_outcome __wrap_lh_claims_open(struct lh_client *client,
                                      const struct lh_claims_options *given, struct lh_claims **out,
                                      struct lh_report *report);
/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
void __wrap_lh_claims_close(struct lh_claims **claims);
/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
int __wrap_lh_claims_fd(const struct lh_claims *claims);
/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
enum lh_outcome __wrap_lh_claims_step(struct lh_claims *claims);
/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
struct lh_claim_request *__wrap_lh_claim_begin_start(struct lh_claims *claims,
                                                     const struct lh_claim_options *given,
                                                     struct lh_claim *out, lh_done_fn *done,
                                                     void *user, struct lh_report *report);
/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
void __wrap_lh_claim_cancel(struct lh_claim_request *request);

/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
bool __wrap_may(const struct may_identity *who, enum may_verb verb, const char *key)
{
    if (verb == MAY_TAKE)
        may_asked++;
    return __real_may(who, verb, key) && (verb != MAY_TAKE || strtoull(key, NULL, 10) == 0 ||
                                          strtoull(key, NULL, 10) >= may_denies);
}

/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
enum lh_outcome __wrap_lh_claims_open(struct lh_client *client,
                                      const struct lh_claims_options *given, struct lh_claims **out,
                                      struct lh_report *report)
{
    struct lh_claims *claims = calloc(1, sizeof *claims);
    (void)client;
    (void)report;
    if (claims == NULL)
        abort();
    text_copy(claims->label, sizeof claims->label, given->label);
    claims->order = given->order;
    claims->file = eventfd(0, EFD_CLOEXEC); /* nobody writes to it */
    handles++;
    *out = claims;
    return LH_OK;
}

/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
void __wrap_lh_claims_close(struct lh_claims **claims)
{
    (void)close((*claims)->file);
    free(*claims);
    *claims = NULL;
    handles--;
}

/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
int __wrap_lh_claims_fd(const struct lh_claims *claims)
{
    return claims->file;
}

/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
enum lh_outcome __wrap_lh_claims_step(struct lh_claims *claims)
{
    (void)claims;
    return LH_OK;
}

/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
struct lh_claim_request *__wrap_lh_claim_begin_start(struct lh_claims *claims,
                                                     const struct lh_claim_options *given,
                                                     struct lh_claim *out, lh_done_fn *done,
                                                     void *user, struct lh_report *report)
{
    struct lh_claim_request *request = &requests[request_count++];
    (void)report;
    *request = (struct lh_claim_request){
        .claims = claims, .options = *given, .out = out, .done = done, .user = user};
    text_copy(request->holder, sizeof request->holder, given->holder);
    text_copy(request->request_id, sizeof request->request_id,
              given->request_id != NULL ? given->request_id : "");
    return request;
}

/* As the library, it calls back later. */
/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
void __wrap_lh_claim_cancel(struct lh_claim_request *request)
{
    request->cancelled = true;
}

/* ---- what the library does ---- */

static void end_claim(struct lh_claim_request *request, enum lh_outcome outcome, uint64_t token)
{
    struct lh_report report = LH_REPORT_INIT;
    assert_false(request->over);
    request->over = true;
    report.outcome = outcome;
    report.token = token;
    (void)snprintf(report.text, sizeof report.text, "%s: said", lh_outcome_name(outcome));
    request->done(request->user, NULL, &report);
}

/* Takes the key in the store, as a claim does. */
static uint64_t take(const char *key)
{
    struct peer *other = peer_new(served);
    char command[128];
    (void)snprintf(command, sizeof command, "LOCK.ACQUIRE %s claimer 60000", key);
    uint64_t token = strtoull(reply_value(peer_ask(other, command), "token"), NULL, 10);
    peer_free(other);
    assert_true(token > 0);
    return token;
}

static void grant(struct lh_claim_request *request, uint64_t number)
{
    char key[24];
    (void)snprintf(key, sizeof key, "%llu", (unsigned long long)number);
    assert_true(request->options.admits(request->options.user, number));
    uint64_t token = take(key);
    request->out->number = number;
    text_copy(request->out->title, sizeof request->out->title, "a~title");
    text_copy(request->out->url, sizeof request->out->url, "https://x/1");
    end_claim(request, LH_OK, token);
}

/* ---- kit ---- */

static int open_all(void **state)
{
    (void)state;
    request_count = 0;
    may_denies = 0;
    served = kit_daemon_new();
    options = *served->options;
    options.store = "github://o/r";
    served->options = &options;
    ann = peer_new(served);
    bob = peer_new(served);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    peer_leave(&ann);
    peer_leave(&bob);
    for (size_t i = 0; i < request_count; i++)
        if (!requests[i].over)
            end_claim(&requests[i], LH_BUSY, 0);
    daemon_free(served);
    return handles;
}

static struct lh_claim_request *claim(struct peer *peer, const char *command)
{
    size_t before = request_count;
    peer_send(peer, command);
    for (int i = 0; i < 5; i++)
        kit_daemon_turn(served, 0);
    if (request_count == before)
        fail_msg("%s: nothing was started: %s", command, peer_message(peer));
    return &requests[request_count - 1];
}

static void expect(struct peer *peer, const char *command, const char *part)
{
    const char *reply = peer_ask(peer, command);
    if (strstr(reply, part) == NULL)
        fail_msg("%s\n  says %.600s\n  not  %s", command, reply, part);
}

static void expect_next(struct peer *peer, const char *part)
{
    const char *message = peer_message(peer);
    if (message == NULL || strstr(message, part) == NULL)
        fail_msg("says %.600s\n  not %s", message != NULL ? message : "nothing", part);
}

/* ---- results ---- */

static void a_grant_names_its_issue(void **state)
{
    (void)state;
    struct lh_claim_request *request =
        claim(ann, "LOCK.CLAIM to~do ann 30000 META {\"a\":\"b\"} ORDER priority-label");
    assert_string_equal(request->claims->label, "to do");
    assert_int_equal(request->claims->order, LH_CLAIM_BY_PRIORITY);
    assert_string_equal(request->holder, "ann");
    assert_int_equal(request->options.ttl_ms, 30000);
    assert_int_equal(request->options.wait_ms, 0);
    assert_int_equal(request->options.meta_count, 1);
    assert_int_equal(request->options.first, 0);
    grant(request, 42);
    const char *reply = peer_message(ann);
    assert_string_equal(reply_value(reply, "outcome"), "ok");
    assert_string_equal(reply_value(reply, "issue"), "42");
    assert_string_equal(reply_value(reply, "key"), "42");
    assert_string_equal(reply_value(reply, "title"), "a~title");
    assert_string_equal(reply_value(reply, "url"), "https://x/1");
    assert_string_equal(reply_value(reply, "holder"), "ann");
    assert_string_equal(reply_value(reply, "ends_in_ms"), "30000");
    assert_true(strtoull(reply_value(reply, "token"), NULL, 10) > 0);
    assert_int_equal(served->bindings.count, 0);
}

static void nothing_free_is_busy(void **state)
{
    (void)state;
    end_claim(claim(ann, "LOCK.CLAIM todo ann 30000"), LH_BUSY, 0);
    expect_next(ann, "refusal contention");
    struct lh_claim_request *request = claim(ann, "LOCK.CLAIM todo ann 30000 WAIT 500");
    assert_int_equal(request->options.wait_ms, 500);
    assert_int_equal(served->waiters, 1);
    end_claim(request, LH_BUSY, 0);
    expect_next(ann, "refusal timeout");
    assert_int_equal(served->waiters, 0);
    end_claim(claim(ann, "LOCK.CLAIM todo ann 30000"), LH_DENIED, 0);
    expect_next(ann, "outcome denied");
    end_claim(claim(ann, "LOCK.CLAIM todo ann 30000"), LH_USAGE, 0);
    expect_next(ann, "-ERR said");
}

static void wrong_calls_are_errors(void **state)
{
    (void)state;
    expect(ann, "LOCK.CLAIM a,b ann 1000", "-ERR the label");
    expect(ann, "LOCK.CLAIM  ann 1000", "-ERR the label");
    expect(ann, "LOCK.CLAIM a ann 0", "-ERR ttl_ms");
    expect(ann, "LOCK.CLAIM a ann 1000 ORDER age", "-ERR ORDER needs number or priority-label");
    expect(ann, "LOCK.CLAIM a ann 1000 SHARED", "-ERR unknown word 'SHARED'");
    expect(ann, "LOCK.CLAIM a ann", "-ERR wrong number");
    options.store = "file:/x";
    expect(ann, "LOCK.CLAIM a ann 1000", "-ERR LOCK.CLAIM needs a github:// store");
    assert_int_equal(request_count, 0);
}

/* D5: the keys are only known while the library chooses. */
static void may_is_asked_for_each_issue(void **state)
{
    (void)state;
    struct lh_claim_request *request = claim(ann, "LOCK.CLAIM todo ann 30000");
    may_denies = 7;
    may_asked = 0;
    assert_false(request->options.admits(request->options.user, 3));
    assert_false(request->options.admits(request->options.user, 6));
    assert_true(request->options.admits(request->options.user, 7));
    assert_int_equal(may_asked, 3);
    ann->connection->who = &(struct may_identity){.name = "nobody"}; /* as it is then */
    assert_false(request->options.admits(request->options.user, 7));
    const struct may_right right = {.verbs = MAY_TAKE, .prefix = "7"};
    const struct may_identity who = {"taker", &right, 1};
    ann->connection->who = &who;
    assert_true(request->options.admits(request->options.user, 7));
    struct lh_claim_request *bound = claim(bob, "LOCK.CLAIM todo bob 30000 BIND");
    assert_true(bound->options.admits(bound->options.user, 7));
    bob->connection->who = &who; /* BIND renews, which needs the right */
    assert_false(bound->options.admits(bound->options.user, 7));
    bob->connection->who = &may_everything;
    ann->connection->who = &may_everything;
    connection_end(ann->connection, CONNECTION_CUT);
    assert_false(request->options.admits(request->options.user, 7));
}

static void a_bound_claim_is_released_with_its_connection(void **state)
{
    (void)state;
    grant(claim(ann, "LOCK.CLAIM todo ann 30000 BIND"), 5);
    expect_next(ann, "outcome ok");
    assert_int_equal(served->bindings.count, 1);
    peer_leave(&ann);
    expect(bob, "LOCK.STATUS 5", "state free");
}

/* ---- the end of a wait ---- */

static void a_late_grant_is_released(void **state)
{
    (void)state;
    struct lh_claim_request *request = claim(ann, "LOCK.CLAIM todo ann 30000 WAIT -1");
    assert_true(request->options.admits(request->options.user, 5));
    peer_leave(&ann);
    assert_true(request->cancelled);
    uint64_t token = take("5");
    request->out->number = 5;
    end_claim(request, LH_OK, token);
    expect(bob, "LOCK.STATUS 5", "state free");
}

static void a_repeat_tries_its_issue_first(void **state)
{
    (void)state;
    struct lh_claim_request *request = claim(ann, "LOCK.CLAIM todo ann 30000 WAIT -1 ID x");
    char id[80];
    text_copy(id, sizeof id, request->request_id);
    assert_true(id[0] != '\0');
    expect(bob, "LOCK.CLAIM todo ann 30000 ID x", "refusal contention");
    expect(bob, "LOCK.CLAIM other ann 30000 ID x", "outcome mismatch");
    expect(bob, "LOCK.CLAIM todo bob 30000 ID x", "outcome mismatch");
    expect(bob, "LOCK.ACQUIRE todo ann 30000 ID x", "outcome mismatch");
    peer_leave(&ann);
    uint64_t token = take("9");
    request->out->number = 9;
    end_claim(request, LH_OK, token);
    expect(bob, "LOCK.STATUS 9", "state held"); /* the repeat gets it */
    request = claim(bob, "LOCK.CLAIM todo ann 30000 ID x");
    assert_int_equal(request->options.first, 9);
    assert_string_equal(request->request_id, id);
    end_claim(request, LH_BUSY, 0);
    expect_next(bob, "outcome busy");
    request = claim(bob, "LOCK.CLAIM other bob 30000 ID x"); /* the id is free again */
    assert_int_equal(request->options.first, 0);
}

static void a_claim_is_cancelled_by_its_id(void **state)
{
    (void)state;
    struct lh_claim_request *request = claim(ann, "LOCK.CLAIM todo ann 30000 WAIT -1 ID x");
    expect(bob, "LOCK.CANCEL x", "outcome ok");
    assert_true(request->cancelled);
    end_claim(request, LH_BUSY, 0);
    expect_next(ann, "refusal cancelled");
    expect(bob, "LOCK.CANCEL x", "outcome stale");
}

static void a_drain_ends_claims(void **state)
{
    (void)state;
    struct lh_claim_request *waits = claim(ann, "LOCK.CLAIM todo ann 30000 WAIT -1");
    expect(bob, "LOCK.ACQUIRE k bob 30000 BIND", "outcome ok");
    drain_begin(served);
    assert_true(waits->cancelled);
    end_claim(waits, LH_BUSY, 0);
    expect_next(ann, "text unavailable: the daemon is stopping; try another one");
    expect(bob, "LOCK.CLAIM todo bob 30000", "outcome unavailable");
}

/* ---- queues ---- */

static void labels_share_a_handle_and_old_ones_are_closed(void **state)
{
    char command[64];
    (void)state;
    struct lh_claim_request *first = claim(ann, "LOCK.CLAIM first ann 30000 WAIT -1");
    for (int round = 0; round < 2; round++) {
        end_claim(claim(bob, "LOCK.CLAIM a bob 30000"), LH_BUSY, 0);
        expect_next(bob, "outcome busy");
    }
    assert_int_equal(handles, 2);
    end_claim(claim(bob, "LOCK.CLAIM a bob 30000 ORDER priority-label"), LH_BUSY, 0);
    expect_next(bob, "outcome busy");
    assert_int_equal(handles, 3);
    for (int i = 0; i < 40; i++) {
        (void)snprintf(command, sizeof command, "LOCK.CLAIM label-%d bob 30000", i);
        end_claim(claim(bob, command), LH_BUSY, 0);
        expect_next(bob, "outcome busy");
    }
    assert_int_equal(handles, 32);
    assert_string_equal(first->claims->label, "first"); /* it is in use */
    end_claim(first, LH_BUSY, 0);
    expect_next(ann, "outcome busy");
}

#define CLAIM(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(a_grant_names_its_issue),
        CLAIM(nothing_free_is_busy),
        CLAIM(wrong_calls_are_errors),
        CLAIM(may_is_asked_for_each_issue),
        CLAIM(a_bound_claim_is_released_with_its_connection),
        CLAIM(a_late_grant_is_released),
        CLAIM(a_repeat_tries_its_issue_first),
        CLAIM(a_claim_is_cancelled_by_its_id),
        CLAIM(a_drain_ends_claims),
        CLAIM(labels_share_a_handle_and_old_ones_are_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
