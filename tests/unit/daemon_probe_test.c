/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the store answers: one read for all who ask, its result kept for a second. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/text.h"
#include "daemon_kit.h"
#include "process/host.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct daemon *served;
static char scraped[DAEMON_METRICS_SIZE];

struct asker {
    struct probe_waiter waiter;
    int calls;
    bool up;
    char why[LH_TEXT_SIZE];
};

static void on_answer(void *user, bool up, const char *why)
{
    struct asker *asker = user;
    asker->calls++;
    asker->up = up;
    (void)snprintf(asker->why, sizeof asker->why, "%s", why);
}

static void ask(struct asker *asker)
{
    *asker = (struct asker){.waiter = {.done = on_answer, .user = asker}};
    probe_ask(served, &asker->waiter);
}

/* Turns until it has its answer; the time that this took. */
static int64_t await_answer(const struct asker *asker)
{
    int64_t began_ms = host_boot_ms();
    while (asker->calls == 0 && host_boot_ms() < began_ms + 20000)
        kit_daemon_turn(served, 10);
    assert_int_equal(asker->calls, 1);
    return host_boot_ms() - began_ms;
}

static void turn_for(int64_t ms)
{
    for (int64_t end_ms = host_boot_ms() + ms; host_boot_ms() < end_ms;)
        kit_daemon_turn(served, 10);
}

/* Without a new probe. */
static uint64_t reads(void)
{
    static char text[LH_METRICS_SIZE];
    static const char name[] = "\nx_store_request_duration_seconds_count{verb=\"read\"} ";
    size_t length = 0;
    assert_int_equal(lh_metrics(served->client, "x", text, sizeof text, &length, NULL), LH_OK);
    const char *at = strstr(text, name);
    assert_non_null(at);
    return at != NULL ? strtoull(at + sizeof name - 1, NULL, 10) : 0;
}

static bool scrape_store_up(void)
{
    struct text text;
    text_init(&text, scraped, sizeof scraped);
    assert_true(daemon_metrics_write(served, &text));
    assert_non_null(strstr(scraped, "\nleasehold_store_up "));
    return strstr(scraped, "\nleasehold_store_up 1\n") != NULL;
}

/* A server that accepts connections in its kernel, and never replies. */
static int listen_silently(char url[64])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(file, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(file, 10), 0);
    assert_int_equal(getsockname(file, (struct sockaddr *)&address, &size), 0);
    (void)snprintf(url, 64, "redis://127.0.0.1:%d", ntohs(address.sin_port));
    return file;
}

static void askers_share_a_read_and_its_result_lasts_a_second(void **state)
{
    struct asker first, second, third;
    (void)state;
    served = kit_daemon_new();
    ask(&first);
    ask(&second);
    assert_int_equal(first.calls + second.calls, 0);
    (void)await_answer(&first);
    assert_int_equal(second.calls, 1);
    assert_true(first.up && second.up);
    assert_string_equal(first.why, "ok");
    assert_int_equal(reads(), 1);
    ask(&third);
    assert_int_equal(third.calls, 1); /* at once */
    assert_true(third.up);
    assert_true(scrape_store_up());
    turn_for(1100);
    assert_int_equal(reads(), 1); /* nobody asked */
    ask(&third);
    (void)await_answer(&third);
    assert_int_equal(reads(), 2);
    turn_for(1100);
    assert_true(scrape_store_up());
    turn_for(50);
    assert_int_equal(reads(), 3); /* a scrape asks too */
    daemon_free(served);
}

static void a_store_that_does_not_reply_is_down_after_two_seconds(void **state)
{
    char url[64];
    struct asker first, second, gone;
    int file = listen_silently(url);
    (void)state;
    served = kit_daemon_on(url);
    assert_true(scrape_store_up()); /* nothing is known yet */
    ask(&first);
    ask(&gone);
    probe_cancel(served, &gone.waiter);
    int64_t took_ms = await_answer(&first);
    assert_in_range(took_ms, 1900, 4000);
    assert_false(first.up);
    assert_non_null(strstr(first.why, "2 s"));
    assert_int_equal(gone.calls, 0);
    assert_false(scrape_store_up());
    ask(&second); /* the result is young */
    assert_int_equal(second.calls, 1);
    assert_false(second.up);
    turn_for(1100);
    ask(&second); /* the first read is still in flight: not longer than the deadline either */
    took_ms = await_answer(&second);
    assert_in_range(took_ms, 0, 4000);
    assert_false(second.up);
    probe_cancel(served, &second.waiter); /* has no effect */
    (void)close(file);                    /* resets the connection: the read ends */
    daemon_free(served);
}

static void a_store_that_refuses_connections_is_down_at_once(void **state)
{
    char url[64];
    struct asker asker;
    (void)state;
    (void)close(listen_silently(url));
    served = kit_daemon_on(url);
    ask(&asker);
    assert_in_range(await_answer(&asker), 0, 1500);
    assert_false(asker.up);
    assert_non_null(strstr(asker.why, "unavailable"));
    assert_false(scrape_store_up());
    daemon_free(served);
}

static void a_stopping_daemon_is_not_ready(void **state)
{
    struct asker asker;
    (void)state;
    served = kit_daemon_new();
    served->draining = true;
    ask(&asker);
    assert_int_equal(asker.calls, 1);
    assert_false(asker.up);
    assert_non_null(strstr(asker.why, "draining"));
    assert_int_equal(reads(), 0);
    daemon_free(served);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(askers_share_a_read_and_its_result_lasts_a_second),
        cmocka_unit_test(a_store_that_does_not_reply_is_down_after_two_seconds),
        cmocka_unit_test(a_store_that_refuses_connections_is_down_at_once),
        cmocka_unit_test(a_stopping_daemon_is_not_ready),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
