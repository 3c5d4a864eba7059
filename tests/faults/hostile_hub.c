/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See hostile_github.h: the good server. It moves a ref only to a commit whose parent is the
 * current one, unless the move is forced, and replies 304 to a caller that has the current copy.
 */
#include "hostile_github.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NAME_SIZE = 512, SHA_SIZE = 41 };

static struct {
    json_t *refs;    /* name without "refs/": commit */
    json_t *commits; /* by name */
    json_t *issue;   /* number 7 */
    uint64_t count;  /* of objects; never goes back */
    char written[SHA_SIZE];
} hub;

/* ---- objects ---- */

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

static json_t *now_json(void)
{
    char text[32];
    time_t now = time(NULL);
    struct tm parts;
    (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
    return json_string(text);
}

static void new_sha(char out[SHA_SIZE])
{
    (void)snprintf(out, SHA_SIZE, "%040" PRIx64, ++hub.count + 0x1000);
}

static json_t *new_commit(const char *sha, const char *message, const char *tree, json_t *parents)
{
    return json_pack("{s:s, s:s, s:{s:s}, s:o, s:{s:s, s:o}}", "sha", sha, "message", message,
                     "tree", "sha", tree, "parents", parents, "committer", "name", "alice", "date",
                     now_json());
}

static json_t *new_issue(void)
{
    return json_pack("{s:i, s:s, s:s, s:s, s:[{s:s}], s:[], s:o}", "number", 7, "title", "a task",
                     "state", "open", "html_url", "http://127.0.0.1/alice/locks/issues/7", "labels",
                     "name", "do", "assignees", "created_at", now_json());
}

json_t *hub_copy(void)
{
    json_t *whole =
        json_pack("{s:O, s:O, s:O}", "refs", hub.refs, "commits", hub.commits, "issue", hub.issue);
    json_t *copy = json_deep_copy(whole);
    json_decref(whole);
    return copy;
}

void hub_free(void)
{
    json_decref(hub.refs);
    json_decref(hub.commits);
    json_decref(hub.issue);
    hub.refs = hub.commits = hub.issue = NULL;
}

void hub_set(const json_t *repository)
{
    static const char beat[] = "worker 77 is alive\n\nLeasehold-Worker: 77\n"
                               "Leasehold-Stale: 30000\nLeasehold-Write: 77-1\n";
    hub_free();
    hub.written[0] = '\0';
    hub.refs = json_deep_copy(json_object_get(repository, "refs"));
    hub.commits = json_deep_copy(json_object_get(repository, "commits"));
    hub.issue = json_deep_copy(json_object_get(repository, "issue"));
    if (repository != NULL)
        return;
    hub.refs = json_pack("{s:s, s:s}", "heads/main", HUB_COMMIT, "leasehold/w/77", HUB_WORKER);
    hub.commits = json_pack("{s:o, s:o}", HUB_COMMIT,
                            new_commit(HUB_COMMIT, "first", HUB_COMMIT, json_array()), HUB_WORKER,
                            new_commit(HUB_WORKER, beat, HUB_COMMIT, json_array()));
    http_set_member(json_object_get(hub.commits, HUB_WORKER), "committer.date",
                    "\"2026-01-01T00:00:00Z\"");
    hub.issue = new_issue();
}

const char *hub_written(void)
{
    return hub.written;
}

/* ---- replies ---- */

static void refuse(struct api_answer *out, int status, const char *message)
{
    out->status = status;
    out->json = json_pack("{s:s, s:s}", "message", message, "documentation_url", "https://x");
}

static void accept(struct api_answer *out, int status, json_t *json)
{
    out->status = status;
    out->json = json;
}

static json_t *ref_json(const char *name, const char *sha)
{
    char full[NAME_SIZE + 8];
    (void)snprintf(full, sizeof full, "refs/%s", name);
    return json_pack("{s:s, s:{s:s, s:s}}", "ref", full, "object", "sha", sha, "type", "commit");
}

/* ---- refs ---- */

static void read_ref(const char *name, const char *etag, struct api_answer *out)
{
    const char *sha = text_of(hub.refs, name);
    char tag[SHA_SIZE + 2];
    if (sha[0] == '\0') {
        refuse(out, 404, "Not Found");
        return;
    }
    (void)snprintf(tag, sizeof tag, "\"%s\"", sha);
    (void)snprintf(out->headers, sizeof out->headers, "ETag: %s\r\n", tag);
    if (strcmp(etag, tag) == 0)
        accept(out, 304, NULL);
    else
        accept(out, 200, ref_json(name, sha));
}

static void list_refs(const char *prefix, struct api_answer *out)
{
    const char *name;
    json_t *sha, *list = json_array();
    json_object_foreach(hub.refs, name, sha)
    {
        if (strncmp(name, prefix, strlen(prefix)) == 0)
            (void)json_array_append_new(list, ref_json(name, json_string_value(sha)));
    }
    accept(out, 200, list);
}

static void set_ref(const char *name, const char *sha, int status, struct api_answer *out)
{
    (void)json_object_set_new(hub.refs, name, json_string(sha));
    if (strncmp(name, "leasehold/k/", 12) == 0)
        (void)snprintf(hub.written, sizeof hub.written, "%s", sha);
    accept(out, status, ref_json(name, sha));
}

static void create_ref(const json_t *body, struct api_answer *out)
{
    const char *name = text_of(body, "ref"), *sha = text_of(body, "sha");
    if (strncmp(name, "refs/", 5) != 0 || json_object_get(hub.commits, sha) == NULL)
        refuse(out, 422, "Object does not exist");
    else if (json_object_get(hub.refs, name + 5) != NULL)
        refuse(out, 422, "Reference already exists");
    else
        set_ref(name + 5, sha, 201, out);
}

static void move_ref(const char *name, const json_t *body, struct api_answer *out)
{
    const char *sha = text_of(body, "sha"), *current = text_of(hub.refs, name);
    const json_t *parents = json_object_get(json_object_get(hub.commits, sha), "parents");
    bool next = strcmp(text_of(json_array_get(parents, 0), "sha"), current) == 0;
    if (current[0] == '\0' || parents == NULL)
        refuse(out, 422, "Reference does not exist");
    else if (!next && !json_is_true(json_object_get(body, "force")))
        refuse(out, 422, "Update is not a fast forward");
    else
        set_ref(name, sha, 200, out);
}

static void delete_ref(const char *name, struct api_answer *out)
{
    if (json_object_del(hub.refs, name) == 0)
        accept(out, 204, NULL);
    else
        refuse(out, 422, "Reference does not exist");
}

/* ---- commits ---- */

static void create_commit(const json_t *body, struct api_answer *out)
{
    char sha[SHA_SIZE];
    size_t index;
    json_t *parent, *parents = json_array();
    json_array_foreach(json_object_get(body, "parents"), index, parent)
    {
        (void)json_array_append_new(parents, json_pack("{s:s}", "sha", json_string_value(parent)));
    }
    new_sha(sha);
    json_t *commit = new_commit(sha, text_of(body, "message"), text_of(body, "tree"), parents);
    (void)json_object_set(hub.commits, sha, commit);
    accept(out, 201, commit);
}

static void read_commit(const char *sha, struct api_answer *out)
{
    json_t *commit = json_object_get(hub.commits, sha);
    if (commit == NULL)
        refuse(out, 404, "Not Found");
    else
        accept(out, 200, json_incref(commit));
}

/* The chain from a commit on. */
static void list_commits(const char *query, struct api_answer *out)
{
    json_t *list = json_array();
    char sha[SHA_SIZE];
    const char *at = query != NULL ? strstr(query, "sha=") : NULL;
    (void)snprintf(sha, sizeof sha, "%.40s", at != NULL ? at + 4 : "");
    for (json_t *commit; (commit = json_object_get(hub.commits, sha)) != NULL;) {
        (void)json_array_append_new(list, json_pack("{s:s, s:O}", "sha", sha, "commit", commit));
        const json_t *parents = json_object_get(commit, "parents");
        (void)snprintf(sha, sizeof sha, "%s", text_of(json_array_get(parents, 0), "sha"));
    }
    accept(out, 200, list);
}

/* ---- issues ---- */

static void label(const char *method, const char *name, const json_t *body, struct api_answer *out)
{
    json_t *labels = json_object_get(hub.issue, "labels");
    const char *added = json_string_value(json_array_get(json_object_get(body, "labels"), 0));
    if (strcmp(method, "POST") == 0 && added != NULL)
        (void)json_array_append_new(labels, json_pack("{s:s}", "name", added));
    for (size_t i = 0; strcmp(method, "DELETE") == 0 && i < json_array_size(labels); i++) {
        if (strcmp(text_of(json_array_get(labels, i), "name"), name) == 0)
            (void)json_array_remove(labels, i--);
    }
    accept(out, 200, json_incref(labels));
}

static void answer_issue(const char *method, const char *rest, const json_t *body,
                         struct api_answer *out)
{
    if (rest[0] == '\0')
        accept(out, 200, json_pack("[O]", hub.issue));
    else if (strcmp(rest, "/7") == 0)
        accept(out, 200, json_incref(hub.issue));
    else if (strncmp(rest, "/7/labels", 9) == 0)
        label(method, rest[9] == '/' ? rest + 10 : "", body, out);
    else if (strncmp(rest, "/7/assignees", 12) == 0)
        accept(out, 201, json_incref(hub.issue));
    else if (strcmp(rest, "/7/events") == 0)
        accept(out, 200,
               json_pack("[{s:s, s:{s:s}, s:o}]", "event", "labeled", "label", "name", "do",
                         "created_at", now_json()));
    else if (strcmp(rest, "/7/comments") == 0 || strncmp(rest, "/comments/", 10) == 0)
        accept(out, strcmp(method, "POST") == 0 ? 201 : 200,
               json_pack("{s:i, s:s}", "id", 9, "body", text_of(body, "body")));
    else
        refuse(out, 404, "Not Found");
}

/* ---- paths ---- */

/* The rest of the path; NULL: it begins otherwise. */
static const char *after(const char *path, const char *beginning)
{
    size_t length = strlen(beginning);
    return strncmp(path, beginning, length) == 0 ? path + length : NULL;
}

static void answer_git(const char *method, const char *path, const char *etag, const json_t *body,
                       struct api_answer *out)
{
    bool posts = strcmp(method, "POST") == 0, gets = strcmp(method, "GET") == 0;
    const char *rest;
    char sha[SHA_SIZE];
    if (gets && (rest = after(path, "/ref/")) != NULL)
        read_ref(rest, etag, out);
    else if (gets && (rest = after(path, "/matching-refs/")) != NULL)
        list_refs(rest, out);
    else if (gets && (rest = after(path, "/commits/")) != NULL)
        read_commit(rest, out);
    else if (posts && strcmp(path, "/commits") == 0)
        create_commit(body, out);
    else if (posts && strcmp(path, "/refs") == 0)
        create_ref(body, out);
    else if (strcmp(method, "PATCH") == 0 && (rest = after(path, "/refs/")) != NULL)
        move_ref(rest, body, out);
    else if (strcmp(method, "DELETE") == 0 && (rest = after(path, "/refs/")) != NULL)
        delete_ref(rest, out);
    else if (posts && strcmp(path, "/trees") == 0) {
        new_sha(sha);
        accept(out, 201, json_pack("{s:s}", "sha", sha));
    } else
        refuse(out, 404, "Not Found");
}

/* %25 is %: the names of refs contain it. */
static void decode_path(const char *target, char out[NAME_SIZE])
{
    size_t length = 0;
    for (; *target != '\0' && *target != '?' && length + 1 < NAME_SIZE; target++) {
        out[length++] = *target;
        target += strncmp(target, "%25", 3) == 0 ? 2 : 0;
    }
    out[length] = '\0';
}

void hub_answer(const char *method, const char *target, const char *etag, const json_t *body,
                struct api_answer *out)
{
    char path[NAME_SIZE] = "";
    const char *rest, *query = strchr(target, '?');
    decode_path(target, path);
    if ((rest = after(path, HUB_REPOSITORY "/git")) != NULL)
        answer_git(method, rest, etag, body, out);
    else if (strcmp(path, HUB_REPOSITORY "/commits") == 0)
        list_commits(query, out);
    else if ((rest = after(path, HUB_REPOSITORY "/issues")) != NULL)
        answer_issue(method, rest, body, out);
    else if (strcmp(path, HUB_REPOSITORY) == 0)
        accept(out, 200,
               json_pack("{s:s, s:b, s:{s:b, s:b}}", "full_name", "alice/locks", "archived", 0,
                         "permissions", "pull", 1, "push", 1));
    else if (strcmp(path, "/user") == 0)
        accept(out, 200, json_pack("{s:s, s:i}", "login", "alice", "id", 1));
    else if (strcmp(path, "/version") == 0) /* for the clients that are wrong on purpose */
        accept(out, 200, json_object());
    else
        refuse(out, 404, "Not Found");
}
