/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See hostile_k8s.h: an API server that turns hostile at its nth reply. An event of a watch counts
 * as a reply, too. Before that it is the good server of hostile_api.c.
 */
#include "hostile_k8s.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { VERBS_KEPT = 64, HEAD_SIZE = 1024, DATE_SIZE = 64 };

static const char *const modes[] = {"", "?events=on"};

static struct {
    struct wire *wire;
    json_t *kept[VERBS_KEPT];
    const struct variant *variant;
    unsigned nth, replies;
    bool always, hit;
    struct bytes last;   /* the good body before this one */
    struct conn *notify; /* receives the current objects when a watch begins */
} server;

/* ---- changing JSON ---- */

/* Sets the member at "a.b.c" to that JSON; NULL: removes it. */
static void set_member(json_t *object, const char *path, const char *value)
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

/* Appends copies of the items until there are N more. */
static void add_items(json_t *items, size_t more)
{
    size_t count = json_array_size(items);
    for (size_t i = 0; count > 0 && i < more; i++)
        (void)json_array_append(items, json_array_get(items, i % count));
}

/* Calls for each object: the reply itself, items of a list, the object of an event. */
static void change_objects(json_t *json, const struct variant *variant)
{
    size_t index;
    json_t *item, *items = json_object_get(json, "items"), *one = json_object_get(json, "object");
    const char *value = variant->action == API_SET ? variant->more : NULL;
    json_array_foreach(items, index, item)
    {
        set_member(item, variant->text, value);
    }
    if (items == NULL)
        set_member(one != NULL ? one : json, variant->text, value);
}

static void change_json(struct api_answer *reply, const struct variant *variant)
{
    char more[32];
    json_t *items = json_object_get(reply->json, "items");
    switch ((enum k8s_action)variant->action) {
    case API_SET:
    case API_REMOVE:
        change_objects(reply->json, variant);
        break;
    case API_ROOT:
        set_member(reply->json, variant->text, variant->more);
        break;
    case API_STATUS:
        reply->status = (int)variant->number;
        if (variant->text != NULL) {
            json_decref(reply->json);
            reply->json =
                json_pack("{s:s, s:s, s:s, s:s, s:i}", "kind", "Status", "status", "Failure",
                          "reason", "Hostile", "message", variant->text, "code", reply->status);
        }
        break;
    case API_PAGES:
        (void)snprintf(more, sizeof more, "\"page-%u\"", server.replies);
        set_member(reply->json, "metadata.continue", more);
        add_items(items, (size_t)variant->number);
        break;
    case API_ITEMS:
        add_items(items, (size_t)variant->number);
        break;
    default:
        break;
    }
}

/* ---- changing bodies ---- */

static void repeat(struct bytes *out, const char *text, int64_t count)
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

/* The body that replaces this good one; false: unchanged. */
static bool change_body(const struct variant *variant, struct bytes *out)
{
    switch ((enum k8s_action)variant->action) {
    case API_BODY:
        bytes_add(out, variant->text, length_of(variant));
        return true;
    case API_LONG:
        bytes_add_text(out, "{\"kind\":\"Status\",\"message\":\"");
        repeat(out, variant->text, variant->number / (int64_t)strlen(variant->text));
        bytes_add_text(out, "\"}");
        return true;
    case API_NEST:
        repeat(out, variant->text, variant->number);
        return true;
    case API_REPLAY:
        bytes_add(out, server.last.at, server.last.length);
        return true;
    default:
        return false;
    }
}

static void add_chunk(struct bytes *out, const char *bytes, size_t length, const char *more)
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

static bool is_now(void)
{
    server.replies++;
    return server.variant != NULL &&
           (server.always ? server.replies >= server.nth : server.replies == server.nth);
}

static void add_head(struct bytes *out, const struct variant *variant, int status, bool chunked,
                     size_t length)
{
    char head[HEAD_SIZE], date[DATE_SIZE];
    time_t now = time(NULL);
    struct tm parts;
    bool dated = variant != NULL && variant->action == API_DATE;
    int64_t off = variant != NULL && variant->action == API_LENGTH ? variant->number : 0;
    (void)strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &parts));
    (void)snprintf(head, sizeof head, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n",
                   status, status < 300 ? "OK" : "No");
    bytes_add_text(out, head);
    if (!dated || variant->text != NULL) {
        bytes_add_text(out, "Date: ");
        bytes_add_text(out, dated ? variant->text : date);
        bytes_add_text(out, "\r\n");
    }
    if (variant != NULL && variant->action == API_HEADER)
        bytes_add_text(out, variant->text);
    if (chunked)
        (void)snprintf(head, sizeof head, "Transfer-Encoding: chunked\r\n\r\n");
    else
        (void)snprintf(head, sizeof head, "Content-Length: %lld\r\n\r\n", (long long)length + off);
    bytes_add_text(out, head);
}

/* Head and body of this variant. */
static void add_answer(struct conn *conn, const struct variant *variant, int status, bool watch,
                       const struct bytes *body, struct bytes *out)
{
    bool endless = variant != NULL && variant->action == API_ENDLESS;
    bool chunked = variant != NULL && variant->action == API_CHUNKED;
    if (variant != NULL && variant->action == API_RAW) {
        bytes_add(out, variant->text, length_of(variant));
        return;
    }
    add_head(out, variant, status, watch || chunked, endless ? (size_t)1 << 30 : body->length);
    if (endless) {
        bytes_add_text(out, variant->text);
        conn->endless = variant->more;
        conn->endless_length = strlen(variant->more);
    } else if (chunked) {
        for (size_t at = 0; at < body->length; at += 100)
            add_chunk(out, body->at + at, body->length - at < 100 ? body->length - at : 100,
                      variant->text);
        if (variant->more != NULL)
            bytes_add_text(out, variant->more);
    } else if (watch && body->length > 0) {
        add_chunk(out, body->at, body->length, "");
    } else {
        bytes_add(out, body->at, body->length);
    }
}

/* Cuts, drips and ends the output, and sends it. */
static void send_out(struct conn *conn, const struct variant *variant, struct bytes *out)
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

static void dump(const json_t *json, struct bytes *out)
{
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;
    if (text != NULL)
        bytes_add_text(out, text);
    free(text);
}

static void send_answer(struct conn *conn, struct api_answer *reply)
{
    struct bytes good = {0}, body = {0}, out = {0};
    bool watch = reply->watched[0] != '\0';
    const struct variant *variant = is_now() ? server.variant : NULL;
    dump(reply->json, &good);
    if (variant != NULL && reply->json != NULL) {
        json_t *own = json_deep_copy(reply->json);
        json_decref(reply->json);
        reply->json = own;
    }
    if (variant != NULL)
        change_json(reply, variant);
    if (variant == NULL || !change_body(variant, &body))
        dump(reply->json, &body);
    bytes_add(&body, "", 0);
    add_answer(conn, variant, reply->status, watch, &body, &out);
    send_out(conn, variant, &out);
    keep_body(&good);
    bytes_free(&good);
    bytes_free(&body);
    json_decref(reply->json);
}

/* ---- watches ---- */

static void send_event(struct conn *conn, const char *type, const json_t *object)
{
    struct bytes body = {0}, out = {0};
    const struct variant *variant = is_now() ? server.variant : NULL;
    struct api_answer event = {
        .status = 200,
        .json = json_pack("{s:s, s:o}", "type", type, "object", json_deep_copy(object))};
    int64_t times = 1;
    if (variant != NULL)
        change_json(&event, variant);
    if (event.status != 200) {
        (void)json_object_set_new(event.json, "type", json_string("ERROR"));
    }
    if (variant != NULL && variant->action == API_EVENT) {
        repeat(&body, variant->text, variant->number);
    } else if (variant != NULL && variant->action == API_ENDLESS) {
        conn->endless = variant->more;
        conn->endless_length = strlen(variant->more);
    } else if (variant == NULL || !change_body(variant, &body)) {
        times = variant != NULL && variant->action == API_ITEMS ? variant->number : 1;
        dump(event.json, &body);
    }
    bytes_add_text(&body, "\n");
    for (int64_t i = 0; i < times; i++)
        add_chunk(&out, body.at, body.length,
                  variant != NULL && variant->action == API_CHUNKED ? variant->text : "");
    send_out(conn, variant, &out);
    bytes_free(&body);
    json_decref(event.json);
}

static void on_change(const char *collection, const char *type, const json_t *object)
{
    for (size_t i = 0; i < CONNS_MAX; i++) {
        struct conn *conn = &server.wire->conns[i];
        if (conn->file >= 0 && conn->watches && !conn->deaf &&
            strcmp(conn->watched, collection) == 0)
            send_event(conn, type, object);
    }
}

/* Current objects are sent at once, so that there are events to change. */
static void tell_standing(const char *collection, const char *type, const json_t *object)
{
    (void)collection;
    if (!server.notify->deaf)
        send_event(server.notify, type, object);
}

/* ---- requests ---- */

static void serve_request(struct conn *conn, const char *head, const char *body, size_t length)
{
    char method[16] = "", target[4096] = "";
    struct api_answer reply;
    if (sscanf(head, "%15s %4095s", method, target) != 2) {
        conn->ending = END_CLOSE;
        return;
    }
    json_t *json = length > 0 ? json_loadb(body, length, 0, NULL) : NULL;
    api_answer(method, target, json, &reply);
    json_decref(json);
    (void)snprintf(conn->watched, sizeof conn->watched, "%s", reply.watched);
    conn->watches = false;
    send_answer(conn, &reply);
    if (conn->watched[0] == '\0' || conn->deaf)
        return;
    conn->watches = true;
    server.notify = conn;
    api_each(conn->watched, tell_standing);
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

/* ---- the suite's callbacks ---- */

static bool start(struct wire *wire, const char *folder, size_t number)
{
    (void)folder, (void)number;
    wire->opened = opened;
    wire->came = came;
    server.wire = wire;
    api_init(on_change);
    return true;
}

static void stop(void)
{
    for (size_t i = 0; i < VERBS_KEPT; i++) {
        json_decref(server.kept[i]);
        server.kept[i] = NULL;
    }
    bytes_free(&server.last);
    api_set(NULL);
}

static void store_of(char out[STORE_SIZE], const char *mode, bool direct)
{
    (void)direct;
    (void)snprintf(out, STORE_SIZE, "k8s://blue%s", mode);
}

static void keep(size_t verb)
{
    json_decref(server.kept[verb]);
    server.kept[verb] = api_copy();
}

static void restore(size_t verb)
{
    api_set(server.kept[verb]);
}

static void arm(const struct variant *variant, unsigned nth, bool always)
{
    server.variant = variant;
    server.nth = nth;
    server.always = always;
    server.replies = 0;
    server.hit = false;
}

static unsigned replies(bool *out_hit)
{
    *out_hit = server.hit;
    return server.replies;
}

int main(int argc, char **argv)
{
    const struct suite suite = {.name = "hostile_k8s",
                                .store = ON_K8S,
                                .variants = k8s_variants,
                                .variant_count = k8s_variant_count,
                                .modes = modes,
                                .mode_count = sizeof modes / sizeof modes[0],
                                .start = start,
                                .stop = stop,
                                .store_of = store_of,
                                .keep = keep,
                                .restore = restore,
                                .arm = arm,
                                .replies = replies};
    return hostile_main(&suite, argc, argv);
}
