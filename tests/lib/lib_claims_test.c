/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Started claims of an own_loop client whose server nobody runs: their turns, their cancel and
 * their end. tests/e2e/serve_claim.py has issues.
 */
#include "lib_kit.h"

#include "leasehold_github.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct lh_client *client;
static struct lh_claims *claims;

struct waiting {
    struct lh_claim claim;
    int done, order; /* times, and when */
    enum lh_outcome outcome;
    char text[LH_TEXT_SIZE];
};

static int ended;

static void on_done(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct waiting *waiting = user;
    struct lh_claim none = LH_CLAIM_INIT;
    struct lh_lease *blocked = NULL;
    assert_null(lease);
    waiting->done++;
    waiting->order = ++ended;
    waiting->outcome = report->outcome;
    memcpy(waiting->text, report->text, sizeof waiting->text);
    assert_int_equal(lh_claim_next(claims, NULL, &blocked, &none, NULL), LH_USAGE);
    assert_int_equal(lh_claims_step(claims), LH_USAGE);
}

/* ---- a server that lists an issue, and answers nothing else ---- */

enum { SERVED_MAX = 16 };

static int server = -1, served[SERVED_MAX];
static pthread_t server_thread;
static atomic_int unanswered;

static void *serve(void *unused)
{
    static const char body[] = "[{\"number\":7,\"labels\":[{\"name\":\"todo\"}]}]";
    (void)unused;
    for (int i = 0; i < SERVED_MAX; i++) {
        char request[8192] = "", reply[512];
        size_t length = 0;
        served[i] = accept(server, NULL, NULL);
        if (served[i] < 0)
            break;
        for (ssize_t got = 1; got > 0 && strstr(request, "\r\n\r\n") == NULL;) {
            got = recv(served[i], request + length, sizeof request - 1 - length, 0);
            length += got > 0 ? (size_t)got : 0;
        }
        if (strstr(request, "/issues?state=open") == NULL) {
            atomic_fetch_add(&unanswered, 1);
            continue;
        }
        (void)snprintf(reply, sizeof reply,
                       "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                       "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                       sizeof body - 1, body);
        (void)send(served[i], reply, strlen(reply), MSG_NOSIGNAL);
        (void)close(served[i]);
        served[i] = -1;
    }
    return NULL;
}

static void server_start(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    char url[64];
    for (int i = 0; i < SERVED_MAX; i++)
        served[i] = -1;
    atomic_store(&unanswered, 0);
    server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(server, SERVED_MAX), 0);
    assert_int_equal(getsockname(server, (struct sockaddr *)&address, &length), 0);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(address.sin_port));
    (void)setenv("GITHUB_API_URL", url, 1);
    assert_int_equal(pthread_create(&server_thread, NULL, serve, NULL), 0);
}

static void server_stop(void)
{
    (void)shutdown(server, SHUT_RDWR); /* ends accept() */
    (void)pthread_join(server_thread, NULL);
    for (int i = 0; i < SERVED_MAX; i++)
        if (served[i] >= 0)
            (void)close(served[i]);
    (void)close(server);
}

/* ---- kit ---- */

static int open_at_url(void)
{
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    struct lh_claims_options of_claims = LH_CLAIMS_OPTIONS_INIT;
    struct lh_report report = LH_REPORT_INIT;
    ended = 0;
    (void)setenv("GITHUB_TOKEN", "t", 1);
    options.own_loop = true;
    options.timeout_ms = 500;
    ASSERT_OUTCOME(lh_open("github://a/b?poll=1s", &options, &client, &report), LH_OK, &report);
    of_claims.label = "todo";
    ASSERT_OUTCOME(lh_claims_open(client, &of_claims, &claims, &report), LH_OK, &report);
    return 0;
}

static int open_all(void **state)
{
    (void)state;
    (void)setenv("GITHUB_API_URL", "http://127.0.0.1:1", 1); /* where nobody listens */
    return open_at_url();
}

static int close_all(void **state)
{
    (void)state;
    lh_claims_close(&claims);
    lh_close(&client);
    return 0;
}

static int open_server(void **state)
{
    (void)state;
    server_start();
    return open_at_url();
}

static int close_server(void **state)
{
    int status = close_all(state);
    server_stop();
    return status;
}

static struct lh_claim_request *start(struct waiting *waiting, int64_t wait_ms)
{
    struct lh_claim_options options = LH_CLAIM_OPTIONS_INIT;
    struct lh_report report = LH_REPORT_INIT;
    *waiting = (struct waiting){.claim = LH_CLAIM_INIT};
    options.wait_ms = wait_ms;
    options.ttl_ms = 60000;
    options.holder = "me";
    struct lh_claim_request *request =
        lh_claim_begin_start(claims, &options, &waiting->claim, on_done, waiting, &report);
    assert_non_null(request);
    ASSERT_OUTCOME(report.outcome, LH_OK, &report);
    assert_int_equal(waiting->done, 0);
    return request;
}

static void run_once(void)
{
    struct pollfd files[] = {{.fd = lh_fd(client), .events = POLLIN},
                             {.fd = lh_claims_fd(claims), .events = POLLIN}};
    (void)poll(files, 2, 20);
    if (files[0].revents != 0)
        assert_int_equal(lh_step(client), LH_OK);
    if (files[1].revents != 0)
        assert_int_equal(lh_claims_step(claims), LH_OK);
}

static void run_until(const int *done)
{
    int64_t until_ms = kit_now_ms() + KIT_WITHIN_MS;
    while (*done == 0 && kit_now_ms() < until_ms)
        run_once();
    assert_int_equal(*done, 1);
}

/* Until the store waits for an answer about the issue's lock. */
static void run_until_taking(void)
{
    int64_t until_ms = kit_now_ms() + KIT_WITHIN_MS;
    while (atomic_load(&unanswered) == 0 && kit_now_ms() < until_ms)
        run_once();
    assert_true(atomic_load(&unanswered) > 0);
}

static void a_server_that_is_away_ends_the_claim(void **state)
{
    struct waiting one, two;
    (void)state;
    (void)start(&one, LH_WAIT_FOREVER); /* a wait is for an issue, not for a server */
    (void)start(&two, 0);
    run_until(&two.done);
    assert_int_equal(one.done, 1);
    assert_int_equal(one.outcome, LH_UNAVAILABLE);
    assert_int_equal(two.outcome, LH_UNAVAILABLE);
    assert_memory_equal(one.text, "unavailable: issues of a/b: ", 28);
    assert_true(one.order < two.order); /* in turn */
    assert_true(two.claim.poll_ms > 0);
}

static void a_cancelled_claim_is_busy(void **state)
{
    struct waiting one, two, three;
    (void)state;
    struct lh_claim_request *first = start(&one, LH_WAIT_FOREVER);
    struct lh_claim_request *second = start(&two, LH_WAIT_FOREVER);
    lh_claim_cancel(second); /* before its turn */
    lh_claim_cancel(second);
    assert_int_equal(two.done, 0); /* later */
    assert_int_equal(lh_claims_step(claims), LH_OK);
    lh_claim_cancel(first); /* its request may be on the way */
    run_until(&two.done);
    assert_int_equal(two.outcome, LH_BUSY);
    assert_string_equal(two.text, "busy: the caller gave up");
    run_until(&one.done);
    (void)start(&three, 0); /* the handle is not left to the cancelled one */
    run_until(&three.done);
    assert_int_equal(three.outcome, LH_UNAVAILABLE);
    lh_claim_cancel(NULL);
}

static void the_end_of_the_handle_ends_its_claims(void **state)
{
    struct waiting one, two;
    (void)state;
    (void)start(&one, LH_WAIT_FOREVER);
    (void)start(&two, LH_WAIT_FOREVER);
    assert_int_equal(lh_claims_step(claims), LH_OK); /* the first is active */
    lh_claims_close(&claims);
    assert_int_equal(one.done, 1);
    assert_int_equal(two.done, 1);
    assert_int_equal(one.outcome, LH_BUSY);
    assert_string_equal(two.text, "busy: the claims are being closed");
}

/* ---- while the lock is taken ---- */

static bool admits_none(void *user, uint64_t number)
{
    *(uint64_t *)user = number;
    return false;
}

static void an_issue_that_is_not_admitted_is_not_taken(void **state)
{
    struct lh_claim_options options = LH_CLAIM_OPTIONS_INIT;
    struct lh_report report = LH_REPORT_INIT;
    struct waiting one = {.claim = LH_CLAIM_INIT};
    uint64_t number = 0;
    (void)state;
    options.admits = admits_none;
    options.user = &number;
    assert_non_null(lh_claim_begin_start(claims, &options, &one.claim, on_done, &one, &report));
    run_until(&one.done);
    assert_int_equal(one.outcome, LH_BUSY);
    assert_string_equal(one.text, "busy: no open issue of a/b with label todo is free");
    assert_int_equal(number, 7);
    assert_int_equal(atomic_load(&unanswered), 0);
}

static void a_cancel_waits_for_the_store(void **state)
{
    struct waiting one;
    (void)state;
    struct lh_claim_request *request = start(&one, LH_WAIT_FOREVER);
    run_until_taking();
    lh_claim_cancel(request);
    run_until(&one.done);
    assert_int_equal(one.outcome, LH_BUSY);
    assert_string_equal(one.text, "busy: the caller gave up");
}

static void the_handle_may_end_before_the_store_has_answered(void **state)
{
    struct waiting one, two;
    (void)state;
    (void)start(&one, 0);
    (void)start(&two, 0);
    run_until_taking();
    lh_claims_close(&claims);
    assert_int_equal(one.done, 1);
    assert_int_equal(two.done, 1);
    assert_int_equal(one.outcome, LH_BUSY);
    lh_close(&client); /* waits for the store; the claim is freed then */
    assert_int_equal(one.done, 1);
}

static void wrong_calls_are_refused(void **state)
{
    struct lh_claim_options options = LH_CLAIM_OPTIONS_INIT;
    struct lh_claim claim = LH_CLAIM_INIT;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_meta incomplete = {"name", NULL};
    struct lh_lease *lease = NULL;
    struct waiting one;
    (void)state;
    assert_null(lh_claim_begin_start(NULL, &options, &claim, on_done, NULL, &report));
    assert_int_equal(report.outcome, LH_USAGE);
    assert_null(lh_claim_begin_start(claims, &options, &claim, NULL, NULL, &report));
    options.meta = &incomplete;
    options.meta_count = 1;
    assert_null(lh_claim_begin_start(claims, &options, &claim, on_done, NULL, &report));
    options.meta_count = 17;
    assert_null(lh_claim_begin_start(claims, &options, &claim, on_done, NULL, &report));
    options.meta_count = 0;
    options.wait_ms = -2;
    assert_null(lh_claim_begin_start(claims, &options, &claim, on_done, NULL, &report));
    assert_int_equal(lh_claims_fd(NULL), -1);
    assert_int_equal(lh_claims_step(NULL), LH_USAGE);
    (void)start(&one, 0); /* a blocking call would use the same list */
    assert_int_equal(lh_claim_next(claims, NULL, &lease, &claim, &report), LH_USAGE);
    run_until(&one.done);
    assert_int_equal(lh_claim_next(claims, NULL, &lease, &claim, &report), LH_UNAVAILABLE);
}

static void a_client_with_a_thread_cannot_start_claims(void **state)
{
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    struct lh_claims_options of_claims = LH_CLAIMS_OPTIONS_INIT;
    struct lh_client *threaded = NULL;
    struct lh_claims *theirs = NULL;
    struct lh_claim claim = LH_CLAIM_INIT;
    struct lh_report report = LH_REPORT_INIT;
    (void)state;
    ASSERT_OUTCOME(lh_open("github://a/b", &options, &threaded, &report), LH_OK, &report);
    of_claims.label = "todo";
    ASSERT_OUTCOME(lh_claims_open(threaded, &of_claims, &theirs, &report), LH_OK, &report);
    assert_null(lh_claim_begin_start(theirs, NULL, &claim, on_done, NULL, &report));
    assert_int_equal(report.outcome, LH_USAGE);
    assert_int_equal(lh_claims_fd(theirs), -1);
    assert_int_equal(lh_claims_step(theirs), LH_USAGE);
    lh_claims_close(&theirs);
    lh_close(&threaded);
}

#define CLAIMS(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)
#define SERVED(test) cmocka_unit_test_setup_teardown(test, open_server, close_server)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIMS(a_server_that_is_away_ends_the_claim),
        CLAIMS(a_cancelled_claim_is_busy),
        CLAIMS(the_end_of_the_handle_ends_its_claims),
        CLAIMS(wrong_calls_are_refused),
        SERVED(an_issue_that_is_not_admitted_is_not_taken),
        SERVED(a_cancel_waits_for_the_store),
        SERVED(the_handle_may_end_before_the_store_has_answered),
        CLAIMS(a_client_with_a_thread_cannot_start_claims),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
