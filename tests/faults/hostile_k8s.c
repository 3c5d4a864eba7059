/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See hostile_k8s.h: an API server that turns hostile at its nth reply. An event of a watch counts
 * as a reply, too. Before that it is the good server of hostile_api.c.
 */
#include "hostile_k8s.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VERBS_KEPT = 64 };

static const char *const modes[] = {"", "?events=on"};

static struct {
    struct wire *wire;
    json_t *kept[VERBS_KEPT];
    unsigned pages;
    struct conn *notify; /* receives the current objects when a watch begins */
} server;

/* ---- changing JSON ---- */

/* Calls for each object: the reply itself, items of a list, the object of an event. */
static void change_objects(json_t *json, const struct variant *variant)
{
    size_t index;
    json_t *item, *items = json_object_get(json, "items"), *one = json_object_get(json, "object");
    const char *value = variant->action == API_SET ? variant->more : NULL;
    json_array_foreach(items, index, item)
    {
        http_set_member(item, variant->text, value);
    }
    if (items == NULL)
        http_set_member(one != NULL ? one : json, variant->text, value);
}

static void change_json(struct api_answer *reply, const struct variant *variant)
{
    char more[32];
    json_t *items = json_object_get(reply->json, "items");
    switch ((enum api_action)variant->action) {
    case API_SET:
    case API_REMOVE:
        change_objects(reply->json, variant);
        break;
    case API_PAGES:
        (void)snprintf(more, sizeof more, "\"page-%u\"", ++server.pages);
        http_set_member(reply->json, "metadata.continue", more);
        http_add_items(items, (size_t)variant->number);
        break;
    case API_ITEMS:
        http_add_items(items, (size_t)variant->number);
        break;
    default:
        break;
    }
}

/* ---- watches ---- */

static void send_event(struct conn *conn, const char *type, const json_t *object)
{
    struct bytes body = {0}, out = {0};
    struct api_answer event = {
        .status = 200,
        .json = json_pack("{s:s, s:o}", "type", type, "object", json_deep_copy(object))};
    const struct variant *variant = http_next(&event);
    int64_t times = 1;
    if (variant != NULL)
        http_change(&event, variant);
    if (event.status != 200) {
        (void)json_object_set_new(event.json, "type", json_string("ERROR"));
    }
    if (variant != NULL && variant->action == API_EVENT) {
        http_repeat(&body, variant->text, variant->number);
    } else if (variant != NULL && variant->action == API_ENDLESS) {
        conn->endless = variant->more;
        conn->endless_length = strlen(variant->more);
    } else if (variant == NULL || !http_change_body(variant, &body)) {
        times = variant != NULL && variant->action == API_ITEMS ? variant->number : 1;
        http_dump(event.json, &body);
    }
    bytes_add_text(&body, "\n");
    for (int64_t i = 0; i < times; i++)
        http_add_chunk(&out, body.at, body.length,
                       variant != NULL && variant->action == API_CHUNKED ? variant->text : "");
    http_send_out(conn, variant, &out);
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

static void serve(struct conn *conn, const char *head, const char *method, const char *target,
                  const json_t *body)
{
    struct api_answer reply = {0};
    (void)head;
    api_answer(method, target, body, &reply);
    (void)snprintf(conn->watched, sizeof conn->watched, "%s", reply.watched);
    conn->watches = false;
    http_send(conn, &reply, /* out_sent= */ NULL);
    if (conn->watched[0] == '\0' || conn->deaf)
        return;
    conn->watches = true;
    server.notify = conn;
    api_each(conn->watched, tell_standing);
}

/* ---- the suite's callbacks ---- */

static bool start(struct wire *wire, const char *folder, size_t number)
{
    (void)folder, (void)number;
    http_init(wire, &(struct http_callbacks){.serve = serve, .change = change_json});
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
    http_done();
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

int main(int argc, char **argv)
{
    size_t count;
    const struct variant *variants = http_variants_with(k8s_variants, k8s_variant_count, &count);
    const struct suite suite = {.name = "hostile_k8s",
                                .store = ON_K8S,
                                .variants = variants,
                                .variant_count = count,
                                .modes = modes,
                                .mode_count = sizeof modes / sizeof modes[0],
                                .start = start,
                                .stop = stop,
                                .store_of = store_of,
                                .keep = keep,
                                .restore = restore,
                                .arm = http_arm,
                                .replies = http_replies};
    return hostile_main(&suite, argc, argv);
}
