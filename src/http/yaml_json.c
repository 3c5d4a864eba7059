/* SPDX-License-Identifier: Apache-2.0 */
/* See yaml_json.h. libyaml parses; an alias is copied, so depth and size have limits. */
#include "http/yaml_json.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum { DEPTH_MAX = 64, NODES_MAX = 100000 };

struct yaml_reader {
    yaml_document_t document;
    enum yaml_scalars scalars;
    size_t left; /* nodes: a few aliases can expand to very many */
    struct text *why;
    bool refused; /* only the first reason is reported */
};

static json_t *yaml_fail(struct yaml_reader *reader, const yaml_node_t *node, const char *string)
{
    if (!reader->refused) {
        text_add(reader->why, "line ");
        text_add_u64(reader->why, node != NULL ? node->start_mark.line + 1 : 1);
        TEXT_JOIN(reader->why, ": ", string);
    }
    reader->refused = true;
    return NULL;
}

/* ---- scalars ---- */

static bool is_one_of(const char *string, const char *const *list)
{
    for (; *list != NULL; list++) {
        if (strcmp(string, *list) == 0)
            return true;
    }
    return false;
}

/* As in kubectl: 0644 and 0x1f are numbers, 1_000 is 1000. */
static bool read_whole(const char *string, long long *out)
{
    bool minus = *string == '-';
    const char *at = string + (minus || *string == '+' ? 1 : 0);
    char *end = NULL;
    int base = 0;
    if (*at < '0' || *at > '9')
        return false;
    if (at[0] == '0' && (at[1] == 'o' || at[1] == 'b')) {
        base = at[1] == 'o' ? 8 : 2;
        at += 2;
    }
    errno = 0;
    long long whole = strtoll(at, &end, base);
    *out = minus ? -whole : whole;
    return end != at && *end == '\0' && errno == 0;
}

/* strtod() with a decimal point, independent of the locale. */
static double real_of(char *string, char **out_end)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    *out_end = string; /* in case of failure */
    double number = plain != (locale_t)0 ? strtod_l(string, out_end, plain) : 0;
    if (plain != (locale_t)0)
        freelocale(plain);
    return number;
}

static json_t *number_of(const char *string)
{
    enum { LONGEST = 64, EXACT = 1 << 30 };
    char plain[LONGEST];
    char *end = plain;
    long long whole;
    for (; *string != '\0' && end < plain + LONGEST - 1; string++) {
        if (*string != '_')
            *end++ = *string;
    }
    *end = '\0';
    if (*string != '\0' || strpbrk(plain, "0123456789") == NULL)
        return NULL;
    if (read_whole(plain, &whole))
        return json_integer(whole);
    if (strspn(plain, "0123456789.eE+-") != strlen(plain) || *plain == 'e' || *plain == 'E')
        return NULL;
    errno = 0;
    double number = real_of(plain, &end);
    if (*end != '\0' || errno != 0)
        return NULL;
    bool is_whole = number > -EXACT && number < EXACT && (double)(json_int_t)number == number;
    return is_whole ? json_integer((json_int_t)number) : json_real(number);
}

static json_t *scalar_of(struct yaml_reader *reader, const yaml_node_t *node)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const true_values[] = {"true", "True", "TRUE", "yes", "Yes", "YES",
                                              "on",   "On",   "ON",   "y",   "Y",   NULL};
    static const char *const false_values[] = {"false", "False", "FALSE", "no", "No", "NO",
                                               "off",   "Off",   "OFF",   "n",  "N",  NULL};
    const char *string = (const char *)node->data.scalar.value;
    size_t length = node->data.scalar.length;
    if (strlen(string) != length)
        return yaml_fail(reader, node, "a value must not contain NUL");
    if (reader->scalars == YAML_TYPED && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
        if (is_one_of(string, nulls))
            return json_null();
        if (is_one_of(string, true_values))
            return json_true();
        if (is_one_of(string, false_values))
            return json_false();
        json_t *number = number_of(string);
        if (number != NULL)
            return number;
    }
    json_t *text = json_stringn(string, length);
    return text != NULL ? text : yaml_fail(reader, node, "invalid UTF-8");
}

/* ---- nodes ---- */

static json_t *convert(struct yaml_reader *reader, int index, unsigned depth);

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the document, 64 at most */
static json_t *list_of(struct yaml_reader *reader, const yaml_node_t *node, unsigned depth)
{
    json_t *list = json_array();
    for (const yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top; item++) {
        json_t *value = convert(reader, *item, depth + 1);
        if (value != NULL && json_array_append_new(list, value) == 0)
            continue;
        json_decref(list);
        return NULL;
    }
    return list;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the document, 64 at most */
static bool yaml_add_pair(struct yaml_reader *reader, json_t *map, const yaml_node_pair_t *pair,
                          unsigned depth)
{
    const yaml_node_t *node = yaml_document_get_node(&reader->document, pair->key);
    if (node->type != YAML_SCALAR_NODE)
        return yaml_fail(reader, node, "a key must be text") != NULL;
    const char *key = (const char *)node->data.scalar.value;
    if (strcmp(key, "<<") == 0)
        return yaml_fail(reader, node, "merge keys (<<) are not JSON; write the keys out") != NULL;
    if (json_object_get(map, key) != NULL)
        return yaml_fail(reader, node, "duplicate key") != NULL;
    json_t *value = convert(reader, pair->value, depth + 1);
    if (value == NULL)
        return false;
    return json_object_set_new(map, key, value) == 0 ||
           yaml_fail(reader, node, "this key is not UTF-8") != NULL;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the document, 64 at most */
static json_t *map_of(struct yaml_reader *reader, const yaml_node_t *node, unsigned depth)
{
    json_t *map = json_object();
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        if (!yaml_add_pair(reader, map, pair, depth)) {
            json_decref(map);
            return NULL;
        }
    }
    return map;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the document, 64 at most */
static json_t *convert(struct yaml_reader *reader, int index, unsigned depth)
{
    const yaml_node_t *node = yaml_document_get_node(&reader->document, index);
    if (depth > DEPTH_MAX || reader->left == 0)
        return yaml_fail(reader, node, "this is nested too deeply, or too large");
    reader->left--;
    if (node->type == YAML_SCALAR_NODE)
        return scalar_of(reader, node);
    return node->type == YAML_SEQUENCE_NODE ? list_of(reader, node, depth)
                                            : map_of(reader, node, depth);
}

/* ---- documents ---- */

static bool yaml_load(yaml_parser_t *parser, struct yaml_reader *reader)
{
    if (yaml_parser_load(parser, &reader->document) != 0)
        return true;
    text_add(reader->why, "line ");
    text_add_u64(reader->why, parser->problem_mark.line + 1);
    TEXT_JOIN(reader->why, ": this is no YAML: ",
              parser->problem != NULL ? parser->problem : "it cannot be read");
    return false;
}

/* After the first document only empty ones may follow: "---" at the end is common. */
static bool is_all(yaml_parser_t *parser, struct yaml_reader *reader)
{
    for (;;) {
        if (!yaml_load(parser, reader))
            return false;
        const yaml_node_t *root = yaml_document_get_root_node(&reader->document);
        bool ends = root == NULL;
        bool empty = !ends && root->type == YAML_SCALAR_NODE && root->data.scalar.length == 0;
        if (!ends && !empty)
            (void)yaml_fail(reader, root, "a second document begins; give one object only");
        yaml_document_delete(&reader->document);
        if (ends || !empty)
            return ends;
    }
}

json_t *yaml_to_json(const char *bytes, size_t length, enum yaml_scalars scalars, struct text *why)
{
    struct yaml_reader reader = {.scalars = scalars, .left = NODES_MAX, .why = why};
    yaml_parser_t parser;
    json_t *json = NULL;
    if (yaml_parser_initialize(&parser) == 0) {
        text_add(why, "out of memory");
        return NULL;
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)bytes, length);
    if (yaml_load(&parser, &reader)) {
        if (yaml_document_get_root_node(&reader.document) == NULL)
            (void)yaml_fail(&reader, NULL, "the document is empty");
        else
            json = convert(&reader, /* index= */ 1, /* depth= */ 0);
        yaml_document_delete(&reader.document);
    }
    if (json != NULL && !is_all(&parser, &reader)) {
        json_decref(json);
        json = NULL;
    }
    yaml_parser_delete(&parser);
    return json;
}
