/* SPDX-License-Identifier: Apache-2.0 */
/* URLs of a driver that does not exist: every kind of option, and errors without secrets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/store_url.h"

#include <string.h>

struct target {
    char file[8];
    char mode[8];
    uint32_t pool;
    uint64_t rows;
    int64_t lag_ms;
    enum { SMALL, LARGE } size;
    bool quiet;
};

static bool starts_low(const char *text)
{
    return text[0] >= 'a' && text[0] <= 'z';
}

#define OPTION(field, ...) URL_OPTION(struct target, field, __VA_ARGS__)

static const struct url_option options[] = {
    OPTION(file, "file", .least = 1, .is_valid = starts_low),
    OPTION(mode, "mode", .words = "fast|safe", .rule = "mode: fast or safe"),
    OPTION(pool, "pool", .kind = URL_NUMBER, .least = 2, .most = 9, .words = "off",
           .rule = "pool: off, or 2 to 9"),
    OPTION(rows, "rows", .kind = URL_NUMBER, .most = UINT64_MAX, .rule = "rows: a number"),
    OPTION(lag_ms, "lag", .kind = URL_DURATION, .least = 10, .most = 60000,
           .rule = "lag: 10ms to 1m"),
    OPTION(size, "size", .kind = URL_CHOICE, .words = "small|large", .rule = "size: small, large"),
    OPTION(quiet, "quiet", .kind = URL_CHOICE, .words = "off|on", .rule = "quiet: on or off"),
};

static const struct url_form form = {.schemes = "pg|pgs",
                                     .rule = "write pg://host",
                                     .users = true,
                                     .options = options,
                                     .option_count = sizeof options / sizeof options[0]};

static struct target target;
static struct url_parts parts;
static char words[256];

static bool reads(const char *url)
{
    struct text why;
    text_init(&why, words, sizeof words);
    target = (struct target){.pool = 7};
    bool good = url_read(url, &form, &parts, &target, &why);
    assert_true(good == (why.length == 0));
    return good;
}

static void has_part(struct url_part part, const char *text)
{
    assert_non_null(part.at);
    assert_int_equal(part.length, strlen(text));
    assert_memory_equal(part.at, text, part.length);
}

static void a_url_is_split(void **state)
{
    (void)state;
    assert_true(reads("pgs://me:p@s/s?w@a,[::1]:5/db/x?pool=3"));
    assert_int_equal(parts.scheme, 1);
    has_part(parts.user, "me");
    has_part(parts.password, "p@s/s?w");
    has_part(parts.hosts, "a,[::1]:5");
    has_part(parts.path, "db/x");
    has_part(parts.query, "pool=3");
    assert_true(reads("pg://"));
    assert_int_equal(parts.scheme, 0);
    assert_null(parts.user.at);
    assert_null(parts.path.at);
    assert_null(parts.query.at);
    assert_true(reads("pg://@/?"));
    has_part(parts.user, "");
    assert_null(parts.password.at);
    has_part(parts.path, "");
    has_part(parts.query, "");
}

static void every_kind_of_option_is_read(void **state)
{
    (void)state;
    assert_true(reads("pg://h?file=a%25b%s&mode=safe&pool=2&rows=18446744073709551615&lag=1s"
                      "&size=large&quiet=on"));
    assert_string_equal(target.file, "a%b%s");
    assert_string_equal(target.mode, "safe");
    assert_int_equal(target.pool, 2);
    assert_true(target.rows == UINT64_MAX);
    assert_int_equal(target.lag_ms, 1000);
    assert_int_equal(target.size, LARGE);
    assert_true(target.quiet);
    assert_int_equal(parts.given, 0x7f);
    assert_true(reads("pg://h?pool=off&quiet=off&size=small&lag=60"));
    assert_int_equal(target.pool, 0);
    assert_false(target.quiet);
    assert_int_equal(target.lag_ms, 60000);
    assert_int_equal(parts.given, 1 << 2 | 1 << 4 | 1 << 5 | 1 << 6);
    assert_true(reads("pg://h"));
    assert_int_equal(target.pool, 7); /* the driver's default */
    assert_int_equal(parts.given, 0);
}

static const struct {
    const char *url, *why;
} refused[] = {
    {"pg:h", "write pg://host"},
    {"pgx://h", "write pg://host"},
    {"://h", "write pg://host"},
    {"", "write pg://host"},
    {"pg://h?secret", "options are written as ?name=value"},
    {"pg://h?pool=3&&rows=1", "options are written as ?name=value"},
    {"pg://h?file=", "file is too short, too long, or has control characters"},
    {"pg://h?file=secretsecret", "file is too short, too long, or has control characters"},
    {"pg://h?file=a%0ab", "file is too short, too long, or has control characters"},
    {"pg://h?file=a%00b", "file is too short, too long, or has control characters"},
    {"pg://h?file=Secret", "file is too short, too long, or has control characters"},
    {"pg://h?mode=secret", "mode: fast or safe"},
    {"pg://h?pool=", "pool: off, or 2 to 9"},
    {"pg://h?pool=1", "pool: off, or 2 to 9"},
    {"pg://h?pool=10", "pool: off, or 2 to 9"},
    {"pg://h?pool=4294967298", "pool: off, or 2 to 9"},
    {"pg://h?pool=3x", "pool: off, or 2 to 9"},
    {"pg://h?pool=%33", "pool: off, or 2 to 9"},
    {"pg://h?pool=+3", "pool: off, or 2 to 9"},
    {"pg://h?rows=18446744073709551616", "rows: a number"},
    {"pg://h?rows=-1", "rows: a number"},
    {"pg://h?lag=9ms", "lag: 10ms to 1m"},
    {"pg://h?lag=2m", "lag: 10ms to 1m"},
    {"pg://h?lag=-1s", "lag: 10ms to 1m"},
    {"pg://h?size=medium", "size: small, large"},
    {"pg://h?size=", "size: small, large"},
    {"pg://h?size=small|large", "size: small, large"},
    {"pg://h?quiet=yes", "quiet: on or off"},
    {"pg://h?quite=on", "the URL's option \"quite\" is unknown; the closest is \"quiet\"; the "
                        "options are file, mode, pool, rows, lag, size, quiet"},
    {"pg://h?zzz=1", "the URL's option \"zzz\" is unknown; the options are file, mode, pool, rows, "
                     "lag, size, quiet"},
    {"pg://h?s3cret=1", "the URL's option \"\" is unknown; the options are file, mode, pool, rows, "
                        "lag, size, quiet"},
    {"pg://h?=secret", "the URL's option \"\" is unknown; the options are file, mode, pool, rows, "
                       "lag, size, quiet"},
    {"pg://me:secret?pool=3@h", "an @ or a ? of the password, or an @ in an option, must be "
                                "written as %40 or %3F"},
};

static void an_error_states_the_valid_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_false(reads(refused[i].url));
        assert_string_equal(words, refused[i].why);
        assert_null(strstr(words, "secret"));
        struct target out;
        assert_false(url_read(refused[i].url, &form, &parts, &out, NULL));
    }
}

static void without_users_an_at_sign_is_an_ordinary_byte(void **state)
{
    struct url_form other = form;
    (void)state;
    other.users = false;
    assert_true(url_read("pg://a?file=a@b", &other, &parts, &target, NULL));
    assert_string_equal(target.file, "a@b");
    has_part(parts.hosts, "a");
}

static size_t hosts_of(const char *text, struct url_host *out)
{
    struct url_part part = {.at = text, .length = strlen(text)};
    size_t count = 0;
    return url_read_hosts(part, out, &count, NULL) ? count : 0;
}

static void hosts_have_names_and_ports(void **state)
{
    static const char *const wrong[] = {
        "h:",  "h:0",   "h:65536", "h:1:2",  "[::1]x", "[::1", "a b", "a@b", "a,b,c,d,e,f,g,h,i",
        "h:p", "a%00b", "::1",     "[a]b]:1"};
    struct url_host hosts[URL_HOSTS_MAX];
    (void)state;
    assert_int_equal(hosts_of("", hosts), 1);
    assert_string_equal(hosts[0].name, "localhost");
    assert_int_equal(hosts[0].port, 0);
    assert_int_equal(hosts_of(":1,,a.b_c-D:65535,[fe80::1%eth0]:2,[::1],", hosts), 5);
    assert_string_equal(hosts[0].name, "localhost");
    assert_int_equal(hosts[0].port, 1);
    assert_string_equal(hosts[1].name, "localhost");
    assert_string_equal(hosts[2].name, "a.b_c-D");
    assert_int_equal(hosts[2].port, 65535);
    assert_string_equal(hosts[3].name, "fe80::1%eth0");
    assert_int_equal(hosts[3].port, 2);
    assert_string_equal(hosts[4].name, "::1");
    assert_int_equal(hosts[4].port, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(hosts_of(wrong[i], hosts), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_is_split),
        cmocka_unit_test(every_kind_of_option_is_read),
        cmocka_unit_test(an_error_states_the_valid_values),
        cmocka_unit_test(without_users_an_at_sign_is_an_ordinary_byte),
        cmocka_unit_test(hosts_have_names_and_ports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
