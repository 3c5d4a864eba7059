/* SPDX-License-Identifier: Apache-2.0 */
/* See resp_json.h. Recursive; the depth is that of resp.h, which is limited. */
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

static bool resp_json_value(struct resp_json_writer *writer, bool outermost);

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

static bool resp_json_map(struct resp_json_writer *writer, size_t pairs, bool outermost)
{
    struct resp_item name;
    text_add(writer->out, "{");
    for (size_t i = 0; i < pairs; i++) {
        if (!resp_next(&writer->walk, &name) || name.kind != RESP_TEXT)
            return false;
        if (outermost)
            resp_json_note(writer, &name);
        text_add(writer->out, i > 0 ? "," : "");
        resp_json_string(writer->out, name.text, name.length);
        text_add(writer->out, ":");
        if (!resp_json_value(writer, /* outermost= */ false))
            return false;
    }
    text_add(writer->out, "}");
    return true;
}

static bool resp_json_list(struct resp_json_writer *writer, size_t count)
{
    text_add(writer->out, "[");
    for (size_t i = 0; i < count; i++) {
        text_add(writer->out, i > 0 ? "," : "");
        if (!resp_json_value(writer, /* outermost= */ false))
            return false;
    }
    text_add(writer->out, "]");
    return true;
}

static bool resp_json_value(struct resp_json_writer *writer, bool outermost)
{
    struct resp_item item;
    size_t start = writer->walk.at;
    if (!resp_next(&writer->walk, &item))
        return false;
    switch (item.kind) {
    case RESP_TEXT:
        resp_json_string(writer->out, item.text, item.length);
        return true;
    case RESP_ERROR:
        resp_json_error(writer, &item);
        return true;
    case RESP_NUMBER:
        if (writer->walk.bytes[start] == '#')
            text_add(writer->out, item.number != 0 ? "true" : "false");
        else
            text_add_i64(writer->out, item.number);
        return true;
    case RESP_NULL:
        text_add(writer->out, "null");
        return true;
    case RESP_MAP:
        return resp_json_map(writer, item.count / 2, outermost);
    case RESP_LIST:
    case RESP_PUSH:
        return resp_json_list(writer, item.count);
    case RESP_ATTRIBUTE:
        break;
    }
    return false;
}

bool resp_json(const char *bytes, size_t length, struct text *out,
               struct resp_json_summary *out_summary)
{
    struct resp_json_writer writer = {
        .walk = {.bytes = bytes, .length = length}, .out = out, .summary = out_summary};
    *out_summary = (struct resp_json_summary){.retry_after_ms = -1};
    return resp_json_value(&writer, /* outermost= */ true) && writer.walk.at == length;
}
