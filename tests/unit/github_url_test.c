/* SPDX-License-Identifier: Apache-2.0 */
/* URLs of the GitHub store, and the names of keys as refs. */
#include "wire/github_url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static char words[512];

static bool parse_at(const char *url, bool loopback, struct github_url *out)
{
    struct text why;
    text_init(&why, words, sizeof words);
    bool good = github_url_parse(url, loopback, out, &why);
    assert_true(good == (why.length == 0));
    return good;
}

static bool parse(const char *url, struct github_url *out)
{
    return parse_at(url, /* loopback= */ false, out);
}

static void a_url_has_defaults(void **state)
{
    struct github_url url;
    (void)state;
    assert_true(parse("github://octo-cat/hello.world_1", &url));
    assert_string_equal(url.owner, "octo-cat");
    assert_string_equal(url.repo, "hello.world_1");
    assert_true(url.show);
    assert_int_equal(url.stale_ms, 300000);
    assert_int_equal(url.heartbeat_ms, 100000);
    assert_int_equal(url.poll_ms, 60000);
    assert_int_equal(url.pace_ms, 1000);
    assert_int_equal(url.writes, 400);
    assert_int_equal(url.budget, 0);
    assert_string_equal(url.token_file, "");
    assert_true(url.app == 0);
}

static void a_url_has_options(void **state)
{
    struct github_url url;
    (void)state;
    assert_true(parse("github://a/b?show=off&heartbeat=50s&stale=10m&poll=2m&pace=2s&writes=100&"
                      "budget=2500&token-file=/run/token",
                      &url));
    assert_false(url.show);
    assert_int_equal(url.heartbeat_ms, 50000);
    assert_int_equal(url.stale_ms, 600000);
    assert_int_equal(url.poll_ms, 120000);
    assert_int_equal(url.pace_ms, 2000);
    assert_int_equal(url.writes, 100);
    assert_int_equal(url.budget, 2500);
    assert_string_equal(url.token_file, "/run/token");
    assert_true(parse("github://a/b?app=12345&app-key-file=/etc/app.pem", &url));
    assert_true(url.app == 12345);
    assert_string_equal(url.app_key_file, "/etc/app.pem");
    assert_true(parse("github://a/b?stale=30s", &url) && url.heartbeat_ms == 10000);
}

static void a_server_on_this_host_allows_short_times(void **state)
{
    static const char short_times[] = "github://a/b?heartbeat=1s&stale=3s&poll=1s&pace=0s";
    struct github_url url;
    (void)state;
    assert_false(parse(short_times, &url));
    assert_true(parse_at(short_times, /* loopback= */ true, &url));
    assert_int_equal(url.heartbeat_ms, 1000);
    assert_int_equal(url.pace_ms, 0);
    assert_false(parse_at("github://a/b?stale=2s", /* loopback= */ true, &url));
    assert_false(parse_at("github://a/b?heartbeat=900ms", /* loopback= */ true, &url));
    assert_false(parse_at("github://a/b?heartbeat=2s&stale=5s", /* loopback= */ true, &url));
    assert_false(parse_at("github://a/b?poll=0s", /* loopback= */ true, &url));
}

static void a_bad_url_is_refused(void **state)
{
    static const struct {
        const char *url, *reason;
    } cases[] = {
        {"github:a/b", "github://owner/repository"},
        {"redis://a/b", "github://owner/repository"},
        {"github://", "an owner"},
        {"github:///b", "an owner"},
        {"github://-a/b", "an owner"},
        {"github://a.b/c", "an owner"},
        {"github://a:1/c", "an owner"},
        {"github://token@a/c", "an owner"},
        {"github://aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd/r", "an owner"},
        {"github://a", "a repository"},
        {"github://a/", "a repository"},
        {"github://a/..", "a repository"},
        {"github://a/.", "a repository"},
        {"github://a/b/c", "a repository"},
        {"github://a/b%2Fc", "a repository"},
        {"github://a/b.git", ".git"},
        {"github://a/b?show=yes", "show is"},
        {"github://a/b?stale=29s", "stale is"},
        {"github://a/b?stale=25h", "stale is"},
        {"github://a/b?heartbeat=9s", "heartbeat is"},
        {"github://a/b?heartbeat=0s", "heartbeat is"},
        {"github://a/b?heartbeat=101s", "heartbeat is"},
        {"github://a/b?poll=9s", "poll is"},
        {"github://a/b?poll=2h", "poll is"},
        {"github://a/b?pace=999ms", "pace is"},
        {"github://a/b?pace=2m", "pace is"},
        {"github://a/b?writes=0", "writes is"},
        {"github://a/b?budget=0", "budget is"},
        {"github://a/b?budget=x", "budget is"},
        {"github://a/b?token-file=", "token-file is"},
        {"github://a/b?app=1", "belong together"},
        {"github://a/b?app-key-file=k", "belong together"},
        {"github://a/b?app=x&app-key-file=k", "app is"},
        {"github://a/b?app=1&app-key-file=k&token-file=t", "only one"},
        {"github://a/b?stal=5m", "the closest is \"stale\""},
    };
    struct github_url url = {.poll_ms = 7};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (parse(cases[i].url, &url) || strstr(words, cases[i].reason) == NULL)
            fail_msg("%s: \"%s\"", cases[i].url, words);
        assert_int_equal(url.poll_ms, 7); /* untouched */
    }
}

static const char *name(const char *key)
{
    static char out[GITHUB_NAME_MAX + 1];
    github_ref_name(key, out);
    assert_true(strlen(out) <= GITHUB_NAME_MAX);
    return out;
}

static void names_of_refs(void **state)
{
    char key[GITHUB_NAME_MAX + 2] = "";
    (void)state;
    assert_string_equal(name("42"), "42");
    assert_string_equal(name("Ab-c_9"), "Ab-c_9");
    assert_string_equal(name("a/b.lock"), "a%2Fb%2Elock");
    assert_string_equal(name("%~="), "%25%7E%3D");
    assert_string_equal(name("\xc3\xa4 \x7f"), "%C3%A4%20%7F");
    memset(key, 'x', GITHUB_NAME_MAX);
    assert_string_equal(name(key), key);
    key[GITHUB_NAME_MAX] = 'x'; /* as printed by sha256sum(1) */
    assert_string_equal(name(key), "=dc31ed5afb940294fdd687c69bbba2aecc51b609");
    memset(key, '/', 61);
    key[61] = '\0';
    assert_string_equal(name(key), "=cc2ce4bdefb3c0c43ad20da637b57707aae6f6c4");
    key[60] = '\0';
    assert_int_equal(strlen(name(key)), GITHUB_NAME_MAX);
}

static void prefixes_of_names(void **state)
{
    char out[GITHUB_NAME_MAX + 1], prefix[GITHUB_NAME_MAX + 2] = "";
    (void)state;
    github_ref_prefix("jobs/", out);
    assert_string_equal(out, "jobs%2F");
    github_ref_prefix("", out);
    assert_string_equal(out, "");
    memset(prefix, 'x', GITHUB_NAME_MAX - 1);
    prefix[GITHUB_NAME_MAX - 1] = '/'; /* an escape is never cut */
    github_ref_prefix(prefix, out);
    assert_int_equal(strlen(out), GITHUB_NAME_MAX - 1);
}

static void names_in_paths(void **state)
{
    char out[GITHUB_PATH_NAME_MAX + 1], key[GITHUB_NAME_MAX + 1] = "";
    (void)state;
    github_path_name("a%2Fb", out);
    assert_string_equal(out, "a%252Fb");
    github_path_name("=0f", out);
    assert_string_equal(out, "=0f");
    memset(key, '%', GITHUB_NAME_MAX);
    github_path_name(key, out);
    assert_int_equal(strlen(out), GITHUB_PATH_NAME_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_has_defaults),
        cmocka_unit_test(a_url_has_options),
        cmocka_unit_test(a_server_on_this_host_allows_short_times),
        cmocka_unit_test(a_bad_url_is_refused),
        cmocka_unit_test(names_of_refs),
        cmocka_unit_test(prefixes_of_names),
        cmocka_unit_test(names_in_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
