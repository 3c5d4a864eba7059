/* SPDX-License-Identifier: Apache-2.0 */
/* URLs of Redis: the meaning of each part, and errors that never contain the password. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/redis_url.h"

#include <string.h>

static struct redis_url url;
static char words[512];

static bool reads(const char *from)
{
    struct text why;
    text_init(&why, words, sizeof words);
    return redis_url_read(from, &url, &why);
}

static void the_shortest_is_the_usual_one(void **state)
{
    (void)state;
    assert_true(reads("redis://"));
    assert_string_equal(url.hosts[0].name, "localhost");
    assert_int_equal(url.hosts[0].port, 6379);
    assert_false(url.tls);
    assert_int_equal(url.db, 0);
    assert_string_equal(url.templates.of[REDIS_LOCK], "lock:%s");
}

static void every_part_is_read(void **state)
{
    (void)state;
    assert_true(reads("rediss://me:pa%40ss@h.example:7000/5?key=app:%s&dedup=d:%s&ca=/c.pem&"
                      "cert=/a&tls-key=/b&name=n&scripts=no&protocol=2"));
    assert_true(url.tls && url.no_scripts);
    assert_string_equal(url.user, "me");
    assert_string_equal(url.password, "pa@ss");
    assert_string_equal(url.hosts[0].name, "h.example");
    assert_int_equal(url.hosts[0].port, 7000);
    assert_int_equal(url.db, 5);
    assert_int_equal(url.protocol, 2);
    assert_string_equal(url.templates.of[REDIS_LOCK], "app:%s");
    assert_string_equal(url.templates.of[REDIS_ONCE], "d:%s");
    assert_string_equal(url.ca, "/c.pem");
    assert_string_equal(url.cert, "/a");
    assert_string_equal(url.tls_key, "/b");
    assert_string_equal(url.tls_name, "n");
}

static void passwords_need_no_user_and_no_escapes(void **state)
{
    (void)state;
    assert_true(reads("redis://:p@ss:w/o?rd@h"));
    assert_string_equal(url.user, "");
    assert_string_equal(url.password, "p@ss:w/o?rd");
    assert_string_equal(url.hosts[0].name, "h");
}

static void an_option_overrides_the_path(void **state)
{
    (void)state;
    assert_true(reads("redis://h/1?db=0"));
    assert_int_equal(url.db, 0);
}

static void addresses_may_have_colons(void **state)
{
    (void)state;
    assert_true(reads("redis://[::1]:7001/1"));
    assert_string_equal(url.hosts[0].name, "::1");
    assert_int_equal(url.hosts[0].port, 7001);
    assert_true(reads("redis://[fe80::1]"));
    assert_int_equal(url.hosts[0].port, 6379);
}

static void several_hosts_are_sentinels_or_nodes(void **state)
{
    (void)state;
    assert_true(reads("redis://a,b:1,[::1]:2/0?sentinel=main"));
    assert_int_equal(url.host_count, 3);
    assert_int_equal(url.hosts[0].port, 26379);
    assert_int_equal(url.hosts[1].port, 1);
    assert_string_equal(url.hosts[2].name, "::1");
    assert_string_equal(url.sentinel, "main");
}

static void an_error_shows_no_secrets(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "redis:h",
        "redis://:hush@h:port",
        "redis://:hush@h:0",
        "redis://:hush@h:70000",
        "redis://:hush@h/x",
        "redis://:hush@h?key=lock",
        "redis://:hush@h?nothing=hush",
        "redis://:hush@h?protocol=4",
        "redis://:hush@h?scripts=maybe",
        "redis://:hush@h?ca=/x",
        "redis://:hush@h?password-file=/x",
        "redis://:hush@h?auth=magic",
        "redis://:hush%0a@h",
        "redis://a,b,c,d,e,f,g,h,i",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(reads(wrong[i]));
        assert_true(strlen(words) > 10);
        assert_null(strstr(words, "hush"));
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_shortest_is_the_usual_one),
        cmocka_unit_test(every_part_is_read),
        cmocka_unit_test(passwords_need_no_user_and_no_escapes),
        cmocka_unit_test(an_option_overrides_the_path),
        cmocka_unit_test(addresses_may_have_colons),
        cmocka_unit_test(several_hosts_are_sentinels_or_nodes),
        cmocka_unit_test(an_error_shows_no_secrets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
