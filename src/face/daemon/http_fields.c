/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of a request, or its query, as arguments of a verb: positional ones by the route's
 * table, the rest as words by words.c. Wrong types, unknown and missing fields are named.
 */
#include "face/daemon/http_face.h"

#include "base/nearest.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- members ---- */

const struct json_member *http_member(const struct http_face *face, const char *name)
{
    for (size_t i = 0; i < face->member_count; i++) {
        if (strcmp(face->members[i].name, name) == 0)
            return &face->members[i];
    }
    return NULL;
}

/* "a=b&c=d". Values have the kind that their field needs: see http_value(). */
static bool fields_read_query(struct http_face *face, struct httpd_slice query)
{
    struct httpd_slice pair, name;
    char *memory = face->memory;
    size_t left = sizeof face->memory;
    while (httpd_next_part(&query, '&', &pair)) {
        if (pair.length == 0)
            continue;
        if (face->member_count == HTTP_MEMBERS_MAX || !httpd_next_part(&pair, '=', &name))
            return false;
        struct json_member *member = &face->members[face->member_count++];
        *member = (struct json_member){.kind = JSON_NULL, .name = memory};
        if (!httpd_decode_query(name, memory, left))
            return false;
        size_t size = strlen(memory) + 1;
        memory += size;
        left -= size;
        member->value = memory;
        if (!httpd_decode_query(pair, memory, left))
            return false;
        size = strlen(memory) + 1;
        memory += size;
        left -= size;
    }
    return true;
}

static bool fields_are_unique(const struct http_face *face, struct text *why)
{
    for (size_t i = 0; i < face->member_count; i++) {
        if (http_member(face, face->members[i].name) == &face->members[i])
            continue;
        text_add_clean(why, face->members[i].name, strnlen(face->members[i].name, 64));
        text_add(why, " is given twice");
        return false;
    }
    return true;
}

/* "application/json", perhaps with parameters. */
static bool fields_is_json(struct httpd_slice type)
{
    static const char json[] = "application/json";
    size_t length = sizeof json - 1;
    if (type.bytes == NULL || type.length < length || strncasecmp(type.bytes, json, length) != 0)
        return false;
    while (length < type.length && (type.bytes[length] == ' ' || type.bytes[length] == '\t'))
        length++;
    return length == type.length || type.bytes[length] == ';';
}

/* Neither the reader of JSON nor a C string needs to know about these. */
static bool fields_is_text(const char *bytes, size_t length)
{
    for (size_t at = 0; at < length;) {
        size_t step = bytes[at] != '\0' ? text_utf8_length(bytes + at, length - at) : 0;
        if (step == 0)
            return false;
        at += step;
    }
    return true;
}

bool http_read_members(struct http_face *face, const struct httpd_request *request, int *out_status,
                       struct text *why)
{
    bool reads = httpd_is(request->method, "GET") || httpd_is(request->method, "HEAD");
    bool deletes = httpd_is(request->method, "DELETE");
    *out_status = 400;
    face->member_count = 0;
    face->members_are_query = reads || (deletes && request->body_length == 0);
    if (reads && request->body_length > 0) {
        text_add(why, "a GET request has no body");
        return false;
    }
    if (request->query.bytes != NULL && !face->members_are_query) {
        text_add(why, "this request has its fields in the body, not in the query");
        return false;
    }
    if (face->members_are_query) {
        if (fields_read_query(face, request->query))
            return fields_are_unique(face, why);
        text_add(why, "the query is malformed, or has more than 64 fields");
        return false;
    }
    if (!fields_is_json(request->content_type)) {
        *out_status = 415;
        text_add(why, "Content-Type must be application/json");
        return false;
    }
    size_t length = httpd_request_body(request, face->body);
    face->body[length] = '\0';
    if (length == 0)
        return true;
    if (fields_is_text(face->body, length) &&
        json_members_parse(face->body, face->members, HTTP_MEMBERS_MAX, face->memory,
                           sizeof face->memory, &face->member_count))
        return fields_are_unique(face, why);
    face->member_count = 0;
    text_add(why, "the body must be one JSON object, with at most 64 members");
    return false;
}

/* ---- positional arguments ---- */

enum json_kind http_field_kind(const char *name)
{
    size_t length = strlen(name);
    if (strcmp(name, "keys") == 0)
        return JSON_LIST;
    return length > 3 && strcmp(name + length - 3, "_ms") == 0 ? JSON_NUMBER : JSON_STRING;
}

bool http_next_field(const char **at, char out[32], bool *out_required)
{
    if (*at == NULL)
        return false;
    while (**at == ' ' || **at == '|') {
        if (**at == '|')
            *out_required = false;
        (*at)++;
    }
    size_t length = strcspn(*at, " |");
    if (length == 0 || length >= 32)
        return false;
    memcpy(out, *at, length);
    out[length] = '\0';
    *at += length;
    return true;
}

static const char *fields_kind_name(enum json_kind kind)
{
    static const char *const names[] = {
        [JSON_STRING] = "a string", [JSON_NUMBER] = "a number",  [JSON_BOOL] = "true or false",
        [JSON_NULL] = "null",       [JSON_OBJECT] = "an object", [JSON_LIST] = "a list of strings"};
    return names[kind];
}

/* True if the member has this kind; a value of a query (JSON_NULL, but not "null") may be any. */
static bool fields_has_kind(const struct json_member *member, enum json_kind kind, bool query,
                            struct text *why)
{
    if (member->kind == kind || (query && kind != JSON_LIST && kind != JSON_OBJECT))
        return true;
    TEXT_JOIN(why, member->name, " must be ", fields_kind_name(kind));
    return false;
}

static bool fields_put(struct daemon_args *args, const char *text, struct text *why)
{
    if (args->count < RESP_ARGS_MAX) {
        args->text[args->count++] = text;
        return true;
    }
    text_add(why, "too many fields");
    return false;
}

/* The keys behind their number. */
static bool fields_put_keys(struct http_face *face, const struct json_member *member,
                            struct daemon_args *args, struct text *why)
{
    static const char *const numbers[] = {"0", "1",  "2",  "3",  "4",  "5",  "6",  "7", "8",
                                          "9", "10", "11", "12", "13", "14", "15", "16"};
    struct json_member items[LH_KEYS_MAX];
    size_t count = 0;
    /* The body was decoded already: its memory is free again. */
    if (!json_items_parse(member->value, items, LH_KEYS_MAX, face->body, sizeof face->body,
                          &count) ||
        count == 0 || !json_members_are_strings(items, count)) {
        text_add(why, "keys must be a list of 1 to 16 strings");
        return false;
    }
    bool fits = fields_put(args, numbers[count], why);
    for (size_t i = 0; fits && i < count; i++)
        fits = fields_put(args, items[i].value, why);
    return fits;
}

/* Marks the members that it used by their names. */
static bool fields_put_positional(struct http_face *face, const struct http_route *route,
                                  bool query, struct daemon_args *args, struct text *why)
{
    const char *at = route->fields;
    char name[32];
    bool required = true;
    while (http_next_field(&at, name, &required)) {
        const struct json_member *member = http_member(face, name);
        if (member == NULL || (!query && member->kind == JSON_NULL)) {
            if (!required)
                break; /* those behind it are missing too */
            TEXT_JOIN(why, name, " is missing");
            return false;
        }
        enum json_kind kind = http_field_kind(name);
        if (!fields_has_kind(member, kind, query, why))
            return false;
        if (kind == JSON_LIST ? !fields_put_keys(face, member, args, why)
                              : !fields_put(args, member->value, why))
            return false;
    }
    return true;
}

/* ---- words ---- */

static bool fields_is_positional(const struct http_route *route, const char *name)
{
    const char *at = route->fields;
    char field[32];
    bool required = true;
    while (http_next_field(&at, field, &required)) {
        if (strcmp(field, name) == 0)
            return true;
    }
    return false;
}

static void fields_suggest(const struct http_route *route, unsigned words, const char *name,
                           struct text *why)
{
    const char *names[HTTP_MEMBERS_MAX];
    char positional[8][32];
    struct word_field field;
    size_t count = 0, fields = 0;
    const char *at = route->fields;
    bool required = true;
    while (fields < 8 && http_next_field(&at, positional[fields], &required))
        names[count++] = positional[fields++];
    for (size_t i = 0; words_field_at(i, &field); i++) {
        if ((field.bit & words) != 0 && field.name != NULL)
            names[count++] = field.name;
    }
    text_add(why, "unknown field '");
    text_add_clean(why, name, strnlen(name, 40));
    text_add(why, "'");
    const char *near = nearest_match(name, names, count);
    if (near != NULL)
        TEXT_JOIN(why, "; did you mean ", near, "?");
}

/* A wait is an open request: a longer one is repeated. */
static bool fields_wait_is_short(const struct json_member *member, struct text *why)
{
    int64_t wait_ms = 0;
    if (words_is_number(member->value, &wait_ms) && wait_ms >= 0 && wait_ms <= HTTP_WAIT_MOST_MS)
        return true;
    text_add(why, "wait_ms must be a number from 0 to 60000; to wait longer, repeat the request "
                  "with the same request_id");
    return false;
}

static bool fields_put_word(const struct json_member *member, const struct word_field *field,
                            bool query, struct daemon_args *args, struct text *why)
{
    if (!fields_has_kind(member, field->kind, query, why))
        return false;
    if (field->kind == JSON_BOOL) {
        bool yes = strcmp(member->value, "true") == 0 || (query && strcmp(member->value, "1") == 0);
        if (!yes && strcmp(member->value, "false") != 0 && strcmp(member->value, "0") != 0) {
            TEXT_JOIN(why, member->name, " must be true or false");
            return false;
        }
        return !yes || fields_put(args, field->word, why);
    }
    if (field->bit == WORD_WAIT && !fields_wait_is_short(member, why))
        return false;
    return fields_put(args, field->word, why) && fields_put(args, member->value, why);
}

static bool fields_find_word(const char *name, unsigned words, struct word_field *out)
{
    for (size_t i = 0; words_field_at(i, out); i++) {
        if ((out->bit & words) != 0 && out->name != NULL && strcmp(out->name, name) == 0)
            return true;
    }
    return false;
}

bool http_fields_are_known(const struct http_face *face, const struct http_route *route,
                           struct text *why)
{
    const struct daemon_verb *verb = route->verb != NULL ? verb_find(route->verb) : NULL;
    unsigned words = verb != NULL ? verb->words : 0;
    struct word_field field;
    for (size_t i = 0; i < face->member_count; i++) {
        const char *name = face->members[i].name;
        bool given = face->members_are_query || face->members[i].kind != JSON_NULL;
        if (!given || fields_is_positional(route, name) || fields_find_word(name, words, &field))
            continue;
        fields_suggest(route, words, name, why);
        return false;
    }
    return true;
}

bool http_build_args(struct http_face *face, const struct http_route *route, const char *key,
                     struct daemon_args *out, struct text *why)
{
    const struct daemon_verb *verb = verb_find(route->verb);
    bool query = face->members_are_query;
    out->text[0] = route->verb;
    out->text[1] = "";
    out->count = 1;
    if (key != NULL && !fields_put(out, key, why))
        return false;
    if (!fields_put_positional(face, route, query, out, why))
        return false;
    out->positional = out->count - 1;
    out->has_positional = true;
    for (size_t i = 0; i < face->member_count; i++) {
        const struct json_member *member = &face->members[i];
        struct word_field field;
        if (fields_is_positional(route, member->name) || (!query && member->kind == JSON_NULL))
            continue;
        if (fields_find_word(member->name, verb->words, &field) &&
            !fields_put_word(member, &field, query, out, why))
            return false;
    }
    return true;
}
