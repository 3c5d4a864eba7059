/* SPDX-License-Identifier: Apache-2.0 */
/* See resp_json.h. */
#include "wire/resp_json.h"

#include "wire/json_text.h"
#include "wire/resp.h"

struct resp_json_writer {
    struct resp_walk walk;
    struct text *out;
    struct resp_json_summary *summary;
};

static void resp_json_string(struct text *out, const char *bytes, size_t length)
{
    text_add(out, "\"");
    json_escape(out, bytes, length);
    text_add(out, "\"");
}

static void resp_json_copy_word(char out[RESP_JSON_WORD], const char *bytes, size_t length)
{
    struct text text;
    text_init(&text, out, RESP_JSON_WORD);
    text_add_bytes(&text, bytes, length);
}

/* "NOPERM ci may not …": the code, then the text. "ERR failed: …" is our failure. */
static void resp_json_error(struct resp_json_writer *writer, const struct resp_item *item)
{
    static const char *const denied[] = {"NOPERM", "NOAUTH", "WRONGPASS"};
    const char *space = memchr(item->text, ' ', item->length);
    size_t code = space != NULL ? (size_t)(space - item->text) : item->length;
    size_t rest = code < item->length ? code + 1 : code;
    static const char failed[] = "failed: ";
    size_t prefix = sizeof failed - 1;
    const char *outcome = "usage";
    resp_json_copy_word(writer->summary->error, item->text, code);
    if (item->length - rest >= prefix && memcmp(item->text + rest, failed, prefix) == 0) {
        outcome = "failed";
        rest += prefix;
    }
    for (size_t i = 0; i < sizeof denied / sizeof denied[0]; i++) {
        if (strcmp(writer->summary->error, denied[i]) == 0)
            outcome = "denied";
    }
    resp_json_copy_word(writer->summary->outcome, outcome, strlen(outcome));
    TEXT_JOIN(writer->out, "{\"outcome\":\"", outcome, "\",\"text\":\"", outcome, ": ");
    json_escape(writer->out, item->text + rest, item->length - rest);
    text_add(writer->out, "\"}");
}

static void resp_json_note(struct resp_json_writer *writer, const struct resp_item *name)
{
    struct resp_walk ahead = writer->walk;
    struct resp_item value;
    if (!resp_next(&ahead, &value))
        return;
    if (resp_is(name, "outcome") && value.kind == RESP_TEXT)
        resp_json_copy_word(writer->summary->outcome, value.text, value.length);
    else if (resp_is(name, "retry_after_ms") && value.kind == RESP_NUMBER)
        writer->summary->retry_after_ms = value.number;
}

/* A map or a list whose items are being written. */
struct resp_json_level {
    bool map;
    size_t at, count; /* items; those of a map are names and values */
};

/* The name of the next value of a map. */
static bool resp_json_name(struct resp_json_writer *writer, bool outermost)
{
    struct resp_item name;
    if (!resp_next(&writer->walk, &name) || name.kind != RESP_TEXT)
        return false;
    if (outermost)
        resp_json_note(writer, &name);
    resp_json_string(writer->out, name.text, name.length);
    text_add(writer->out, ":");
    return true;
}

/* The item, or its beginning if it has items. False if it is not one of a reply. */
static bool resp_json_item(struct resp_json_writer *writer, const struct resp_item *item, bool bit)
{
    switch (item->kind) {
    case RESP_TEXT:
        resp_json_string(writer->out, item->text, item->length);
        return true;
    case RESP_ERROR:
        resp_json_error(writer, item);
        return true;
    case RESP_NUMBER:
        if (bit)
            text_add(writer->out, item->number != 0 ? "true" : "false");
        else
            text_add_i64(writer->out, item->number);
        return true;
    case RESP_NULL:
        text_add(writer->out, "null");
        return true;
    case RESP_MAP:
        text_add(writer->out, "{");
        return true;
    case RESP_LIST:
    case RESP_PUSH:
        text_add(writer->out, "[");
        return true;
    case RESP_ATTRIBUTE:
        break;
    }
    return false;
}

static bool resp_json_value(struct resp_json_writer *writer)
{
    struct resp_json_level levels[RESP_DEPTH_MAX];
    size_t depth = 0;
    do {
        struct resp_json_level *around = depth > 0 ? &levels[depth - 1] : NULL;
        struct resp_item item;
        if (around != NULL && around->at > 0)
            text_add(writer->out, ",");
        if (around != NULL && around->map && !resp_json_name(writer, depth == 1))
            return false;
        if (around != NULL)
            around->at += around->map ? 2 : 1;
        size_t start = writer->walk.at;
        if (!resp_next(&writer->walk, &item) ||
            !resp_json_item(writer, &item, writer->walk.bytes[start] == '#'))
            return false;
        bool map = item.kind == RESP_MAP;
        if (map || item.kind == RESP_LIST || item.kind == RESP_PUSH) {
            if (depth == RESP_DEPTH_MAX)
                return false;
            levels[depth++] = (struct resp_json_level){.map = map, .count = item.count};
        }
        for (; depth > 0 && levels[depth - 1].at >= levels[depth - 1].count; depth--)
            text_add(writer->out, levels[depth - 1].map ? "}" : "]");
    } while (depth > 0);
    return true;
}

bool resp_json(const char *bytes, size_t length, struct text *out,
               struct resp_json_summary *out_summary)
{
    struct resp_json_writer writer = {
        .walk = {.bytes = bytes, .length = length}, .out = out, .summary = out_summary};
    *out_summary = (struct resp_json_summary){.retry_after_ms = -1};
    return resp_json_value(&writer) && writer.walk.at == length;
}
