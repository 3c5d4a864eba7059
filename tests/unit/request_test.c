/* SPDX-License-Identifier: Apache-2.0 */
/* Invalid requests, each refused for its own reason, and the limits that are accepted. */
#include "core/rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static char too_long[KEY_MAX + 2];

static struct request good(enum verb verb)
{
    memset(too_long, 'x', sizeof too_long - 1);
    return (struct request){.verb = verb,
                            .key = "k",
                            .holder = "h",
                            .request = "r",
                            .session = 1,
                            .token = 1024,
                            .ttl_ms = 1,
                            .reason = ""};
}

static void refused(struct request request, const char *word)
{
    const char *why = request_broken(&request);
    assert_non_null(why);
    if (strstr(why, word) == NULL)
        print_error("%s does not speak of the %s\n", why, word);
    assert_non_null(strstr(why, word));
}

#define REFUSED(verb, field, value, word)    \
    do {                                     \
        struct request request = good(verb); \
        request.field = (value);             \
        refused(request, word);              \
    } while (0)

static void every_verb_may_enter(void **state)
{
    (void)state;
    for (enum verb verb = VERB_ACQUIRE; verb <= VERB_QUERY; verb++) {
        struct request request = good(verb);
        assert_null(request_broken(&request));
    }
}

static void the_edges_may_enter(void **state)
{
    (void)state;
    struct request request = good(VERB_ACQUIRE);
    request.ttl_ms = TTL_MAX_MS;
    request.lock_delay_ms = TTL_MAX_MS;
    request.priority = PRIORITY_MAX;
    request.key = too_long + 1;
    request.holder = too_long + KEY_MAX + 1 - HOLDER_MAX;
    request.request = too_long + KEY_MAX + 1 - REQUEST_MAX;
    assert_null(request_broken(&request));
    request.priority = -PRIORITY_MAX;
    request.mode = MODE_SLOT;
    request.limit = 1;
    assert_null(request_broken(&request));
}

static void words_are_checked(void **state)
{
    (void)state;
    REFUSED(VERB_QUERY, key, "", "key");
    REFUSED(VERB_QUERY, key, NULL, "key");
    REFUSED(VERB_QUERY, key, too_long, "key");
    REFUSED(VERB_QUERY, key, "a\nb", "key");
    REFUSED(VERB_ACQUIRE, holder, "", "holder");
    REFUSED(VERB_ACQUIRE, holder, too_long + KEY_MAX - HOLDER_MAX, "holder");
    REFUSED(VERB_ACQUIRE, request, "\xff", "request id");
    REFUSED(VERB_BREAK, reason, NULL, "reason");
    REFUSED(VERB_BREAK, reason, too_long, "reason");
}

static void numbers_are_checked(void **state)
{
    (void)state;
    REFUSED(VERB_ACQUIRE, ttl_ms, 0, "TTL");
    REFUSED(VERB_ACQUIRE, ttl_ms, TTL_MAX_MS + 1, "TTL");
    REFUSED(VERB_ACQUIRE, session, 0, "session");
    REFUSED(VERB_RENEW, token, 0, "token");
    REFUSED(VERB_RELEASE, token, 0, "token");
    REFUSED(VERB_ACQUIRE, priority, PRIORITY_MAX + 1, "priority");
    REFUSED(VERB_ACQUIRE, priority, -PRIORITY_MAX - 1, "priority");
    REFUSED(VERB_ACQUIRE, lock_delay_ms, -1, "lock-delay");
    REFUSED(VERB_ACQUIRE, lock_delay_ms, TTL_MAX_MS + 1, "lock-delay");
    REFUSED(VERB_ACQUIRE, limit, 3, "semaphore");
    REFUSED(VERB_ACQUIRE, mode, MODE_SLOT, "semaphore");
}

static struct request good_once(enum verb verb)
{
    struct request request = good(verb);
    request.kind = KIND_ONCE;
    request.key = "once:a";
    return request;
}

static struct request good_watermark(enum verb verb)
{
    struct request request = good(verb);
    request.key = "watermark:a";
    request.value = "17";
    request.expected = "";
    return request;
}

#define REFUSED_OF(kind, verb, field, bad, word) \
    do {                                         \
        struct request request = kind(verb);     \
        request.field = (bad);                   \
        refused(request, word);                  \
    } while (0)

static void ids_and_watermarks_may_enter(void **state)
{
    (void)state;
    struct request request = good_once(VERB_ACQUIRE);
    assert_null(request_broken(&request));
    request.payload = "9f";
    assert_null(request_broken(&request));
    request.verb = VERB_MARK;
    request.completion = &(struct completion){.result = "", .watermark = "w", .until = "1"};
    assert_null(request_broken(&request));
    request = good_watermark(VERB_ADVANCE);
    assert_null(request_broken(&request));
    request.order = ORDER_TEXT;
    request.verb = VERB_SET;
    request.expected = NULL;
    assert_null(request_broken(&request));
}

static void ids_are_checked(void **state)
{
    (void)state;
    struct completion no_until = {.watermark = "w"}, empty = {.watermark = "", .until = "1"};
    struct completion no_position = {.watermark = "w", .until = ""};
    struct completion unclean = {.result = "a\nb"};
    REFUSED(VERB_ACQUIRE, kind, KIND_WATERMARK, "watermark");
    REFUSED(VERB_ACQUIRE, kind, KIND_ONCE, "begin with");
    REFUSED(VERB_MARK, holder, "", "holder");
    REFUSED(VERB_MARK, key, "once:", "begin with");
    REFUSED_OF(good_once, VERB_ACQUIRE, mode, MODE_SHARED, "exclusively");
    REFUSED_OF(good_once, VERB_MARK, payload, "", "fingerprint");
    REFUSED_OF(good_once, VERB_MARK, completion, &unclean, "result");
    REFUSED_OF(good_once, VERB_MARK, completion, &no_until, "both");
    REFUSED_OF(good_once, VERB_RELEASE, completion, &empty, "position");
    REFUSED_OF(good_once, VERB_RELEASE, completion, &no_position, "position");
}

static void watermarks_are_checked(void **state)
{
    (void)state;
    REFUSED_OF(good_watermark, VERB_ADVANCE, key, "a", "begin with");
    REFUSED_OF(good_watermark, VERB_SET, key, "watermark:", "begin with");
    REFUSED_OF(good_watermark, VERB_SET, holder, NULL, "holder");
    REFUSED_OF(good_watermark, VERB_SET, value, "", "value");
    REFUSED_OF(good_watermark, VERB_SET, value, "2026-01-31T23:59:59", "offset");
    REFUSED_OF(good_watermark, VERB_SET, order, ORDER_TIME, "order");
    REFUSED_OF(good_watermark, VERB_SET, reason, NULL, "reason");
    REFUSED_OF(good_watermark, VERB_ADVANCE, expected, NULL, "expected");
    REFUSED_OF(good_watermark, VERB_ADVANCE, request, NULL, "request id");
    REFUSED_OF(good_watermark, VERB_ADVANCE, request, "", "request id");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_verb_may_enter),
        cmocka_unit_test(the_edges_may_enter),
        cmocka_unit_test(words_are_checked),
        cmocka_unit_test(numbers_are_checked),
        cmocka_unit_test(ids_and_watermarks_may_enter),
        cmocka_unit_test(ids_are_checked),
        cmocka_unit_test(watermarks_are_checked),
    };
    return cmocka_run_group_tests_name("request", tests, NULL, NULL);
}
