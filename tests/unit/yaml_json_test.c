/* SPDX-License-Identifier: Apache-2.0 */
/* YAML as JSON: the types of plain scalars, and refusals, with their line. */
#include "http/yaml_json.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void expect(const char *yaml, const char *expected)
{
    char words[200];
    struct text why;
    text_init(&why, words, sizeof words);
    json_t *json = yaml_to_json(yaml, strlen(yaml), YAML_TYPED, &why);
    if (json == NULL)
        fail_msg("refused: %s: %s", yaml, words);
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    assert_string_equal(text, expected);
    free(text);
    json_decref(json);
}

static void expect_refusal(const char *yaml, size_t length, const char *reason)
{
    char words[200];
    struct text why;
    text_init(&why, words, sizeof words);
    json_t *json = yaml_to_json(yaml, length, YAML_TYPED, &why);
    if (json != NULL)
        fail_msg("taken: %s", yaml);
    if (strstr(words, reason) == NULL)
        fail_msg("'%s' does not say '%s'", words, reason);
}

static void scalars(void **state)
{
    (void)state;
    expect("[1, -2, 0, 1.5, 1e3, true, False, null, ~, '']",
           "[1,-2,0,1.5,1000,true,false,null,null,\"\"]");
    expect("['1', \"true\", 1.2.3, .inf, -, ., e5, 12ab, 0x, 1-2, _, 0b2]",
           "[\"1\",\"true\",\"1.2.3\",\".inf\",\"-\",\".\",\"e5\",\"12ab\",\"0x\",\"1-2\",\"_\","
           "\"0b2\"]");
    expect("a:", "{\"a\":null}");
    expect("a: |\n  two\n  lines\n", "{\"a\":\"two\\nlines\\n\"}");
}

/* A manifest means what it means to kubectl: 0644 is a file's mode there, 0.1 a tenth of a CPU. */
static void scalars_of_kubectl(void **state)
{
    (void)state;
    expect("[0644, -010, 0o17, 0x1F, 0b101, 1_000, +1, 08, .5]", "[420,-8,15,31,5,1000,1,8,0.5]");
    expect("[yes, No, on, OFF, y, N, 'yes']", "[true,false,true,false,true,false,\"yes\"]");
}

static void words_only(void **state)
{
    static const char yaml[] = "{a: true, b: 12, c: , d: null}";
    (void)state;
    json_t *json = yaml_to_json(yaml, sizeof yaml - 1, YAML_STRINGS, NULL);
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(text, "{\"a\":\"true\",\"b\":\"12\",\"c\":\"\",\"d\":\"null\"}");
    free(text);
    json_decref(json);
}

static void objects(void **state)
{
    (void)state;
    expect("apiVersion: batch/v1\nkind: Job\nspec:\n  list:\n  - a: 1\n  - b\n",
           "{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"spec\":{\"list\":[{\"a\":1},\"b\"]}}");
    expect("{\"json\": [\"is\", {\"yaml\": true}]}", "{\"json\":[\"is\",{\"yaml\":true}]}");
    expect("---\na: &x {b: 1}\nc: *x\n---\n", "{\"a\":{\"b\":1},\"c\":{\"b\":1}}");
}

static void refusals(void **state)
{
    (void)state;
    expect_refusal("", 0, "document is empty");
    expect_refusal("a: 1\na: 2\n", 10, "line 2: duplicate key");
    expect_refusal("[a]: 1", 6, "a key must be text");
    expect_refusal("a: {b\n", 6, "this is no YAML");
    expect_refusal("a: 1\n---\nb: 2\n", 14, "line 3: a second document begins");
    expect_refusal("a: &x {}\nb: {<<: *x}\n", 21, "merge keys");
    expect_refusal("a: &x [*x]\n", 11, "nested too deeply");
    expect_refusal("a: \"b\\0c\"\n", 10, "NUL");
}

/* Nine lines that expand to a thousand million words. */
static void a_few_aliases_are_not_a_great_many(void **state)
{
    char yaml[1000];
    struct text text;
    (void)state;
    text_init(&text, yaml, sizeof yaml);
    text_add(&text, "a: &a [x,x,x,x,x,x,x,x,x,x]\n");
    for (int name = 'b'; name < 'j'; name++) {
        char line[64];
        int before = name - 1;
        (void)snprintf(line, sizeof line, "%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n",
                       name, name, before, before, before, before, before, before, before, before,
                       before, before);
        text_add(&text, line);
    }
    expect_refusal(yaml, strlen(yaml), "too large");
}

/* The C library's own form of a locale that writes 1,5: none need be installed. */
static void make_comma_locale(const char *folder)
{
    static const unsigned char numeric[] =
        "\x14\x11\x03\x20\x06\0\0\0\x20\0\0\0\x22\0\0\0\x24\0\0\0\x28\0\0\0\x2c\0\0\0"
        "\x30\0\0\0,\0.\0\3\3\0\0,\0\0\0.\0\0\0UTF-8";
    char path[128];
    (void)snprintf(path, sizeof path, "%s/comma", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/comma/LC_NUMERIC", folder);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(numeric, 1, sizeof numeric, file), sizeof numeric);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(setenv("LOCPATH", folder, /* overwrite= */ 1), 0);
    assert_non_null(setlocale(LC_NUMERIC, "comma"));
    assert_string_equal(localeconv()->decimal_point, ",");
    assert_int_equal(unlink(path), 0);
    (void)snprintf(path, sizeof path, "%s/comma", folder);
    assert_int_equal(rmdir(path), 0);
}

/* A program that uses the library may have set the locale of its user. */
static void numbers_are_the_same_in_every_locale(void **state)
{
    char folder[] = "/tmp/yaml-XXXXXX";
    (void)state;
    assert_non_null(mkdtemp(folder));
    make_comma_locale(folder);
    expect("[1.5, .5, 1e3, -0.25, '1,5']", "[1.5,0.5,1000,-0.25,\"1,5\"]");
    assert_non_null(setlocale(LC_NUMERIC, "C"));
    assert_int_equal(unsetenv("LOCPATH"), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars),
        cmocka_unit_test(scalars_of_kubectl),
        cmocka_unit_test(words_only),
        cmocka_unit_test(objects),
        cmocka_unit_test(refusals),
        cmocka_unit_test(a_few_aliases_are_not_a_great_many),
        cmocka_unit_test(numbers_are_the_same_in_every_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
