/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists, histories and watches. A list reads the refs at once, and the commits that are not cached
 * one by one. A history is the chain of commits. GitHub reports no changes, so a watch polls: it
 * compares the refs with those of the poll before.
 */
#include "base/check.h"
#include "process/host.h"
#include "store/github/github_internal.h"

#include <stdio.h>

enum { HISTORY_MOST = 100 };

static store_done watch_on_listed;
static github_handler list_on_refs, history_on_reply;

static const struct store_reply all_sent = {.result = REPLY_OK, .now_ms = TIME_UNKNOWN};

/* ---- lists ---- */

void github_list_begin(struct github_operation *operation)
{
    char prefix[GITHUB_NAME_MAX + 1], in_path[GITHUB_PATH_NAME_MAX + 1], path[GITHUB_PATH];
    if (operation->hashed)
        text_copy(prefix, sizeof prefix, GITHUB_HASH_MARK);
    else
        github_ref_prefix(operation->base.request.key, prefix);
    github_path_name(prefix, in_path);
    (void)snprintf(path, sizeof path, "git/matching-refs/" GITHUB_KEY_REFS "%s", in_path);
    github_operation_get(operation, list_on_refs, path);
}

static void list_on_refs(struct github_operation *operation, const struct github_reply *reply)
{
    if (reply->status != 200 || !json_is_array(reply->json)) {
        github_operation_fail_by(operation, reply);
        return;
    }
    json_decref(operation->refs);
    operation->refs = json_incref(reply->json);
    operation->index = 0;
    github_list_next(operation);
}

/* The name of the next ref of a key, and the commit that it points to; NULL after the last. */
static const char *list_take(struct github_operation *operation, const char **out_sha)
{
    static const char before[] = "refs/" GITHUB_KEY_REFS;
    while (operation->index < json_array_size(operation->refs)) {
        const json_t *ref = json_array_get(operation->refs, operation->index++);
        const char *name = github_string(ref, "ref");
        *out_sha = github_sha(json_object_get(ref, "object"));
        if (strncmp(name, before, sizeof before - 1) == 0 && *out_sha[0] != '\0' &&
            strlen(name) < sizeof before + GITHUB_NAME_MAX)
            return name + sizeof before - 1;
    }
    return NULL;
}

/* With a prefix, hashed names come from another list, and their keys are compared. The poll of the
 * watchers also reports keys that became vacant. */
static bool list_is_wanted(const struct github_operation *operation)
{
    const struct github_head *head = operation->head;
    const char *prefix = operation->base.request.key;
    if (head->key == NULL)
        return false;
    if (operation->base.done == watch_on_listed)
        return head->watched != head->revision;
    return head->bytes != NULL && strncmp(head->key, prefix, strlen(prefix)) == 0;
}

static void list_end(struct github_operation *operation)
{
    if (!operation->hashed && operation->base.request.key[0] != '\0') {
        operation->hashed = true;
        github_list_begin(operation);
        return;
    }
    pending_reply(&operation->base, &all_sent);
}

void github_list_next(struct github_operation *operation)
{
    struct github *github = operation->github;
    const char *sha, *name;
    github_head_release(operation->head);
    operation->head = NULL;
    while ((name = list_take(operation, &sha)) != NULL) {
        operation->head = github_head_use(github, name);
        if (operation->head == NULL) {
            pending_fail(&operation->base, REPLY_TROUBLE, "out of memory");
            return;
        }
        if (!operation->head->known || strcmp(operation->head->sha, sha) != 0) {
            github_operation_read_commit(operation, github_operation_on_commit, sha);
            return;
        }
        if (list_is_wanted(operation) && !github_operation_report(operation))
            return; /* github_operation_judged() follows */
        github_head_release(operation->head);
        operation->head = NULL;
    }
    list_end(operation);
}

void github_list_on_head(struct github_operation *operation)
{
    if (list_is_wanted(operation))
        github_operation_judged(operation);
    else
        github_list_next(operation);
}

/* The commit is not a record of ours. */
void github_list_on_unreadable(struct github_operation *operation, const char *why)
{
    struct store_reply reply = {.result = REPLY_TROUBLE,
                                .more = true,
                                .key = operation->head->key,
                                .now_ms = TIME_UNKNOWN,
                                .why = why};
    if (reply.key != NULL && operation->base.done != watch_on_listed)
        pending_reply(&operation->base, &reply);
    github_list_next(operation);
}

/* ---- history ---- */

void github_history_begin(struct github_operation *operation)
{
    char path[GITHUB_PATH];
    if (operation->head->sha[0] == '\0') {
        pending_reply(&operation->base, &all_sent);
        return;
    }
    (void)snprintf(path, sizeof path, "commits?sha=%s&per_page=%d", operation->head->sha,
                   HISTORY_MOST);
    github_operation_get(operation, history_on_reply, path);
}

static void history_on_reply(struct github_operation *operation, const struct github_reply *reply)
{
    size_t index;
    const json_t *item;
    struct github_commit commit;
    if (reply->status != 200 || !json_is_array(reply->json)) {
        github_operation_fail_by(operation, reply);
        return;
    }
    json_t *list = json_incref(reply->json);
    json_array_foreach(list, index, item)
    {
        if (github_commit_parse(json_object_get(item, "commit"), &commit) != NULL)
            continue;
        struct store_reply past = {
            .result = REPLY_OK,
            .more = true,
            .key = operation->base.request.key,
            .present = commit.bytes != NULL,
            .written = {.revision = commit.revision, .time_ms = commit.time_ms},
            .now_ms = operation->now_ms,
            .bytes = commit.bytes,
            .length = commit.length};
        pending_reply(&operation->base, &past);
    }
    json_decref(list);
    pending_reply(&operation->base, &all_sent);
}

/* ---- watches ---- */

static void watch_poll(void *owner)
{
    struct github *github = owner;
    struct store_request request = {.verb = VERB_STORE_LIST, .key = ""};
    if (github->watch.polling || github->watch.watchers.count == 0)
        return;
    github->watch.polling = true;
    github_operation_add(github, &request, watch_on_listed, github);
}

static void watch_deliver(struct github *github, const struct store_reply *current)
{
    char name[GITHUB_NAME_MAX + 1];
    github_ref_name(current->key, name);
    struct github_head *head = github_head_use(github, name);
    if (head != NULL)
        head->watched = head->revision;
    github_head_release(head);
    for (struct watchers_walk walk = watchers_walk(&github->watch.watchers, current->key);
         github->watch.begun && watchers_next(&walk);) {
        struct store_reply change = *current;
        watchers_deliver(&walk, &change);
    }
}

/* The first poll only notes the revisions, and confirms the watchers. */
static void watch_on_listed(void *caller, const struct store_reply *reply)
{
    struct github *github = caller;
    struct github_watch *watch = &github->watch;
    struct github_usage usage;
    if (reply->more) {
        if (reply->result == REPLY_OK)
            watch_deliver(github, reply);
        return;
    }
    watch->polling = false;
    if (reply->result != REPLY_OK) {
        watchers_end(&watch->watchers, reply);
        return;
    }
    watch->begun = true;
    watchers_confirm(&watch->watchers, &all_sent);
    github_api_usage(github->api, &usage);
    bool slower = usage.poll_interval_ms > github->url.poll_ms;
    poller_call_at(github->poller, &watch->timer,
                   host_boot_ms() + (slower ? usage.poll_interval_ms : github->url.poll_ms));
}

void github_watch_add(struct github *github, struct github_operation *operation)
{
    (void)pending_watch(&operation->base, &github->watch.watchers);
    watch_poll(github);
}

void github_watch_init(struct github *github)
{
    github->watch.timer.due = watch_poll;
    github->watch.timer.owner = github;
}

void github_watch_done(struct github *github)
{
    poller_call_at(github->poller, &github->watch.timer, POLLER_NEVER);
    watchers_done(&github->watch.watchers);
}
