/* SPDX-License-Identifier: Apache-2.0 */
/* See issue_board.h. Each call is sent once; those of an issue are sent in order. */
#include "store/issues/issue_board.h"

#include "base/list.h"
#include "process/host.h"
#include "wire/github_issue.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    BOARD_ITEMS_MAX = 64,
    BOARD_GIVE_UP_MS = 10 * 60 * 1000,
    BOARD_DRAIN_MS = 5000,
    BOARD_COMMENT_MAX = 16 * 1024,
    BOARD_RESULT_MAX = 1024,
};

enum board_step { LOGIN, ASSIGN, MARK, COMMENT, EDIT, UNASSIGN, UNMARK, BOARD_STEPS, BOARD_IDLE };

static const struct {
    const char *method, *path; /* of an issue: behind its number */
} board_calls[BOARD_STEPS] = {
    [LOGIN] = {"GET", "/user"},
    [ASSIGN] = {"POST", "assignees"},
    [MARK] = {"POST", "labels"},
    [COMMENT] = {"POST", "comments"},
    [EDIT] = {"PATCH", NULL},
    [UNASSIGN] = {"DELETE", "assignees"},
    [UNMARK] = {"DELETE", "labels/" GITHUB_HELD_LABEL},
};

/* One grant of an issue's key. */
struct board_item {
    struct list_node node;
    struct issue_board *board;
    char number[GITHUB_DIGITS_MAX + 1];
    struct github_request request;
    enum board_step step;       /* in flight */
    unsigned tried;             /* bits of steps */
    bool ended, absent;         /* the grant has ended; the issue does not exist */
    int64_t comment;            /* its id; 0: none that needs an edit */
    int64_t alive_ms;           /* by host_boot_ms(), of the last heartbeat; 0: unknown */
    const char *outcome, *sent; /* the second one as the comment says it */
    json_t *lock;               /* {"worker_id": … } */
};

struct issue_board {
    struct github_api *api;
    struct list items; /* of an issue, the older grants first */
    size_t count;
    bool login_read;
    char login[GITHUB_OWNER_MAX + 1]; /* of the token; "": a GitHub App has none */
};

static void board_advance(struct issue_board *board);

/* ---- the comment ---- */

static json_t *board_time(int64_t at_ms)
{
    char text[32];
    time_t at = (time_t)(at_ms / 1000);
    struct tm parts;
    (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &parts));
    return json_string(text);
}

static json_t *board_describe(const struct grant *grant, int64_t since_ms)
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
                     "claimed_at", board_time(since_ms), "heartbeat_last", board_time(since_ms),
                     "task_info", meta);
}

static void board_describe_end(struct board_item *item)
{
    int64_t now_ms = host_wall_ms();
    if (item->alive_ms > 0)
        (void)json_object_set_new(item->lock, "heartbeat_last",
                                  board_time(now_ms - (host_boot_ms() - item->alive_ms)));
    (void)json_object_set_new(item->lock, "released_at", board_time(now_ms));
    (void)json_object_set_new(item->lock, "outcome", json_string(item->outcome));
    item->sent = item->outcome;
}

/* The text before the JSON is constant: a name in it could mention people. */
static json_t *board_comment(const struct board_item *item)
{
    char bytes[BOARD_COMMENT_MAX + 1];
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

/* BOARD_IDLE: none until the grant ends; BOARD_STEPS: it is over. */
static enum board_step board_next_step(const struct board_item *item)
{
    bool ended = item->ended, has_login = item->board->login[0] != '\0';
    const bool wanted[BOARD_STEPS] = {
        [LOGIN] = !ended && !item->board->login_read,
        [ASSIGN] = !ended && has_login,
        [MARK] = !ended,
        [COMMENT] = true,
        [EDIT] = ended && item->comment != 0,
        [UNASSIGN] = ended && (item->tried & 1u << ASSIGN) != 0,
        [UNMARK] = ended && (item->tried & 1u << MARK) != 0,
    };
    enum board_step step = item->absent ? BOARD_STEPS : LOGIN;
    while (step < BOARD_STEPS && (!wanted[step] || (item->tried & 1u << step) != 0))
        step++;
    return step == BOARD_STEPS && !ended ? BOARD_IDLE : step;
}

static void board_free(struct board_item *item)
{
    github_request_cancel(&item->request);
    json_decref(item->lock);
    free(item);
}

static void board_on_reply(void *owner, const struct github_reply *reply)
{
    struct board_item *item = owner;
    struct issue_board *board = item->board;
    bool good = reply->status >= 200 && reply->status < 300;
    /* The comment on a grant that had ended needs no edit. */
    bool complete = json_object_get(item->lock, "outcome") != NULL;
    board->login_read = board->login_read || item->step == LOGIN;
    if (item->step == LOGIN && good)
        (void)snprintf(board->login, sizeof board->login, "%s",
                       github_string(reply->json, "login"));
    else if (item->step == COMMENT && good && !complete)
        item->comment = json_integer_value(json_object_get(reply->json, "id"));
    else if (item->step != LOGIN && item->step <= COMMENT && !good)
        item->absent = reply->status == 404 || reply->status == 410;
    if (item->step != EDIT || item->sent == item->outcome)
        item->tried |= 1u << item->step;
    item->step = BOARD_IDLE;
    board_advance(item->board);
}

static void board_send(struct board_item *item, enum board_step step)
{
    char path[64];
    json_t *body = NULL;
    if (step == EDIT)
        (void)snprintf(path, sizeof path, "issues/comments/%lld", (long long)item->comment);
    else if (step == LOGIN)
        text_copy(path, sizeof path, board_calls[step].path);
    else
        (void)snprintf(path, sizeof path, "issues/%s/%s", item->number, board_calls[step].path);
    if (item->ended && (step == COMMENT || step == EDIT))
        board_describe_end(item);
    if (step == COMMENT || step == EDIT)
        body = board_comment(item);
    else if (step == ASSIGN || step == UNASSIGN)
        body = json_pack("{s:[s]}", "assignees", item->board->login);
    else if (step == MARK)
        body = json_pack("{s:[s]}", "labels", GITHUB_HELD_LABEL);
    item->step = step;
    const struct github_call call = {.method = board_calls[step].method,
                                     .path = path,
                                     .body = body,
                                     .kind = GITHUB_SHOW,
                                     .give_up_at_ms = host_boot_ms() + BOARD_GIVE_UP_MS};
    github_request_start(&item->request, item->board->api, &call, board_on_reply, item);
}

static struct board_item *board_first(const struct issue_board *board, const char *number)
{
    for (struct list_node *node = board->items.first; node != NULL; node = node->next) {
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a freed item is in no list */
        struct board_item *item = LIST_ENTRY(node, struct board_item, node);
        if (strcmp(item->number, number) == 0)
            return item;
    }
    return NULL;
}

/* Starts the next call of every issue that has none in flight. */
static void board_advance(struct issue_board *board)
{
    struct list over = {0};
    for (struct list_node *node = board->items.first, *next; node != NULL; node = next) {
        struct board_item *item = LIST_ENTRY(node, struct board_item, node);
        next = node->next;
        if (item->step != BOARD_IDLE || board_first(board, item->number) != item)
            continue;
        enum board_step step = board_next_step(item);
        if (step < BOARD_STEPS)
            board_send(item, step);
        if (step != BOARD_STEPS)
            continue;
        list_remove(&board->items, node);
        list_append(&over, node);
        board->count--;
    }
    while (over.first != NULL)
        board_free(LIST_ENTRY(list_pop(&over), struct board_item, node));
}

/* ---- grants ---- */

/* That of the last grant; NULL: none is shown. */
static struct board_item *board_find(const struct issue_board *board, const char *key)
{
    struct list_node *node = board->items.last;
    for (; node != NULL; node = node->previous) {
        struct board_item *item = LIST_ENTRY(node, struct board_item, node);
        if (strcmp(item->number, key) == 0)
            return item;
    }
    return NULL;
}

void issue_board_add(struct issue_board *board, const char *number, const struct grant *grant,
                     int64_t since_ms)
{
    struct board_item *item = board->count < BOARD_ITEMS_MAX ? calloc(1, sizeof *item) : NULL;
    if (item == NULL)
        return;
    item->board = board;
    text_copy(item->number, sizeof item->number, number);
    item->step = BOARD_IDLE;
    item->outcome = "released";
    item->lock = board_describe(grant, since_ms);
    list_append(&board->items, &item->node);
    board->count++;
    board_advance(board);
}

void issue_board_end(struct issue_board *board, const char *number, int64_t alive_ms)
{
    struct board_item *item = board_find(board, number);
    if (item == NULL)
        return;
    item->ended = true;
    item->alive_ms = alive_ms;
    board_advance(board);
}

void issue_board_on_event(struct issue_board *board, const struct store_event *event)
{
    static const char *const words[][2] = {
        {"Succeeded", "succeeded"}, {"Failed", "failed"}, {"Lost", "lost"}};
    struct board_item *item = board_find(board, event->key);
    bool lost = strcmp(event->reason, "Lost") == 0; /* known only after the grant has ended */
    if (item == NULL || (item->ended && !lost))
        return;
    if (lost)
        item->tried &= ~(1u << EDIT);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(event->reason, words[i][0]) != 0)
            continue;
        item->outcome = words[i][1];
        if (event->more[0] != '\0')
            (void)json_object_set_new(
                item->lock, "result",
                json_stringn(event->more, strnlen(event->more, BOARD_RESULT_MAX)));
    }
    if (item->ended)
        board_advance(board);
}

/* ---- start and end ---- */

struct issue_board *issue_board_new(struct github_api *api)
{
    struct issue_board *board = calloc(1, sizeof *board);
    if (board != NULL)
        board->api = api;
    return board;
}

static bool board_is_busy(const struct issue_board *board)
{
    bool busy = false;
    for (struct list_node *node = board->items.first; node != NULL; node = node->next)
        busy = busy || LIST_ENTRY(node, struct board_item, node)->step != BOARD_IDLE;
    return busy;
}

void issue_board_free(struct issue_board **board_pointer)
{
    struct issue_board *board = *board_pointer;
    int64_t until_ms = host_boot_ms() + BOARD_DRAIN_MS;
    if (board == NULL)
        return;
    struct poller *poller = github_api_poller(board->api);
    while (board_is_busy(board) && host_boot_ms() < until_ms) {
        poller_wait(poller, (int)(until_ms - host_boot_ms()));
        poller_step(poller);
    }
    while (board->items.first != NULL)
        board_free(LIST_ENTRY(list_pop(&board->items), struct board_item, node));
    free(board);
    *board_pointer = NULL;
}
