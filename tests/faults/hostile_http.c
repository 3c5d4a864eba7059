/* SPDX-License-Identifier: Apache-2.0 */
/* See hostile_http.h: reads requests, and sends replies as the armed variant says. */
#include "hostile_http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HEAD_SIZE = 1024, DATE_SIZE = 64 };

static struct {
    struct http_callbacks callbacks;
    const struct variant *variant;
    struct variant *variants; /* all of the suite */
    unsigned nth, replies;
    bool always, hit;
    struct bytes last; /* the good body before this one */
    char address[64];
} server;

/* ---- changing JSON ---- */

void http_set_member(json_t *object, const char *path, const char *value)
{
    char name[64];
    size_t length;
    for (;; path += length + 1) {
        length = strcspn(path, ".");
        (void)snprintf(name, sizeof name, "%.*s", (int)length, path);
        if (path[length] != '.')
            break;
        json_t *child = json_object_get(object, name);
        if (!json_is_object(child) && value != NULL) {
            (void)json_object_set_new(object, name, json_object());
            child = json_object_get(object, name);
        }
        object = child;
    }
    if (value == NULL)
        (void)json_object_del(object, name);
    else
        (void)json_object_set_new(object, name, json_loads(value, JSON_DECODE_ANY, NULL));
}

void http_add_items(json_t *items, size_t more)
{
    size_t count = json_array_size(items);
    for (size_t i = 0; count > 0 && i < more; i++)
        (void)json_array_append(items, json_array_get(items, i % count));
}

void http_change(struct api_answer *reply, const struct variant *variant)
{
    if (variant->action == API_ROOT) {
        http_set_member(reply->json, variant->text, variant->more);
    } else if (variant->action == API_STATUS) {
        reply->status = (int)variant->number;
        if (variant->text == NULL)
            return;
        json_decref(reply->json);
        reply->json =
            json_pack("{s:s, s:s, s:s, s:s, s:i}", "kind", "Status", "status", "Failure", "reason",
                      "Hostile", "message", variant->text, "code", reply->status);
    } else {
        server.callbacks.change(reply, variant);
    }
}

/* ---- changing bodies ---- */

void http_repeat(struct bytes *out, const char *text, int64_t count)
{
    size_t length = strlen(text);
    for (int64_t i = 0; i < count; i++)
        bytes_add(out, text, length);
}

static size_t length_of(const struct variant *variant)
{
    return variant->length > 0     ? variant->length
           : variant->text != NULL ? strlen(variant->text)
                                   : 0;
}

bool http_change_body(const struct variant *variant, struct bytes *out)
{
    switch ((enum api_action)variant->action) {
    case API_BODY:
        bytes_add(out, variant->text, length_of(variant));
        return true;
    case API_LONG:
        bytes_add_text(out, "{\"kind\":\"Status\",\"message\":\"");
        http_repeat(out, variant->text, variant->number / (int64_t)strlen(variant->text));
        bytes_add_text(out, "\"}");
        return true;
    case API_NEST:
        http_repeat(out, variant->text, variant->number);
        return true;
    case API_REPLAY:
        bytes_add(out, server.last.at, server.last.length);
        return true;
    default:
        return false;
    }
}

void http_add_chunk(struct bytes *out, const char *bytes, size_t length, const char *more)
{
    char head[32];
    (void)snprintf(head, sizeof head, "%zx", length);
    bytes_add_text(out, head);
    bytes_add_text(out, more);
    bytes_add_text(out, "\r\n");
    bytes_add(out, bytes, length);
    bytes_add_text(out, "\r\n");
}

/* ---- changing replies ---- */

const struct variant *http_next(const struct api_answer *reply)
{
    const struct variant *variant = server.variant;
    server.replies++;
    if (variant == NULL || server.replies < server.nth || (server.hit && !server.always) ||
        (server.callbacks.applies != NULL && !server.callbacks.applies(reply, variant)))
        return NULL;
    return variant;
}

/* $S is the address of the server. */
static void add_lines(struct bytes *out, const char *lines)
{
    for (const char *at; (at = strstr(lines, "$S")) != NULL; lines = at + 2) {
        bytes_add(out, lines, (size_t)(at - lines));
        bytes_add_text(out, server.address);
    }
    bytes_add_text(out, lines);
}

static void add_head(struct bytes *out, const struct variant *variant,
                     const struct api_answer *reply, bool chunked, size_t length)
{
    char head[HEAD_SIZE], date[DATE_SIZE];
    time_t now = time(NULL);
    struct tm parts;
    bool dated = variant != NULL && variant->action == API_DATE;
    int64_t off = variant != NULL && variant->action == API_LENGTH ? variant->number : 0;
    (void)strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &parts));
    (void)snprintf(head, sizeof head, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n",
                   reply->status, reply->status < 300 ? "OK" : "No");
    bytes_add_text(out, head);
    if (!dated || variant->text != NULL) {
        bytes_add_text(out, "Date: ");
        bytes_add_text(out, dated ? variant->text : date);
        bytes_add_text(out, "\r\n");
    }
    if (variant != NULL && variant->action == API_HEADER)
        add_lines(out, variant->text);
    if (variant != NULL && variant->action == API_STATUS && variant->more != NULL)
        add_lines(out, variant->more);
    bytes_add_text(out, reply->headers);
    if (chunked)
        (void)snprintf(head, sizeof head, "Transfer-Encoding: chunked\r\n\r\n");
    else
        (void)snprintf(head, sizeof head, "Content-Length: %lld\r\n\r\n", (long long)length + off);
    bytes_add_text(out, head);
}

/* Head and body of this variant. */
static void add_answer(struct conn *conn, const struct variant *variant,
                       const struct api_answer *reply, const struct bytes *body, struct bytes *out)
{
    bool watch = reply->watched[0] != '\0';
    bool endless = variant != NULL && variant->action == API_ENDLESS;
    bool chunked = variant != NULL && variant->action == API_CHUNKED;
    if (variant != NULL && variant->action == API_RAW) {
        bytes_add(out, variant->text, length_of(variant));
        return;
    }
    add_head(out, variant, reply, watch || chunked, endless ? (size_t)1 << 30 : body->length);
    if (endless) {
        bytes_add_text(out, variant->text);
        conn->endless = variant->more;
        conn->endless_length = strlen(variant->more);
    } else if (chunked) {
        for (size_t at = 0; at < body->length; at += 100)
            http_add_chunk(out, body->at + at, body->length - at < 100 ? body->length - at : 100,
                           variant->text);
        if (variant->more != NULL)
            bytes_add_text(out, variant->more);
    } else if (watch && body->length > 0) {
        http_add_chunk(out, body->at, body->length, "");
    } else {
        bytes_add(out, body->at, body->length);
    }
}

void http_send_out(struct conn *conn, const struct variant *variant, struct bytes *out)
{
    if (variant != NULL) {
        int64_t length = (int64_t)out->length;
        int64_t at = variant->number < 0 ? length + variant->number : variant->number;
        if (variant->action == API_CUT && at < length)
            out->length = at < 0 ? 0 : (size_t)at;
        if (variant->action == API_DRIP)
            conn_drip(conn);
        conn->ending = variant->ending;
        conn->deaf = conn->deaf || variant->ending != END_NOT || conn->endless != NULL;
        server.hit = true;
    }
    bytes_add(&conn->out, out->at, out->length);
    bytes_free(out);
}

static void keep_body(const struct bytes *body)
{
    bytes_take(&server.last, server.last.length);
    bytes_add(&server.last, body->at, body->length);
}

void http_dump(const json_t *json, struct bytes *out)
{
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;
    if (text != NULL)
        bytes_add_text(out, text);
    free(text);
}

void http_send(struct conn *conn, struct api_answer *reply, struct bytes *out_sent)
{
    struct bytes good = {0}, body = {0}, out = {0};
    const struct variant *variant = http_next(reply);
    http_dump(reply->json, &good);
    if (variant != NULL && reply->json != NULL) {
        json_t *own = json_deep_copy(reply->json);
        json_decref(reply->json);
        reply->json = own;
    }
    if (variant != NULL)
        http_change(reply, variant);
    if (variant == NULL || !http_change_body(variant, &body))
        http_dump(reply->json, &body);
    bytes_add(&body, "", 0);
    add_answer(conn, variant, reply, &body, &out);
    if (out_sent != NULL)
        bytes_add(out_sent, out.at, out.length);
    http_send_out(conn, variant, &out);
    keep_body(&good);
    bytes_free(&good);
    bytes_free(&body);
    json_decref(reply->json);
}

/* ---- requests ---- */

static void serve_request(struct conn *conn, const char *head, const char *body, size_t length)
{
    char method[16] = "", target[4096] = "";
    if (sscanf(head, "%15s %4095s", method, target) != 2) {
        conn->ending = END_CLOSE;
        return;
    }
    json_t *json = length > 0 ? json_loadb(body, length, 0, NULL) : NULL;
    server.callbacks.serve(conn, head, method, target, json);
    json_decref(json);
}

static void came(struct conn *conn)
{
    static const char name[] = "\r\nContent-Length: ";
    while (!conn->deaf && conn->in.length > 0) {
        const char *end = memmem(conn->in.at, conn->in.length, "\r\n\r\n", 4);
        if (end == NULL)
            return;
        size_t head = (size_t)(end + 4 - conn->in.at);
        const char *found = memmem(conn->in.at, head, name, sizeof name - 1);
        size_t length = found != NULL ? strtoul(found + sizeof name - 1, NULL, 10) : 0;
        if (conn->in.length < head + length)
            return;
        struct bytes request = {0};
        bytes_add(&request, conn->in.at, head + length);
        bytes_take(&conn->in, head + length);
        serve_request(conn, request.at, request.at + head, length);
        bytes_free(&request);
    }
}

static bool opened(struct conn *conn)
{
    (void)conn;
    return true;
}

/* ---- the suite ---- */

void http_init(struct wire *wire, const struct http_callbacks *callbacks)
{
    wire->opened = opened;
    wire->came = came;
    server.callbacks = *callbacks;
    (void)snprintf(server.address, sizeof server.address, "http://127.0.0.1:%u",
                   (unsigned)wire->port);
}

void http_done(void)
{
    bytes_free(&server.last);
}

void http_arm(const struct variant *variant, unsigned nth, bool always)
{
    server.variant = variant;
    server.nth = nth;
    server.always = always;
    server.replies = 0;
    server.hit = false;
}

unsigned http_replies(bool *out_hit)
{
    *out_hit = server.hit;
    return server.replies;
}

const struct variant *http_variants_with(const struct variant *own, size_t own_count,
                                         size_t *out_count)
{
    *out_count = http_variant_count + own_count;
    free(server.variants);
    server.variants = calloc(*out_count, sizeof *own);
    if (server.variants == NULL)
        abort();
    memcpy(server.variants, http_variants, http_variant_count * sizeof *own);
    memcpy(server.variants + http_variant_count, own, own_count * sizeof *own);
    return server.variants;
}
