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
static void operation_on_reply(void *owner, const struct github_reply *reply);

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
        if (operation->phase == PHASE_WAITING && operation->base.behind == NULL &&
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
    github_head_release(github, operation->head);
    json_decref(operation->refs);
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
        github_operation_fail(operation, REPLY_TROUBLE, why);
    else
        operations_wake(operation->github);
}

/* ---- replies to the caller ---- */

void github_operation_finish(struct github_operation *operation, const struct store_reply *reply)
{
    operations_wake(operation->github); /* starts the operation behind this one */
    pending_reply(&operation->base, reply);
}

void github_operation_fail(struct github_operation *operation, enum reply_status result,
                           const char *why)
{
    github_operation_finish(
        operation, &(struct store_reply){.result = result, .now_ms = TIME_UNKNOWN, .why = why});
}

/* GitHub answers 409 to everything below git/ if the repository has no commit. */
void github_operation_fail_by(struct github_operation *operation, const struct github_reply *reply)
{
    bool empty = reply->status == 409;
    bool denied = empty || reply->status == 401 || reply->status == 403;
    const char *why = reply->why[0] != '\0' ? reply->why : GITHUB_MALFORMED;
    github_operation_finish(
        operation, &(struct store_reply){
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
        github_operation_finish(operation, &reply);
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

void github_operation_send(struct github_operation *operation, enum github_phase phase,
                           const char *method, const char *path, const char *etag, json_t *body)
{
    struct github_call call = {.method = method,
                               .path = path,
                               .body = body,
                               .kind = operation_kind(operation),
                               .etag = etag,
                               .give_up_at_ms = operation->base.deadline_ms};
    operation->phase = phase;
    github_request_start(&operation->http, operation->github->api, &call, operation_on_reply,
                         operation);
}

static void operation_path(const struct github_operation *operation, const char *before,
                           char out[GITHUB_PATH])
{
    char name[GITHUB_PATH_NAME_MAX + 1];
    github_path_name(operation->head->name, name);
    (void)snprintf(out, GITHUB_PATH, "%s" GITHUB_KEY_REFS "%s", before, name);
}

static void operation_read_ref(struct github_operation *operation)
{
    const struct github_head *head = operation->head;
    char path[GITHUB_PATH];
    bool cached = head->known && head->etag[0] != '\0' && !operation->refused;
    operation_path(operation, "git/ref/", path);
    github_operation_send(operation, PHASE_REF, "GET", path, cached ? head->etag : NULL,
                          /* body= */ NULL);
}

void github_operation_get(struct github_operation *operation, enum github_phase phase,
                          const char *path)
{
    github_operation_send(operation, phase, "GET", path, /* etag= */ NULL, /* body= */ NULL);
}

void github_operation_read_commit(struct github_operation *operation, enum github_phase phase,
                                  const char *sha)
{
    char path[GITHUB_PATH];
    text_copy(operation->read_sha, sizeof operation->read_sha, sha);
    operation->read_revision = operation->head->revision;
    (void)snprintf(path, sizeof path, "git/commits/%s", sha);
    github_operation_get(operation, phase, path);
}

/* ---- writes ---- */

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
    github_operation_send(operation, PHASE_TREE, "POST", "git/trees", /* etag= */ NULL,
                          github_tree_body());
}

static void operation_write_commit(struct github_operation *operation)
{
    struct github *github = operation->github;
    const struct github_head *head = operation->head;
    char unique[48];
    struct text text;
    operation->commit.revision = operation_revision(operation);
    if (operation->commit.revision == 0) {
        github_operation_fail(operation, REPLY_TROUBLE,
                              "GitHub's reply has no valid date, so tokens could repeat");
        return;
    }
    github_commit_unique(github, unique);
    text_init(&text, github->message, sizeof github->message);
    github_commit_message(&operation->base.request, operation->commit.revision, unique, &text);
    ASSERT(!text.cut);
    json_t *parents = json_array();
    if (head->sha[0] != '\0')
        (void)json_array_append_new(parents, json_string(head->sha));
    json_t *body = json_pack("{s:s, s:s, s:o}", "message", github->message, "tree", github->tree,
                             "parents", parents);
    github_operation_send(operation, PHASE_WRITE_COMMIT, "POST", "git/commits", /* etag= */ NULL,
                          body);
}

/* Issues and pull requests share their numbers, and a lock of a pull request would be shown on it. A
 * reply that names no pull request is enough: the key may be the number of nothing. */
static void operation_on_issue(struct github_operation *operation, const struct github_reply *reply)
{
    if (reply->status == 0) {
        github_operation_fail_by(operation, reply);
    } else if (json_object_get(reply->json, "pull_request") != NULL) {
        github_operation_fail(operation, REPLY_INVALID,
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
    github_operation_get(operation, PHASE_ISSUE, path);
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
    if (head->sha[0] != '\0') {
        operation_path(operation, "git/refs/", path);
        github_operation_send(operation, PHASE_WRITE_REF, "PATCH", path, /* etag= */ NULL,
                              json_pack("{s:s, s:b}", "sha", operation->sha, "force", 0));
        return;
    }
    (void)snprintf(path, sizeof path, "refs/" GITHUB_KEY_REFS "%s", head->name);
    github_operation_send(operation, PHASE_WRITE_REF, "POST", "git/refs", /* etag= */ NULL,
                          json_pack("{s:s, s:s}", "ref", path, "sha", operation->sha));
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
    operation->commit.time_ms =
        github_time_ms(github_string(json_object_get(reply->json, "committer"), "date"));
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
    struct github_head *head = operation->head;
    const struct store_request *request = &operation->base.request;
    bool swaps = request->verb == VERB_STORE_SWAP;
    operation->commit.bytes = swaps ? request->bytes : NULL;
    operation->commit.length = swaps ? request->length : 0;
    operation->written = true;
    const char *wrong =
        github_head_set(operation->github, head, operation->sha, &operation->commit);
    if (wrong != NULL)
        github_operation_fail(operation, REPLY_TROUBLE, wrong);
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
        github_operation_fail(operation, REPLY_TROUBLE, operation->why);
    else
        operation_write(operation);
}

static void operation_check_repository(struct github_operation *operation)
{
    const struct github_url *url = &operation->github->url;
    char path[GITHUB_PATH + GITHUB_OWNER_MAX];
    (void)snprintf(path, sizeof path, "/repos/%s/%s", url->owner, url->repo);
    github_operation_get(operation, PHASE_REPOSITORY, path);
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
        github_head_set_absent(operation->github, head);
        operation_on_head(operation);
    } else if (reply->status == 304 && !head->known) {
        github_operation_fail(operation, REPLY_TROUBLE, "GitHub answered 304 to a first request");
    } else if (reply->status != 304 && (reply->status != 200 || sha[0] == '\0')) {
        github_operation_fail_by(operation, reply);
    } else if (current) {
        (void)snprintf(head->etag, sizeof head->etag, "%s", reply->etag != NULL ? reply->etag : "");
        operation_on_head(operation);
    } else {
        (void)snprintf(operation->etag, sizeof operation->etag, "%s",
                       reply->etag != NULL ? reply->etag : "");
        github_operation_read_commit(operation, PHASE_COMMIT, sha);
    }
}

static void operation_on_commit(struct github_operation *operation,
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
        github_operation_fail(operation, REPLY_TROUBLE, wrong);
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
        github_operation_fail(operation, REPLY_DENIED, refusal);
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
        github_operation_fail(operation, REPLY_TROUBLE, "out of memory");
    else if (!reads && operation->head->known && operation->head->sha[0] != '\0' &&
             operation_holds(operation))
        operation_write(operation); /* an outdated head is refused by the ref write */
    else
        operation_read_ref(operation);
}

static void operation_on_reply(void *owner, const struct github_reply *reply)
{
    static void (*const handlers[])(struct github_operation *, const struct github_reply *) = {
        [PHASE_REPOSITORY] = operation_on_repository,
        [PHASE_REF] = operation_on_ref,
        [PHASE_COMMIT] = operation_on_commit,
        [PHASE_PEER_REF] = github_judge_on_reply,
        [PHASE_PEER_COMMIT] = github_judge_on_reply,
        [PHASE_ISSUE] = operation_on_issue,
        [PHASE_TREE] = operation_on_tree,
        [PHASE_WRITE_COMMIT] = operation_on_commit_written,
        [PHASE_WRITE_REF] = operation_on_ref_written,
        [PHASE_LIST] = github_list_on_refs,
        [PHASE_HISTORY] = github_history_on_reply,
    };
    struct github_operation *operation = owner;
    ASSERT(operation->phase != PHASE_WAITING);
    if (reply->now_ms != TIME_UNKNOWN)
        operation->now_ms = reply->now_ms;
    handlers[operation->phase](operation, reply);
}
