/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows a grant on the issue whose number is the key: an assignee, a label, and one comment, which
 * is edited when the grant ends. Each call is sent once, behind all other requests, and its
 * failure is ignored. Nothing is read here to decide, and no rule depends on it. A grant that ends
 * before it was shown gets its comment only. The calls of an issue are sent in order.
 */
#include "process/host.h"
#include "store/github/github_internal.h"
#include "wire/github_issue.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    SHOW_GIVE_UP_MS = 10 * 60 * 1000,
    SHOW_DRAIN_MS = 5000,
    SHOW_COMMENT_MAX = 16 * 1024,
    SHOW_RESULT_MAX = 1024,
};

enum show_step { LOGIN, ASSIGN, MARK, COMMENT, EDIT, UNASSIGN, UNMARK, SHOW_STEPS, SHOW_IDLE };

static const struct {
    const char *method, *path; /* of an issue: behind its number */
} show_calls[SHOW_STEPS] = {
    [LOGIN] = {"GET", "/user"},
    [ASSIGN] = {"POST", "assignees"},
    [MARK] = {"POST", "labels"},
    [COMMENT] = {"POST", "comments"},
    [EDIT] = {"PATCH", NULL},
    [UNASSIGN] = {"DELETE", "assignees"},
    [UNMARK] = {"DELETE", "labels/" GITHUB_HELD_LABEL},
};

/* One grant of an issue's key. */
struct show_item {
    struct list_node node;
    struct github *github;
    char number[GITHUB_DIGITS_MAX + 1];
    struct github_request request;
    enum show_step step;        /* in flight */
    unsigned tried;             /* bits of steps */
    bool ended, absent;         /* the grant has ended; the issue does not exist */
    int64_t comment;            /* its id; 0: none that needs an edit */
    const char *outcome, *sent; /* the second one as the comment says it */
    json_t *lock;               /* {"worker_id": … } */
};

struct github_show {
    struct list items; /* of an issue, the older grants first */
    size_t count;
    bool login_read;
    char login[GITHUB_OWNER_MAX + 1]; /* of the token; "": a GitHub App has none */
};

static void show_advance(struct github *github);

/* ---- the comment ---- */

static json_t *show_time(int64_t at_ms)
{
    char text[32];
    time_t at = (time_t)(at_ms / 1000);
    struct tm parts;
    (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &parts));
    return json_string(text);
}

static json_t *show_describe(const struct grant *grant, int64_t since_ms)
{
    char host[HOST_NAME_MAX + 1] = "";
    json_t *meta = json_object();
    const char *at = grant->meta.text;
    for (size_t pair = 0; pair < grant->meta.count; pair++) {
        const char *value = at + strlen(at) + 1;
        (void)json_object_set_new(meta, at, json_string(value));
        at = value + strlen(value) + 1;
    }
    (void)gethostname(host, sizeof host - 1);
    return json_pack("{s:s, s:s, s:o, s:o, s:o}", "worker_id", grant->holder, "node_id", host,
                     "claimed_at", show_time(since_ms), "heartbeat_last", show_time(since_ms),
                     "task_info", meta);
}

static void show_describe_end(struct show_item *item)
{
    int64_t now_ms = host_wall_ms(), alive_ms = item->github->worker.alive_ms;
    if (alive_ms > 0)
        (void)json_object_set_new(item->lock, "heartbeat_last",
                                  show_time(now_ms - (host_boot_ms() - alive_ms)));
    (void)json_object_set_new(item->lock, "released_at", show_time(now_ms));
    (void)json_object_set_new(item->lock, "outcome", json_string(item->outcome));
    item->sent = item->outcome;
}

/* The text before the JSON is constant: a name in it could mention people. */
static json_t *show_comment(const struct show_item *item)
{
    char bytes[SHOW_COMMENT_MAX + 1];
    struct text text;
    json_t *whole = json_pack("{s:O}", "lock", item->lock);
    char *json = json_dumps(whole, JSON_INDENT(2));
    text_init(&text, bytes, sizeof bytes);
    TEXT_JOIN(&text, "leasehold: this issue ", item->ended ? "was" : "is", " claimed.\n\n```json\n",
              json != NULL ? json : "{}", "\n```\n");
    free(json);
    json_decref(whole);
    return text.cut ? NULL : json_pack("{s:s}", "body", bytes);
}

/* ---- one call after the other ---- */

/* SHOW_IDLE: none until the grant ends; SHOW_STEPS: it is over. */
static enum show_step show_next_step(const struct show_item *item)
{
    bool ended = item->ended, has_login = item->github->show->login[0] != '\0';
    const bool wanted[SHOW_STEPS] = {
        [LOGIN] = !ended && !item->github->show->login_read,
        [ASSIGN] = !ended && has_login,
        [MARK] = !ended,
        [COMMENT] = true,
        [EDIT] = ended && item->comment != 0,
        [UNASSIGN] = ended && (item->tried & 1u << ASSIGN) != 0,
        [UNMARK] = ended && (item->tried & 1u << MARK) != 0,
    };
    enum show_step step = item->absent ? SHOW_STEPS : LOGIN;
    while (step < SHOW_STEPS && (!wanted[step] || (item->tried & 1u << step) != 0))
        step++;
    return step == SHOW_STEPS && !ended ? SHOW_IDLE : step;
}

static void show_free(struct show_item *item)
{
    github_request_cancel(&item->request);
    json_decref(item->lock);
    free(item);
}

static void show_on_reply(void *owner, const struct github_reply *reply)
{
    struct show_item *item = owner;
    struct github_show *show = item->github->show;
    bool good = reply->status >= 200 && reply->status < 300;
    /* The comment on a grant that had ended needs no edit. */
    bool complete = json_object_get(item->lock, "outcome") != NULL;
    show->login_read = show->login_read || item->step == LOGIN;
    if (item->step == LOGIN && good)
        (void)snprintf(show->login, sizeof show->login, "%s", github_string(reply->json, "login"));
    else if (item->step == COMMENT && good && !complete)
        item->comment = json_integer_value(json_object_get(reply->json, "id"));
    else if (item->step != LOGIN && item->step <= COMMENT && !good)
        item->absent = reply->status == 404 || reply->status == 410;
    if (item->step != EDIT || item->sent == item->outcome)
        item->tried |= 1u << item->step;
    item->step = SHOW_IDLE;
    show_advance(item->github);
}

static void show_send(struct show_item *item, enum show_step step)
{
    char path[64];
    json_t *body = NULL;
    if (step == EDIT)
        (void)snprintf(path, sizeof path, "issues/comments/%lld", (long long)item->comment);
    else if (step == LOGIN)
        text_copy(path, sizeof path, show_calls[step].path);
    else
        (void)snprintf(path, sizeof path, "issues/%s/%s", item->number, show_calls[step].path);
    if (item->ended && (step == COMMENT || step == EDIT))
        show_describe_end(item);
    if (step == COMMENT || step == EDIT)
        body = show_comment(item);
    else if (step == ASSIGN || step == UNASSIGN)
        body = json_pack("{s:[s]}", "assignees", item->github->show->login);
    else if (step == MARK)
        body = json_pack("{s:[s]}", "labels", GITHUB_HELD_LABEL);
    item->step = step;
    const struct github_call call = {.method = show_calls[step].method,
                                     .path = path,
                                     .body = body,
                                     .kind = GITHUB_SHOW,
                                     .give_up_at_ms = host_boot_ms() + SHOW_GIVE_UP_MS};
    github_request_start(&item->request, item->github->api, &call, show_on_reply, item);
}

static struct show_item *show_first(const struct github_show *show, const char *number)
{
    for (struct list_node *node = show->items.first; node != NULL; node = node->next) {
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a freed item is in no list */
        struct show_item *item = LIST_ENTRY(node, struct show_item, node);
        if (strcmp(item->number, number) == 0)
            return item;
    }
    return NULL;
}

/* Starts the next call of every issue that has none in flight. */
static void show_advance(struct github *github)
{
    struct github_show *show = github->show;
    struct list over = {0};
    for (struct list_node *node = show->items.first, *next; node != NULL; node = next) {
        struct show_item *item = LIST_ENTRY(node, struct show_item, node);
        next = node->next;
        if (item->step != SHOW_IDLE || show_first(show, item->number) != item)
            continue;
        enum show_step step = show_next_step(item);
        if (step < SHOW_STEPS)
            show_send(item, step);
        if (step != SHOW_STEPS)
            continue;
        list_remove(&show->items, node);
        list_append(&over, node);
        show->count--;
    }
    while (over.first != NULL)
        show_free(LIST_ENTRY(list_pop(&over), struct show_item, node));
}

/* ---- grants ---- */

/* That of the last grant; NULL: none is shown. */
static struct show_item *show_find(const struct github *github, const char *key)
{
    struct list_node *node = github->show != NULL ? github->show->items.last : NULL;
    for (; node != NULL; node = node->previous) {
        struct show_item *item = LIST_ENTRY(node, struct show_item, node);
        if (strcmp(item->number, key) == 0)
            return item;
    }
    return NULL;
}

void github_show_change(struct github *github, struct github_head *head, const struct grant *grant)
{
    if (!github->url.show || head->key == NULL || !github_is_issue_number(head->key) ||
        head->shown == (grant != NULL))
        return;
    struct show_item *item = show_find(github, head->key);
    head->shown = grant != NULL;
    if (grant == NULL && item != NULL)
        item->ended = true;
    if (github->show == NULL)
        github->show = calloc(1, sizeof *github->show);
    struct github_show *show = github->show;
    if (show == NULL)
        return;
    if (grant != NULL && show->count < GITHUB_SHOWS_MAX &&
        (item = calloc(1, sizeof *item)) != NULL) {
        item->github = github;
        text_copy(item->number, sizeof item->number, head->key);
        item->step = SHOW_IDLE;
        item->outcome = "released";
        item->lock = show_describe(grant, head->time_ms);
        list_append(&show->items, &item->node);
        show->count++;
    }
    show_advance(github);
}

void github_show_event(void *state, const struct store_event *event)
{
    static const char *const words[][2] = {
        {"Succeeded", "succeeded"}, {"Failed", "failed"}, {"Lost", "lost"}};
    struct github *github = state;
    struct show_item *item = show_find(github, event->key);
    bool lost = strcmp(event->reason, "Lost") == 0; /* known only after the grant has ended */
    if (item != NULL && item->ended && !lost)
        return;
    if (item != NULL && lost)
        item->tried &= ~(1u << EDIT);
    for (size_t i = 0; item != NULL && i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(event->reason, words[i][0]) != 0)
            continue;
        item->outcome = words[i][1];
        if (event->more[0] != '\0')
            (void)json_object_set_new(
                item->lock, "result",
                json_stringn(event->more, strnlen(event->more, SHOW_RESULT_MAX)));
    }
    if (item != NULL && item->ended)
        show_advance(github);
}

void github_show_done(struct github *github)
{
    struct github_show *show = github->show;
    int64_t give_up_at_ms = host_boot_ms() + SHOW_DRAIN_MS;
    for (bool busy = show != NULL; busy;) {
        int64_t left_ms = give_up_at_ms - host_boot_ms();
        struct pollfd file = {.fd = poller_fd(github->poller), .events = POLLIN};
        busy = false;
        for (struct list_node *node = show->items.first; node != NULL; node = node->next)
            busy = busy || LIST_ENTRY(node, struct show_item, node)->step != SHOW_IDLE;
        if (left_ms <= 0 || (busy && poll(&file, 1, (int)left_ms) < 0))
            break;
        poller_step(github->poller);
    }
    while (show != NULL && show->items.first != NULL)
        show_free(LIST_ENTRY(list_pop(&show->items), struct show_item, node));
    free(show);
    github->show = NULL;
}
