/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executes a store request. A read is one conditional request of the ref, and one of its commit if
 * it is new. A write is a commit and a ref write, which the server refuses if the ref has moved
 * since. Operations of one key run in sequence. A ref write without a reply may have had an effect
 * and is never sent again; a commit that no ref points to has none.
 */
#include "base/check.h"
#include "process/host.h"
#include "store/github/github_internal.h"
#include "wire/github_issue.h"

#include <stdio.h>

enum { FIRST_SECOND = 1600000000, WRITES_A_SECOND_BITS = 8 };

static void operation_start(struct github_operation *operation);
static void operation_write(struct github_operation *operation);
static github_handler operation_on_ref, operation_on_repository, operation_on_tree,
    operation_on_commit_written, operation_on_ref_written;

/* ---- the queue ---- */

static void operations_wake(struct github *github)
{
    poller_call_at(github->poller, &github->wake_timer, host_boot_ms());
}

void github_operation_add(void *state, const struct store_request *request, store_done *done,
                          void *caller)
{
    struct github *github = state;
    struct github_operation *operation = pending_add(&github->pending, request, done, caller);
    if (operation == NULL) {
        pending_refuse(done, caller);
        return;
    }
    operation->github = github;
    operation->now_ms = TIME_UNKNOWN;
    operations_wake(github);
}

void github_operations_start(void *state)
{
    struct github *github = state;
    for (struct list_node *node = github->pending.all.first, *next; node != NULL; node = next) {
        struct github_operation *operation = (void *)LIST_ENTRY(node, struct pending, in_all);
        next = node->next; /* starting an operation can end it, but none behind it */
        if (operation->on_reply == NULL && operation->base.behind == NULL &&
            !operation->waits_for_worker)
            operation_start(operation);
    }
}

static void operation_clear(struct pending *base)
{
    struct github_operation *operation = (struct github_operation *)base;
    struct github *github = operation->github;
    if (github == NULL)
        return;
    if (operation->waits_for_worker)
        list_remove(&github->worker.waiting, &operation->base.in_queue);
    github->worker.pending -= operation->binds ? 1 : 0;
    github_request_cancel(&operation->http);
    github_head_release(operation->head);
    json_decref(operation->refs);
    operations_wake(github); /* starts the operation behind this one */
}

void github_operations_init(struct github *github)
{
    github->pending = (struct pending_set){.size = sizeof(struct github_operation),
                                           .most = GITHUB_REQUESTS_MAX,
                                           .by_key = true,
                                           .timeout_ms = github->callbacks.timeout_ms,
                                           .clear = operation_clear};
    github->wake_timer.due = github_operations_start;
    github->wake_timer.owner = github;
}

void github_operation_resume(struct github_operation *operation, const char *why)
{
    operation->waits_for_worker = false;
    if (why != NULL)
        pending_fail(&operation->base, REPLY_TROUBLE, why);
    else
        operations_wake(operation->github);
}

/* ---- replies to the caller ---- */

/* GitHub answers 409 to everything below git/ if the repository has no commit. */
void github_operation_fail_by(struct github_operation *operation, const struct github_reply *reply)
{
    bool empty = reply->status == 409;
    bool denied = empty || reply->status == 401 || reply->status == 403;
    const char *why = reply->why[0] != '\0' ? reply->why : GITHUB_MALFORMED;
    pending_reply(&operation->base,
                  &(struct store_reply){
                      .result = denied ? REPLY_DENIED : REPLY_TROUBLE,
                      .now_ms = TIME_UNKNOWN,
                      .refused = reply->refused,
                      .why = empty ? "the repository is empty; push a first commit to it" : why});
}

static bool operation_holds(const struct github_operation *operation)
{
    const struct condition *condition = &operation->base.request.condition;
    const struct github_head *head = operation->head;
    if (condition->kind == IF_ABSENT)
        return head->bytes == NULL;
    return condition->kind == IF_REVISION && head->bytes != NULL &&
           head->revision == condition->revision;
}

bool github_operation_report(struct github_operation *operation)
{
    const struct store_request *request = &operation->base.request;
    const struct github_head *head = operation->head;
    bool lists = request->verb == VERB_STORE_LIST;
    bool conflict = !lists && request->verb != VERB_STORE_READ && !operation->written;
    struct store_reply reply = {.result = conflict ? REPLY_CONFLICT : REPLY_OK,
                                .more = lists,
                                .key = lists ? head->key : NULL,
                                .present = head->bytes != NULL,
                                .now_ms = operation->now_ms,
                                .alive_ms = operation->github->worker.alive_ms,
                                .bytes = head->bytes,
                                .length = head->length};
    if (reply.present)
        reply.written = (struct stamp){.revision = head->revision, .time_ms = head->time_ms};
    if (!github_judge(operation, &reply))
        return false;
    if (lists) {
        pending_extend(&operation->base);
        pending_reply(&operation->base, &reply);
    } else {
        pending_reply(&operation->base, &reply);
    }
    return true;
}

void github_operation_judged(struct github_operation *operation)
{
    bool lists = operation->base.request.verb == VERB_STORE_LIST;
    if (github_operation_report(operation) && lists)
        github_list_next(operation);
}

/* ---- requests ---- */

static enum github_kind operation_kind(const struct github_operation *operation)
{
    const struct store_request *request = &operation->base.request;
    bool held = operation->head != NULL && operation->head->held;
    switch (request->verb) {
    case VERB_STORE_READ:
        return held ? GITHUB_HEARTBEAT : GITHUB_READ; /* a holder renews by reading */
    case VERB_STORE_SWAP:
    case VERB_STORE_DELETE:
        return held ? GITHUB_RELEASE : GITHUB_GRANT;
    default:
        return GITHUB_READ;
    }
}

static void operation_on_reply(void *owner, const struct github_reply *reply)
{
    struct github_operation *operation = owner;
    if (reply->now_ms != TIME_UNKNOWN)
        operation->now_ms = reply->now_ms;
    operation->on_reply(operation, reply);
}

void github_operation_send(struct github_operation *operation, github_handler *on_reply,
                           struct github_call call)
{
    call.kind = operation_kind(operation);
    call.give_up_at_ms = operation->base.deadline_ms;
    operation->on_reply = on_reply;
    github_request_start(&operation->http, operation->github->api, &call, operation_on_reply,
                         operation);
}

void github_operation_get(struct github_operation *operation, github_handler *on_reply,
                          const char *path)
{
    github_operation_send(operation, on_reply, (struct github_call){.method = "GET", .path = path});
}

static void operation_read_ref(struct github_operation *operation)
{
    const struct github_head *head = operation->head;
    char name[GITHUB_PATH_NAME_MAX + 1], path[GITHUB_PATH];
    bool cached = head->known && head->etag[0] != '\0' && !operation->refused;
    github_path_name(head->name, name);
    (void)snprintf(path, sizeof path, "git/ref/" GITHUB_KEY_REFS "%s", name);
    github_operation_send(
        operation, operation_on_ref,
        (struct github_call){.method = "GET", .path = path, .etag = cached ? head->etag : NULL});
}

void github_operation_read_commit(struct github_operation *operation, github_handler *on_reply,
                                  const char *sha)
{
    char path[GITHUB_PATH];
    text_copy(operation->read_sha, sizeof operation->read_sha, sha);
    operation->read_revision = operation->head->revision;
    (void)snprintf(path, sizeof path, "git/commits/%s", sha);
    github_operation_get(operation, on_reply, path);
}

/* ---- writes ---- */

void github_unique(struct github *github, char out[GITHUB_UNIQUE])
{
    (void)snprintf(out, GITHUB_UNIQUE, "%llx-%llu", (unsigned long long)github->callbacks.session,
                   (unsigned long long)++github->writes);
}

json_t *github_commit_body(const struct github *github, const char *message, const char *parent)
{
    json_t *parents = json_array();
    if (parent[0] != '\0')
        (void)json_array_append_new(parents, json_string(parent));
    return json_pack("{s:s, s:s, s:o}", "message", message, "tree", github->tree, "parents",
                     parents);
}

struct github_call github_ref_call(const char *refs, const char *name, const char *sha, bool exists,
                                   bool force, char path[GITHUB_PATH])
{
    char in_path[GITHUB_PATH_NAME_MAX + 1];
    struct github_call call = {.method = exists ? "PATCH" : "POST", .path = path};
    github_path_name(name, in_path);
    (void)snprintf(path, GITHUB_PATH, "%s%s%s", exists ? "git/refs/" : "refs/", refs,
                   exists ? in_path : name);
    if (exists) {
        call.body = json_pack("{s:s, s:b}", "sha", sha, "force", force);
    } else {
        call.body = json_pack("{s:s, s:s}", "ref", path, "sha", sha);
        call.path = "git/refs";
    }
    return call;
}

/* A new chain begins above every number that an earlier one of the same name can have reached; 0:
 * the server's date, by which that is known, is missing or wrong. */
static uint64_t operation_revision(const struct github_operation *operation)
{
    const struct github_head *head = operation->head;
    uint64_t next = head->revision + 1;
    int64_t second = operation->now_ms / 1000 - FIRST_SECOND;
    if (head->sha[0] != '\0')
        return next;
    if (second < 1)
        return 0;
    uint64_t first = (uint64_t)second << WRITES_A_SECOND_BITS;
    return first > next ? first : next;
}

static void operation_make_tree(struct github_operation *operation)
{
    operation->tree_made = true;
    json_t *body =
        json_pack("{s:[{s:s, s:s, s:s, s:s}]}", "tree", "path", "README", "mode", "100644", "type",
                  "blob", "content", "The refs below refs/leasehold keep locks of leasehold.\n");
    github_operation_send(
        operation, operation_on_tree,
        (struct github_call){.method = "POST", .path = "git/trees", .body = body});
}

/* The line for people. */
static void operation_describe(const struct store_request *request, struct text *out)
{
    const struct store_summary *summary = &request->summary;
    TEXT_JOIN(out, request->key, ": ");
    if (request->verb == VERB_STORE_DELETE)
        text_add(out, "free");
    else if (summary->grants > 0)
        TEXT_JOIN(out, summary->broken ? "broken, was held by " : "held by ", summary->holder);
    else if (summary->offers > 0)
        text_add(out, "offered to the next in the queue");
    else if (summary->kind == KIND_WATERMARK)
        text_add(out, "watermark");
    else if (summary->spans_ms > 0)
        TEXT_JOIN(out, "done by ", summary->holder != NULL ? summary->holder : "", ", cooling");
    else
        text_add(out, "queued for");
    if (summary->grants > 1) {
        text_add(out, " and ");
        text_add_u64(out, summary->grants - 1);
        text_add(out, " more");
    }
    if (summary->waiters > 0) {
        text_add(out, ", ");
        text_add_u64(out, summary->waiters);
        text_add(out, " waiting");
    }
}

static void operation_write_commit(struct github_operation *operation)
{
    struct github *github = operation->github;
    const struct store_request *request = &operation->base.request;
    bool swaps = request->verb == VERB_STORE_SWAP;
    char title[GITHUB_TITLE], unique[GITHUB_UNIQUE];
    struct text text;
    operation->commit = (struct github_commit){.revision = operation_revision(operation),
                                               .bytes = swaps ? request->bytes : NULL,
                                               .length = swaps ? request->length : 0};
    if (operation->commit.revision == 0) {
        pending_fail(&operation->base, REPLY_TROUBLE,
                     "GitHub's reply has no valid date, so tokens could repeat");
        return;
    }
    text_init(&text, title, sizeof title);
    operation_describe(request, &text);
    github_unique(github, unique);
    text_init(&text, github->message, sizeof github->message);
    github_commit_write(title, &operation->commit, unique, &text);
    ASSERT(!text.cut);
    github_operation_send(operation, operation_on_commit_written,
                          (struct github_call){.method = "POST",
                                               .path = "git/commits",
                                               .body = github_commit_body(github, github->message,
                                                                          operation->head->sha)});
}

/* Issues and pull requests share their numbers, and a lock of a pull request would be shown on it.
 * A reply that names no pull request is enough: the key may be the number of nothing. */
static void operation_on_issue(struct github_operation *operation, const struct github_reply *reply)
{
    if (reply->status == 0) {
        github_operation_fail_by(operation, reply);
    } else if (json_object_get(reply->json, "pull_request") != NULL) {
        pending_fail(&operation->base, REPLY_INVALID,
                     "it is the number of a pull request, which cannot be locked; use "
                     "the number of an issue, or another key");
    } else {
        operation->head->is_no_pull = true;
        operation_write(operation);
    }
}

static void operation_read_issue(struct github_operation *operation)
{
    char path[GITHUB_PATH];
    (void)snprintf(path, sizeof path, "issues/%s", operation->base.request.key);
    github_operation_get(operation, operation_on_issue, path);
}

/* All commits need the tree, those of our worker too, which must be alive before our session is
 * granted a key. */
static void operation_write(struct github_operation *operation)
{
    const struct store_request *request = &operation->base.request;
    bool binds = request->verb == VERB_STORE_SWAP && request->summary.binds;
    bool grants = request->verb == VERB_STORE_SWAP && request->summary.new_grants > 0;
    if (grants && !operation->head->is_no_pull && github_is_issue_number(request->key))
        operation_read_issue(operation);
    else if (operation->github->tree[0] == '\0')
        operation_make_tree(operation);
    else if (!binds || github_worker_ready(operation->github, operation))
        operation_write_commit(operation);
}

static void operation_write_ref(struct github_operation *operation)
{
    char path[GITHUB_PATH];
    const struct github_head *head = operation->head;
    github_operation_send(operation, operation_on_ref_written,
                          github_ref_call(GITHUB_KEY_REFS, head->name, operation->sha,
                                          head->sha[0] != '\0', /* force= */ false, path));
}

static void operation_on_tree(struct github_operation *operation, const struct github_reply *reply)
{
    const char *sha = github_sha(reply->json);
    if (reply->status != 201 || sha[0] == '\0') {
        github_operation_fail_by(operation, reply);
        return;
    }
    text_copy(operation->github->tree, sizeof operation->github->tree, sha);
    operation_write(operation);
}

static void operation_on_commit_written(struct github_operation *operation,
                                        const struct github_reply *reply)
{
    const char *sha = github_sha(reply->json);
    bool made = reply->status == 201 && sha[0] != '\0';
    operation->commit.time_ms = github_commit_time_ms(reply->json);
    if (made && operation->commit.time_ms >= 0) {
        text_copy(operation->sha, sizeof operation->sha, sha);
        operation_write_ref(operation);
    } else if (reply->status == 422 && !operation->tree_made) {
        operation->github->tree[0] = '\0'; /* that of another repository, or it was removed */
        operation_make_tree(operation);
    } else {
        github_operation_fail_by(operation, reply);
    }
}

static void operation_written(struct github_operation *operation)
{
    operation->written = true;
    const char *wrong =
        github_head_set(operation->github, operation->head, operation->sha, &operation->commit);
    if (wrong != NULL)
        pending_fail(&operation->base, REPLY_TROUBLE, wrong);
    else
        github_operation_judged(operation);
}

static void operation_on_ref_written(struct github_operation *operation,
                                     const struct github_reply *reply)
{
    if (github_ref_is_at(reply, operation->sha)) {
        operation_written(operation);
    } else if (reply->status == 422 || reply->status == 404 || reply->status == 409) {
        operation->refused = true;
        (void)snprintf(operation->why, sizeof operation->why, "%s", reply->why);
        operation_read_ref(operation);
    } else {
        operation->head->known = false; /* it may have moved */
        github_operation_fail_by(operation, reply);
    }
}

/* ---- reads ---- */

/* The head is that of the server. */
static void operation_on_head(struct github_operation *operation)
{
    const struct github_head *head = operation->head;
    const struct store_request *request = &operation->base.request;
    if (operation->refused && strcmp(head->sha, operation->sha) == 0)
        operation_written(operation);
    else if (request->verb == VERB_STORE_HISTORY)
        github_history_begin(operation);
    else if (request->verb == VERB_STORE_LIST)
        github_list_on_head(operation);
    else if (request->verb == VERB_STORE_READ || !operation_holds(operation))
        github_operation_judged(operation);
    else if (operation->refused)
        pending_fail(&operation->base, REPLY_TROUBLE, operation->why);
    else
        operation_write(operation);
}

static void operation_check_repository(struct github_operation *operation)
{
    const struct github_url *url = &operation->github->url;
    char path[GITHUB_PATH + GITHUB_OWNER_MAX];
    (void)snprintf(path, sizeof path, "/repos/%s/%s", url->owner, url->repo);
    github_operation_get(operation, operation_on_repository, path);
}

static void operation_keep_etag(const struct github_reply *reply, char out[GITHUB_ETAG_MAX + 1])
{
    (void)snprintf(out, GITHUB_ETAG_MAX + 1, "%s", reply->etag != NULL ? reply->etag : "");
}

static void operation_on_ref(struct github_operation *operation, const struct github_reply *reply)
{
    struct github_head *head = operation->head;
    const char *sha = github_sha(json_object_get(reply->json, "object"));
    bool current = head->known && (reply->status == 304 || strcmp(sha, head->sha) == 0);
    if (reply->status == 404 && head->sha[0] != '\0' && !operation->checked) {
        operation->checked = true; /* without the right to read, everything is 404 */
        operation_check_repository(operation);
    } else if (reply->status == 404) {
        (void)github_head_set(operation->github, head, "", /* commit= */ NULL);
        operation_on_head(operation);
    } else if (reply->status == 304 && !head->known) {
        pending_fail(&operation->base, REPLY_TROUBLE, "GitHub answered 304 to a first request");
    } else if (reply->status != 304 && (reply->status != 200 || sha[0] == '\0')) {
        github_operation_fail_by(operation, reply);
    } else if (current) {
        operation_keep_etag(reply, head->etag);
        operation_on_head(operation);
    } else {
        operation_keep_etag(reply, operation->etag);
        github_operation_read_commit(operation, github_operation_on_commit, sha);
    }
}

const char *github_commit_parse(const json_t *commit, struct github_commit *out)
{
    const char *wrong = github_commit_read(github_string(commit, "message"), out);
    out->time_ms = github_commit_time_ms(commit);
    return wrong == NULL && out->time_ms < 0 ? "the commit has no date" : wrong;
}

void github_operation_on_commit(struct github_operation *operation,
                                const struct github_reply *reply)
{
    struct github *github = operation->github;
    struct github_commit commit;
    const char *tree = github_sha(json_object_get(reply->json, "tree"));
    if (reply->status != 200) {
        github_operation_fail_by(operation, reply);
        return;
    }
    const char *wrong = github_commit_parse(reply->json, &commit);
    if (wrong == NULL && operation->head->known &&
        operation->head->revision > operation->read_revision &&
        operation->head->revision >= commit.revision) {
        operation_on_head(operation); /* a list or a write has seen a newer one meanwhile */
        return;
    }
    if (wrong == NULL)
        wrong = github_head_set(github, operation->head, operation->read_sha, &commit);
    if (wrong != NULL && operation->base.request.verb == VERB_STORE_LIST) {
        (void)snprintf(github->why, sizeof github->why, "refs/" GITHUB_KEY_REFS "%s: %s",
                       operation->head->name, wrong);
        github_list_on_unreadable(operation, github->why);
        return;
    }
    if (wrong != NULL) {
        pending_fail(&operation->base, REPLY_TROUBLE, wrong);
        return;
    }
    text_copy(operation->head->etag, sizeof operation->head->etag, operation->etag);
    if (tree[0] != '\0')
        text_copy(github->tree, sizeof github->tree, tree);
    operation_on_head(operation);
}

/* ---- the steps of an operation ---- */

const char *github_repository_refusal(int status, const json_t *repository)
{
    const json_t *rights = json_object_get(repository, "permissions");
    if (status == 404)
        return "GitHub has no such repository, or the token may not read it; the token needs "
               "Contents: write and, to show locks on issues, Issues: write";
    if (json_is_true(json_object_get(repository, "archived")))
        return "the repository is archived, so nobody can write to it; choose another one";
    if (json_is_object(rights) && !json_is_true(json_object_get(rights, "push")))
        return "the token may not write to the repository; it needs Contents: write";
    return NULL;
}

static void operation_on_repository(struct github_operation *operation,
                                    const struct github_reply *reply)
{
    const char *refusal = github_repository_refusal(reply->status, reply->json);
    if (refusal != NULL) {
        pending_fail(&operation->base, REPLY_DENIED, refusal);
    } else if (reply->status != 200) {
        github_operation_fail_by(operation, reply);
    } else {
        operation->github->checked = true;
        if (operation->head != NULL)
            operation_read_ref(operation);
        else
            operation_start(operation);
    }
}

static void operation_start(struct github_operation *operation)
{
    struct github *github = operation->github;
    const struct store_request *request = &operation->base.request;
    bool reads = request->verb == VERB_STORE_READ || request->verb == VERB_STORE_HISTORY;
    if (!github->checked) {
        operation_check_repository(operation);
        return;
    }
    if (request->verb == VERB_STORE_LIST) {
        github_list_begin(operation);
        return;
    }
    if (request->verb == VERB_STORE_WATCH) {
        github_watch_add(github, operation);
        return;
    }
    if (operation->head == NULL) {
        char name[GITHUB_NAME_MAX + 1];
        github_ref_name(request->key, name);
        operation->head = github_head_use(github, name);
    }
    if (operation->head == NULL)
        pending_fail(&operation->base, REPLY_TROUBLE, "out of memory");
    else if (!reads && operation->head->known && operation->head->sha[0] != '\0' &&
             operation_holds(operation))
        operation_write(operation); /* an outdated head is refused by the ref write */
    else
        operation_read_ref(operation);
}
