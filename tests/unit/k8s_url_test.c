/* SPDX-License-Identifier: Apache-2.0 */
/* URLs of the Kubernetes store, and the names of keys as Leases. */
#include "wire/k8s_url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static char words[256];

static bool parse(const char *url, struct k8s_url *out)
{
    struct text why;
    text_init(&why, words, sizeof words);
    bool good = k8s_url_parse(url, out, &why);
    assert_true(good == (why.length == 0));
    return good;
}

static const char *name(const char *url, const char *key)
{
    static char out[K8S_NAME_MAX + 1];
    struct k8s_url parsed;
    assert_true(parse(url, &parsed));
    if (!k8s_name_of(&parsed, key, out))
        return NULL;
    assert_true(strlen(out) <= K8S_NAME_MAX);
    return out;
}

static void a_url_says_where(void **state)
{
    struct k8s_url url;
    (void)state;
    assert_true(parse("k8s://", &url));
    assert_string_equal(url.namespace, "");
    assert_int_equal(url.skew_ms, 5000);
    assert_true(parse("k8s://team-a/", &url));
    assert_string_equal(url.namespace, "team-a");
    assert_true(parse("k8s://team-a?prefix=task-llm-&names=plain&skew=500ms&context=east", &url));
    assert_string_equal(url.prefix, "task-llm-");
    assert_string_equal(url.context, "east");
    assert_int_equal(url.names, K8S_NAMES_PLAIN);
    assert_int_equal(url.skew_ms, 500);
    assert_false(url.events);
    assert_true(parse("k8s://a?events=on", &url) && url.events);
    assert_true(parse("k8s://a?events=off", &url) && !url.events);
    assert_int_equal(url.collect, 30);
    assert_true(parse("k8s://a?context=admin@east", &url)); /* as kubeadm names it */
    assert_string_equal(url.context, "admin@east");
    assert_true(parse("k8s://a?collect=off", &url) && url.collect == 0);
    assert_true(parse("k8s://a?collect=60000", &url) && url.collect == 60000);
}

static void a_bad_url_is_refused(void **state)
{
    static const char *const urls[] = {
        "k8s:",
        "k8s:default",
        "redis://default",
        "k8s://A",
        "k8s://a_b",
        "k8s://-a",
        "k8s://a-",
        "k8s://a/b",
        "k8s://a?prefix=Up-",
        "k8s://a?prefix",
        "k8s://a?names=all",
        "k8s://a?skew=-1s",
        "k8s://a?skew=2h",
        "k8s://a?events=yes",
        "k8s://a?color=",
        "k8s://a?collect=",
        "k8s://a?collect=0",
        "k8s://a?collect=60001",
        "k8s://a?collect=99999999999",
        "k8s://a?collect=1x",
        "k8s://a?prefix=-a",
    };
    struct k8s_url url = {.skew_ms = 7};
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        assert_false(parse(urls[i], &url));
        assert_int_equal(url.skew_ms, 7); /* untouched */
    }
    assert_false(parse("k8s://a?contxt=b", &url));
    assert_non_null(strstr(words, "the closest is \"context\""));
}

static void valid_names_stay_readable(void **state)
{
    (void)state;
    assert_string_equal(name("k8s://a", "payment-api"), "payment-api");
    assert_string_equal(name("k8s://a", "7"), "7");
    assert_string_equal(name("k8s://a?prefix=task-llm-", "t1"), "task-llm-t1");
}

static void others_are_hashed(void **state)
{
    static const char *const keys[] = {"a/b", "A", "a.b", "-a", "a-", "once:x", "lh-0", "a b", ""};
    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *got = name("k8s://a", keys[i]);
        assert_int_equal(strncmp(got, "lh-", 3), 0);
        assert_int_equal(strlen(got), 43);
    }
    /* As printed by sha256sum(1). */
    assert_string_equal(name("k8s://a", "a/b"), "lh-c14cddc033f64b9dea80ea675cf280a015e67251");
}

static void the_longest_prefix_leaves_room(void **state)
{
    (void)state;
    const char *got = name("k8s://a?prefix=aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd", "x/y");
    assert_int_equal(strlen(got), K8S_NAME_MAX);
    assert_null(strchr(got, '/'));
    /* With it a readable name would be too long. */
    got =
        name("k8s://a?prefix=aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd", "eeeeeeeeeeffffffffffgggg");
    assert_non_null(strstr(got, "ddlh-"));
}

static void hashes_are_those_of_the_workflow_engine(void **state)
{
    (void)state;
    /* sha256("production/deployment/payment-api"), 16 digits */
    assert_string_equal(name("k8s://a?names=hash", "production/deployment/payment-api"),
                        "wfe-fbb8266ac354e9c2");
    assert_string_equal(name("k8s://a?names=hash&prefix=", "production/deployment/payment-api"),
                        "fbb8266ac354e9c2");
}

static void plain_takes_names_only(void **state)
{
    (void)state;
    assert_string_equal(name("k8s://a?names=plain", "lh-x"), "lh-x");
    assert_null(name("k8s://a?names=plain", "a/b"));
    assert_null(name("k8s://a?names=plain",
                     "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggg"));
}

/* The Lease of the epoch is no lock. */
static void the_name_of_the_epoch_is_reserved(void **state)
{
    struct k8s_url found;
    (void)state;
    assert_int_equal(strlen(name("k8s://a", "leasehold-epoch")), 43);
    assert_int_equal(strncmp(name("k8s://a?prefix=leasehold-", "epoch"), "leasehold-lh-", 13), 0);
    assert_null(name("k8s://a?names=plain", "leasehold-epoch"));
    assert_null(name("k8s://a?names=plain&prefix=lease", "hold-epoch"));
    assert_false(k8s_scheme_of("leasehold-epoch", "epoch", &found));
    assert_string_equal(name("k8s://a", "leasehold-epochs"), "leasehold-epochs");
    assert_string_equal(name("k8s://a?prefix=a-", "leasehold-epoch"), "a-leasehold-epoch");
}

/* For every URL under which a key has a name, the prefix and the mode are found again. */
static void a_name_tells_how_it_was_made(void **state)
{
    static const char *const urls[] = {
        "k8s://a",           "k8s://a?names=hash",           "k8s://a?prefix=task-llm-",
        "k8s://a?prefix=p-", "k8s://a?names=hash&prefix=p-", "k8s://a?names=hash&prefix=",
    };
    static const char *const keys[] = {"payment-api", "production/deployment/payment-api", "lh-5",
                                       "once:x"};
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        for (size_t j = 0; j < sizeof keys / sizeof keys[0]; j++) {
            struct k8s_url found = {0}, meant;
            char made[K8S_NAME_MAX + 1], again[K8S_NAME_MAX + 1];
            assert_true(k8s_url_parse(urls[i], &meant, NULL));
            assert_true(k8s_name_of(&meant, keys[j], made));
            assert_true(k8s_scheme_of(made, keys[j], &found));
            assert_string_equal(found.prefix, meant.prefix);
            assert_true(k8s_name_of(&found, keys[j], again));
            assert_string_equal(again, made);
            assert_false(k8s_scheme_of(made, "another", &found));
        }
    }
    struct k8s_url none;
    assert_false(k8s_scheme_of("UP-key", "key", &none));
    assert_false(k8s_scheme_of("", "key", &none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_says_where),
        cmocka_unit_test(a_bad_url_is_refused),
        cmocka_unit_test(valid_names_stay_readable),
        cmocka_unit_test(others_are_hashed),
        cmocka_unit_test(the_longest_prefix_leaves_room),
        cmocka_unit_test(hashes_are_those_of_the_workflow_engine),
        cmocka_unit_test(plain_takes_names_only),
        cmocka_unit_test(the_name_of_the_epoch_is_reserved),
        cmocka_unit_test(a_name_tells_how_it_was_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
