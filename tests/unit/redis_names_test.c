/* SPDX-License-Identifier: Apache-2.0 */
/* Names in Redis: each key has one, is decoded from it, and its companions are in the same slot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/redis_names.h"

#include <string.h>

static struct redis_templates templates;

static int set_up(void **state)
{
    (void)state;
    redis_templates_init(&templates);
    return 0;
}

static void use_template(const char *template)
{
    assert_true(redis_template_is_valid(template));
    text_copy(templates.of[REDIS_LOCK], sizeof templates.of[REDIS_LOCK], template);
}

/* From Redis's own documentation and tests. */
static void slots_are_those_of_redis(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        unsigned slot;
    } known[] = {{"123456789", 12739},   {"foo", 12182},        {"{foo}bar", 12182},
                 {"a{foo}b", 12182},     {"foo{}{bar}", 8363},  {"foo{{bar}}zap", 4015},
                 {"{user1000}.x", 3443}, {"{user1000}.y", 3443}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        assert_int_equal(redis_slot_of(known[i].name, strlen(known[i].name)), known[i].slot);
}

static void every_slot_has_a_tag(void **state)
{
    (void)state;
    for (unsigned slot = 0; slot < REDIS_SLOTS; slot++) {
        char tag[5];
        redis_tag_of(slot, tag);
        assert_int_equal(redis_slot_of(tag, 4), slot);
    }
}

static const char *const keys[] = {
    "k",       "a/b",    "{tag}x",   "x{tag}",  "a}b",           "{}x",
    "{",       "}",      "{{x}}",    "once:id", "once:{a}b",     "watermark:w",
    "dedup:x", "lock:k", "\xc3\xa9", "*",       "leasehold:{x}",
};

static void keys_come_back_from_their_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        struct redis_names names;
        char key[KEY_MAX + 1];
        assert_true(redis_names_of(&templates, keys[i], &names));
        assert_true(redis_key_of_plain(&templates, names.plain, strlen(names.plain), key));
        assert_string_equal(key, keys[i]);
        assert_true(redis_key_of_record(&templates, names.record, strlen(names.record), key));
        assert_string_equal(key, keys[i]);
        assert_true(redis_key_of_name(&templates, names.record, strlen(names.record), key));
        assert_string_equal(key, keys[i]);
        assert_true(redis_key_of_name(&templates, names.plain, strlen(names.plain), key));
        assert_string_equal(key, keys[i]);
        unsigned slot = redis_slot_of(names.plain, strlen(names.plain));
        assert_int_equal(redis_slot_of(names.record, strlen(names.record)), slot);
        assert_int_equal(redis_slot_of(names.counter, strlen(names.counter)), slot);
        assert_int_equal(names.slot, slot);
    }
}

static void others_find_the_plain_name(void **state)
{
    (void)state;
    struct redis_names names;
    assert_true(redis_names_of(&templates, "job", &names));
    assert_string_equal(names.plain, "lock:job");
    assert_true(redis_names_of(&templates, "once:id", &names));
    assert_string_equal(names.plain, "dedup:id");
    use_template("app:%s:lock");
    assert_true(redis_names_of(&templates, "job", &names));
    assert_string_equal(names.plain, "app:job:lock");
}

static void no_two_keys_share_a_name(void **state)
{
    (void)state;
    struct redis_names names;
    use_template("%s");
    assert_true(redis_names_of(&templates, "once:x", &names));
    assert_false(redis_names_of(&templates, "dedup:x", &names)); /* that is once:x */
    assert_true(redis_names_of(&templates, "lock:x", &names));
}

static void templates_have_one_hole(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "lock", "%s%s", "%d%s%", "a%s%", "\n%s"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(redis_template_is_valid(bad[i]));
}

static void a_name_that_is_not_ours_has_no_key(void **state)
{
    (void)state;
    static const char *const strange[] = {
        "",           "leasehold:{ABCD}", "leasehold:{ABCD}:",
        "leasehold:", "other:x",          "leasehold:{ABCD}:lock:"};
    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++) {
        char key[KEY_MAX + 1];
        assert_false(redis_key_of_record(&templates, strange[i], strlen(strange[i]), key));
    }
}

static void patterns_cover_what_begins_so(void **state)
{
    (void)state;
    static const struct {
        const char *prefix, *patterns; /* with a blank after each */
    } known[] = {{"", "leasehold:{????}:* lock:* dedup:* "},
                 {"o", "leasehold:{????}:* lock:o* dedup:* "},
                 {"w", "leasehold:{????}:* lock:w* "},
                 {"job/", "leasehold:{????}:lock:job/* lock:job/* "},
                 {"*[b]?\\", "leasehold:{????}:lock:\\*\\[b\\]\\?\\\\* lock:\\*\\[b\\]\\?\\\\* "},
                 {"once:x", "leasehold:{????}:dedup:x* dedup:x* "},
                 {"once:", "leasehold:{????}:dedup:* dedup:* "},
                 {"watermark:x", "leasehold:{????}:watermark:x* "}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        char bytes[3 * REDIS_PATTERN_MAX];
        struct text text;
        text_init(&text, bytes, sizeof bytes);
        for (unsigned n = 0; redis_pattern_of(&templates, known[i].prefix, n, &text); n++)
            text_add(&text, " ");
        assert_string_equal(bytes, known[i].patterns);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_those_of_redis),
        cmocka_unit_test(every_slot_has_a_tag),
        cmocka_unit_test_setup(keys_come_back_from_their_names, set_up),
        cmocka_unit_test_setup(others_find_the_plain_name, set_up),
        cmocka_unit_test_setup(no_two_keys_share_a_name, set_up),
        cmocka_unit_test_setup(templates_have_one_hole, set_up),
        cmocka_unit_test_setup(a_name_that_is_not_ours_has_no_key, set_up),
        cmocka_unit_test_setup(patterns_cover_what_begins_so, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
