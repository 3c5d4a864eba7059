/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See hostile_github.h: a GitHub that turns hostile at its nth reply. Before that it is the good
 * server of hostile_hub.c. It also notes whether a reply confirmed the last write of a key.
 */
#include "hostile_github.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VERBS_KEPT = 64, ETAG_SIZE = 128 };

#define USUAL "?pace=0&poll=1s&budget=1000000"

/* The second one has too few writes for two workers: the other one is examined, and removed. */
static const char *const modes[] = {USUAL "&writes=1000000&stale=30s",
                                    USUAL "&writes=100&show=off&stale=5m"};

static struct {
    json_t *kept[VERBS_KEPT];
    bool confirmed; /* a reply says that the ref points to hub_written() */
} server;

/* ---- changing messages of commits ---- */

/* The line behind its name; NULL removes it. */
static void change_line(json_t *object, const char *message, const char *name, const char *value)
{
    struct bytes text = {0};
    const char *at = strstr(message, name), *rest = at + strcspn(at, "\n");
    bytes_add(&text, message, (size_t)(at - message));
    if (value != NULL) {
        bytes_add_text(&text, name);
        bytes_add_text(&text, value);
    }
    bytes_add_text(&text, rest);
    (void)json_object_set_new(object, "message", json_string(text.at));
    bytes_free(&text);
}

static void change_record(json_t *object, const char *message, const struct variant *variant)
{
    struct bytes text = {0};
    const char *rest = strstr(message, "\n\nLeasehold-Revision: ");
    bytes_add_text(&text, "k: held\n\n");
    http_repeat(&text, variant->text, variant->number > 0 ? variant->number : 1);
    bytes_add_text(&text, rest);
    (void)json_object_set_new(object, "message", json_string(text.at));
    bytes_free(&text);
}

/* ---- changing JSON ---- */

static const char *message_of(const json_t *object)
{
    const char *message = json_string_value(json_object_get(object, "message"));
    return message != NULL ? message : "";
}

/* The member at "a.b.c"; NULL: there is none. */
static const json_t *member_at(const json_t *object, const char *path)
{
    char name[64];
    while (object != NULL && *path != '\0') {
        size_t length = strcspn(path, ".");
        (void)snprintf(name, sizeof name, "%.*s", (int)length, path);
        object = json_object_get(object, name);
        path += length + (path[length] == '.' ? 1 : 0);
    }
    return object;
}

/* Each item of a history has its commit inside. */
static const json_t *commit_of(const json_t *object)
{
    const json_t *commit = json_object_get(object, "commit");
    return commit != NULL ? commit : object;
}

static bool object_applies(const json_t *object, const struct variant *variant)
{
    const json_t *commit = commit_of(object);
    switch ((enum api_action)variant->action) {
    case API_SET:
    case API_REMOVE:
        return member_at(object, variant->text) != NULL || member_at(commit, variant->text) != NULL;
    case API_LINE:
        return strstr(message_of(commit), variant->text) != NULL;
    case API_RECORD:
        return strstr(message_of(commit), "\n\nLeasehold-Revision: ") != NULL;
    default:
        return true;
    }
}

static bool applies(const struct api_answer *reply, const struct variant *variant)
{
    bool of_list = variant->action == API_ITEMS || variant->action == API_DISTINCT;
    bool of_objects = variant->action == API_SET || variant->action == API_REMOVE ||
                      variant->action == API_LINE || variant->action == API_RECORD;
    if (of_list)
        return json_array_size(reply->json) > 0;
    if (of_objects && json_is_array(reply->json))
        return object_applies(json_array_get(reply->json, 0), variant);
    return !of_objects || object_applies(reply->json, variant);
}

static void change_object(json_t *object, const struct variant *variant)
{
    json_t *commit = json_object_get(object, "commit");
    if (!object_applies(object, variant))
        return;
    if (commit != NULL && member_at(object, variant->text) == NULL)
        object = commit;
    if (variant->action == API_LINE)
        change_line(object, message_of(object), variant->text, variant->more);
    else if (variant->action == API_RECORD)
        change_record(object, message_of(object), variant);
    else
        http_set_member(object, variant->text, variant->action == API_SET ? variant->more : NULL);
}

/* Copies of the items with names and numbers of their own. */
static void add_distinct(json_t *items, int64_t more)
{
    size_t count = json_array_size(items);
    char name[256];
    for (int64_t i = 0; count > 0 && i < more; i++) {
        json_t *item = json_deep_copy(json_array_get(items, (size_t)i % count));
        const char *ref = json_string_value(json_object_get(item, "ref"));
        (void)snprintf(name, sizeof name, "%.200s%lld", ref != NULL ? ref : "", (long long)i);
        if (ref != NULL)
            (void)json_object_set_new(item, "ref", json_string(name));
        if (json_object_get(item, "number") != NULL)
            (void)json_object_set_new(item, "number", json_integer(i + 100));
        (void)json_array_append_new(items, item);
    }
}

static void change(struct api_answer *reply, const struct variant *variant)
{
    size_t index;
    json_t *item;
    switch ((enum api_action)variant->action) {
    case API_ITEMS:
        http_add_items(reply->json, (size_t)variant->number);
        break;
    case API_DISTINCT:
        add_distinct(reply->json, variant->number);
        break;
    case API_SET:
    case API_REMOVE:
    case API_LINE:
    case API_RECORD:
        json_array_foreach(reply->json, index, item)
        {
            change_object(item, variant);
        }
        if (json_is_object(reply->json))
            change_object(reply->json, variant);
        break;
    default:
        break;
    }
}

/* ---- requests ---- */

static void find_etag(const char *head, char out[ETAG_SIZE])
{
    static const char name[] = "\r\nIf-None-Match: ";
    const char *at = strstr(head, name);
    at = at != NULL ? at + sizeof name - 1 : "";
    (void)snprintf(out, ETAG_SIZE, "%.*s", (int)strcspn(at, "\r"), at);
}

static void serve(struct conn *conn, const char *head, const char *method, const char *target,
                  const json_t *body)
{
    char etag[ETAG_SIZE], before[64], said[128];
    struct api_answer reply = {0};
    struct bytes sent = {0};
    find_etag(head, etag);
    (void)snprintf(before, sizeof before, "%s", hub_written());
    hub_answer(method, target, etag, body, &reply);
    http_send(conn, &reply, &sent);
    (void)snprintf(said, sizeof said, "\"object\":{\"sha\":\"%s\"", hub_written());
    server.confirmed = (server.confirmed && strcmp(before, hub_written()) == 0) ||
                       memmem(sent.at, sent.length, said, strlen(said)) != NULL;
    bytes_free(&sent);
}

/* ---- the suite's callbacks ---- */

static bool start(struct wire *wire, const char *folder, size_t number)
{
    (void)folder, (void)number;
    http_init(wire, &(struct http_callbacks){.serve = serve, .change = change, .applies = applies});
    hub_set(NULL);
    return true;
}

static void stop(void)
{
    for (size_t i = 0; i < VERBS_KEPT; i++) {
        json_decref(server.kept[i]);
        server.kept[i] = NULL;
    }
    http_done();
    hub_free();
}

static void store_of(char out[STORE_SIZE], const char *mode, bool direct)
{
    (void)snprintf(out, STORE_SIZE, "github://alice/locks%s", direct ? USUAL : mode);
}

static void keep(size_t verb)
{
    json_decref(server.kept[verb]);
    server.kept[verb] = hub_copy();
}

static void restore(size_t verb)
{
    hub_set(server.kept[verb]);
    server.confirmed = false;
}

static bool is_unconfirmed(void)
{
    return hub_written()[0] != '\0' && !server.confirmed;
}

int main(int argc, char **argv)
{
    size_t count;
    const struct variant *variants =
        http_variants_with(github_variants, github_variant_count, &count);
    const struct suite suite = {.name = "hostile_github",
                                .store = ON_GITHUB,
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
                                .replies = http_replies,
                                .is_unconfirmed = is_unconfirmed};
    return hostile_main(&suite, argc, argv);
}
