/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words behind the arguments of a command, such as WAIT 500, and their names as members of a
 * JSON body, such as wait_ms. In any order, each once.
 */
#include "face/daemon/daemon_internal.h"

#include "base/nearest.h"
#include "base/text.h"
#include "wire/json_members.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

enum word_value { VALUE_NOTHING, VALUE_NUMBER, VALUE_STRING, VALUE_META };

struct word {
    const char *name;
    const char *field; /* its name in JSON; NULL: HTTP does not have it */
    unsigned bit;
    enum word_value value;
    size_t at; /* in struct daemon_words */
    int64_t min, max;
};

#define TIME_MOST  ((int64_t)366 * 24 * 3600 * 1000)
#define AT(member) offsetof(struct daemon_words, member)

static const struct word all_words[] = {
    {"WAIT", "wait_ms", WORD_WAIT, VALUE_NUMBER, AT(wait_ms), -1, TIME_MOST},
    {"ASYNC", NULL, WORD_ASYNC, VALUE_NOTHING, 0, 0, 0},
    {"SHARED", "shared", WORD_SHARED, VALUE_NOTHING, 0, 0, 0},
    {"LIMIT", "limit", WORD_LIMIT, VALUE_NUMBER, AT(limit), 1, 64},
    {"PRIORITY", "priority", WORD_PRIORITY, VALUE_NUMBER, AT(priority), -100, 100},
    {"COOLDOWN", "cooldown_ms", WORD_COOLDOWN, VALUE_NUMBER, AT(cooldown_ms), 0, TIME_MOST},
    {"LOCKDELAY", "lock_delay_ms", WORD_LOCKDELAY, VALUE_NUMBER, AT(lock_delay_ms), 0, TIME_MOST},
    {"META", "meta", WORD_META, VALUE_META, 0, 0, 0},
    {"ID", "request_id", WORD_ID, VALUE_STRING, AT(id), 0, 0},
    {"BIND", NULL, WORD_BIND, VALUE_NOTHING, 0, 0, 0},
    {"CACHED", "cached", WORD_CACHED, VALUE_NOTHING, 0, 0, 0},
    {"RAW", "raw", WORD_RAW, VALUE_NOTHING, 0, 0, 0},
    {"AFTER", "after", WORD_AFTER, VALUE_STRING, AT(after), 0, 0},
    {"COUNT", "count", WORD_COUNT, VALUE_NUMBER, AT(count), 1, 1000},
    {"NOW", "now", WORD_NOW, VALUE_NOTHING, 0, 0, 0},
    {"PAYLOAD", "payload", WORD_PAYLOAD, VALUE_STRING, AT(payload), 0, 0},
    {"KEEP", "keep_ms", WORD_KEEP, VALUE_NUMBER, AT(keep_ms), 1, TIME_MOST},
    {"STATUS", "status", WORD_STATUS, VALUE_NUMBER, AT(status), 0, 255},
    {"RESULT", "result", WORD_RESULT, VALUE_STRING, AT(result), 0, 0},
    {"ORDER", NULL, WORD_ORDER, VALUE_STRING, AT(order), 0, 0},
    {"OVERLAP", "overlap_ms", WORD_OVERLAP, VALUE_NUMBER, AT(overlap_ms), 1,
     (int64_t)24 * 3600 * 1000},
};

enum { WORDS_COUNT = sizeof all_words / sizeof all_words[0] };

bool words_is_token(const char *text, uint64_t *out)
{
    uint64_t number = 0;
    if (text[0] < '1' || text[0] > '9')
        return false;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at < '0' || *at > '9' || __builtin_mul_overflow(number, 10U, &number) ||
            __builtin_add_overflow(number, (unsigned)(*at - '0'), &number))
            return false;
    }
    *out = number;
    return true;
}

bool words_is_number(const char *text, int64_t *out)
{
    bool negative = text[0] == '-';
    uint64_t number = 0;
    const char *digits = negative ? text + 1 : text;
    if (strcmp(digits, "0") != 0 && !words_is_token(digits, &number))
        return false;
    if (number > INT64_MAX)
        return false;
    *out = negative ? -(int64_t)number : (int64_t)number;
    return true;
}

static const struct word *words_row(const char *text)
{
    for (size_t i = 0; i < WORDS_COUNT; i++) {
        if (strcasecmp(all_words[i].name, text) == 0)
            return &all_words[i];
    }
    return NULL;
}

bool words_field_at(size_t index, struct word_field *out)
{
    if (index >= WORDS_COUNT)
        return false;
    const struct word *word = &all_words[index];
    *out = (struct word_field){.name = word->field, .word = word->name, .bit = word->bit};
    out->kind = word->value == VALUE_NUMBER   ? JSON_NUMBER
                : word->value == VALUE_STRING ? JSON_STRING
                : word->value == VALUE_META   ? JSON_OBJECT
                                              : JSON_BOOL;
    return true;
}

unsigned words_find(const char *text)
{
    const struct word *word = words_row(text);
    return word != NULL ? word->bit : 0;
}

static void words_suggest(const char *text, unsigned allowed, struct text *why)
{
    const char *names[WORDS_COUNT];
    char upper[NEAREST_WORD_MAX + 1];
    size_t count = 0, i = 0;
    for (size_t row = 0; row < WORDS_COUNT; row++) {
        if ((all_words[row].bit & allowed) != 0)
            names[count++] = all_words[row].name;
    }
    for (; i < NEAREST_WORD_MAX && text[i] != '\0'; i++)
        upper[i] = (char)(text[i] >= 'a' && text[i] <= 'z' ? text[i] - 'a' + 'A' : text[i]);
    upper[i] = '\0';
    text_add(why, "unknown word '");
    text_add_clean(why, text, strnlen(text, 40));
    text_add(why, "'");
    const char *near = nearest_match(upper, names, count);
    if (near != NULL)
        TEXT_JOIN(why, "; did you mean ", near, "?");
}

static bool words_parse_meta(const char *json, struct daemon_words *out)
{
    struct json_member pairs[WORDS_META_MAX];
    if (!json_members_parse(json, pairs, WORDS_META_MAX, out->meta_text, sizeof out->meta_text,
                            &out->meta_count) ||
        !json_members_are_strings(pairs, out->meta_count))
        return false;
    for (size_t i = 0; i < out->meta_count; i++)
        out->meta[i] = (struct lh_meta){.name = pairs[i].name, .value = pairs[i].value};
    return true;
}

static bool words_take_value(const struct word *word, const char *text, bool as_fields,
                             struct daemon_words *out, struct text *why)
{
    const char *name = as_fields && word->field != NULL ? word->field : word->name;
    void *at = (char *)out + word->at;
    int64_t number = 0;
    switch (word->value) {
    case VALUE_NUMBER:
        if (words_is_number(text, &number) && number >= word->min && number <= word->max) {
            *(int64_t *)at = number;
            return true;
        }
        TEXT_JOIN(why, name, " needs a number from ");
        text_add_i64(why, word->min);
        text_add(why, " to ");
        text_add_i64(why, word->max);
        return false;
    case VALUE_STRING:
        *(const char **)at = text;
        return true;
    case VALUE_META:
        if (words_parse_meta(text, out))
            return true;
        TEXT_JOIN(why, name, " needs a JSON object of at most 16 strings");
        return false;
    case VALUE_NOTHING:
        break;
    }
    return true;
}

bool words_parse(const struct daemon_args *args, size_t from, unsigned allowed, bool as_fields,
                 struct daemon_words *out, struct text *why)
{
    memset(out, 0, offsetof(struct daemon_words, meta));
    out->meta_count = 0;
    for (size_t i = from; i < args->count; i++) {
        const struct word *word = words_row(args->text[i]);
        if (word == NULL || (word->bit & allowed) == 0) {
            words_suggest(args->text[i], allowed, why);
            return false;
        }
        if ((out->given & word->bit) != 0) {
            TEXT_JOIN(why, word->name, " is given twice");
            return false;
        }
        out->given |= word->bit;
        if (word->value == VALUE_NOTHING)
            continue;
        if (++i == args->count) {
            TEXT_JOIN(why, word->name, " needs a value");
            return false;
        }
        if (!words_take_value(word, args->text[i], as_fields, out, why))
            return false;
    }
    return true;
}
