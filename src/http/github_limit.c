/* SPDX-License-Identifier: Apache-2.0 */
/* See github_limit.h. Times are those of host_boot_ms(). */
#include "http/github_limit.h"

#include "base/check.h"
#include "base/list.h"
#include "core/record.h"
#include "process/host.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    ACCOUNTS_KEPT = 32,
    MINUTE_MS = 60000,
    MINUTES = 61,          /* the present one is not over: together at least an hour */
    BUSY_MS = 20,          /* until another thread's write is looked at again */
    TURN_MS = 200,         /* the next writer must try again within this time */
    PAUSE_LEAST_MS = 1000, /* times of the server are whole seconds */
    PAUSE_MAX_MS = 86400000,
    SECONDARY_MS = 60000, /* the first pause if the server names none; then it doubles, … */
    SECONDARY_MAX_MS = 16 * SECONDARY_MS, /* … up to this */
};

static const int64_t number_max = (int64_t)1 << 40; /* of a header; times of it cannot overflow */

struct github_minute {
    int64_t number; /* since boot */
    unsigned sent[GITHUB_KINDS], writes;
    unsigned unchanged; /* 304: the server does not count them */
};

struct github_limit {
    struct list_node node;
    uint64_t account;
    unsigned clients;
    /* The write in flight, the last one, and the client whose turn is next. */
    bool busy;
    int64_t wrote_ms;
    const void *next;
    enum github_kind next_kind;
    int64_t next_until_ms;
    /* As the server states. */
    int64_t paused_until_ms, secondary_ms;
    int64_t most, left, reset_s, poll_interval_ms;
    struct github_minute minutes[MINUTES];
};

static pthread_mutex_t github_limits_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list github_limits;

/* ---- one for each account ---- */

/* That of the account; or one to replace, if there are many; or NULL. */
static struct github_limit *github_limit_find(uint64_t account)
{
    struct github_limit *unused = NULL;
    size_t count = 0;
    for (struct list_node *node = github_limits.first; node != NULL; node = node->next, count++) {
        struct github_limit *limit = LIST_ENTRY(node, struct github_limit, node);
        if (limit->account == account)
            return limit;
        if (limit->clients == 0 && unused == NULL)
            unused = limit;
    }
    return count >= ACCOUNTS_KEPT ? unused : NULL;
}

static void github_limit_init(struct github_limit *limit, uint64_t account)
{
    *limit = (struct github_limit){
        .account = account, .most = -1, .left = -1, .reset_s = -1, .wrote_ms = INT64_MIN / 2};
    list_append(&github_limits, &limit->node);
}

struct github_limit *github_limit_get(uint64_t account)
{
    (void)pthread_mutex_lock(&github_limits_lock);
    struct github_limit *limit = github_limit_find(account);
    if (limit != NULL && limit->account != account) {
        list_remove(&github_limits, &limit->node);
        github_limit_init(limit, account);
    } else if (limit == NULL && (limit = malloc(sizeof *limit)) != NULL) {
        github_limit_init(limit, account);
    }
    if (limit != NULL)
        limit->clients++;
    (void)pthread_mutex_unlock(&github_limits_lock);
    return limit;
}

/* It stays for the next client: the server keeps its counts, too. */
void github_limit_put(struct github_limit **limit)
{
    if (*limit == NULL)
        return;
    (void)pthread_mutex_lock(&github_limits_lock);
    ASSERT((*limit)->clients > 0);
    (*limit)->clients--;
    (void)pthread_mutex_unlock(&github_limits_lock);
    *limit = NULL;
}

/* ---- the last hour ---- */

static struct github_minute *github_limit_minute(struct github_limit *limit, int64_t now_ms)
{
    int64_t number = now_ms / MINUTE_MS;
    struct github_minute *minute = &limit->minutes[number % MINUTES];
    if (minute->number != number)
        *minute = (struct github_minute){.number = number};
    return minute;
}

static unsigned github_minute_count(const struct github_minute *minute, bool writes)
{
    unsigned count = 0;
    for (size_t i = 0; i < GITHUB_KINDS; i++)
        count += minute->sent[i];
    if (writes)
        return minute->writes;
    return count > minute->unchanged ? count - minute->unchanged : 0;
}

/* True if the kind may use one of those that are left: the last part is for the first kinds. Only
 * the server stops heartbeats, since without them all locks of the worker are lost. */
static bool github_kind_may(enum github_kind kind, int64_t left, int64_t most)
{
    static const int parts[GITHUB_KINDS] = {
        [GITHUB_GRANT] = 10, [GITHUB_READ] = 4, [GITHUB_SHOW] = 2};
    if (kind == GITHUB_HEARTBEAT)
        return true;
    return left > 0 && (parts[kind] == 0 || left * parts[kind] >= most);
}

/* The time when the kind may send the next one of `most` in an hour; 0: now. */
static int64_t github_limit_free_at(const struct github_limit *limit, enum github_kind kind,
                                    bool writes, int64_t most, int64_t now_ms)
{
    int64_t left = most, first = now_ms / MINUTE_MS - MINUTES + 1;
    for (size_t i = 0; i < MINUTES; i++)
        if (limit->minutes[i].number >= first)
            left -= github_minute_count(&limit->minutes[i], writes);
    if (github_kind_may(kind, left, most))
        return 0;
    for (int64_t number = first > 0 ? first : 0; number < first + MINUTES; number++) {
        const struct github_minute *minute = &limit->minutes[number % MINUTES];
        if (minute->number == number)
            left += github_minute_count(minute, writes);
        if (github_kind_may(kind, left, most))
            return (number + MINUTES) * MINUTE_MS;
    }
    return INT64_MAX;
}

/* ---- sending ---- */

/* 0: the client may write now. Otherwise it becomes the next one, unless another one with an
 * earlier request is; that one has a short time to come back. */
static int64_t github_limit_turn(struct github_limit *limit, const void *client,
                                 enum github_kind kind, int64_t pace_ms, int64_t now_ms)
{
    int64_t at_ms = limit->wrote_ms + pace_ms;
    bool taken = limit->next != NULL && limit->next != client && now_ms < limit->next_until_ms;
    bool first = !taken || kind < limit->next_kind;
    if (limit->busy || (!first && at_ms <= now_ms))
        at_ms = now_ms + BUSY_MS;
    if (first) {
        limit->next = at_ms > now_ms ? client : NULL;
        limit->next_kind = kind;
        limit->next_until_ms = at_ms + TURN_MS;
    }
    return at_ms > now_ms ? at_ms : 0;
}

static enum github_verdict github_limit_judge(struct github_limit *limit, const void *client,
                                              const struct github_share *share,
                                              enum github_kind kind, bool write, int64_t now_ms,
                                              int64_t *out_at_ms)
{
    int64_t budget = share->budget > 0 ? share->budget : limit->most / 2, at_ms = 0;
    *out_at_ms = limit->paused_until_ms;
    if (limit->paused_until_ms > now_ms)
        return GITHUB_PAUSED;
    if (share->budget > 0 || limit->most > 0)
        at_ms = github_limit_free_at(limit, kind, /* writes= */ false, budget, now_ms);
    int64_t write_at_ms =
        write ? github_limit_free_at(limit, kind, /* writes= */ true, share->writes, now_ms) : 0;
    *out_at_ms = at_ms > write_at_ms ? at_ms : write_at_ms;
    if (*out_at_ms != 0)
        return GITHUB_SHORT;
    if (write)
        *out_at_ms = github_limit_turn(limit, client, kind, share->pace_ms, now_ms);
    return *out_at_ms != 0 ? GITHUB_WAIT : GITHUB_SEND;
}

enum github_verdict github_limit_begin(struct github_limit *limit, const void *client,
                                       const struct github_share *share, enum github_kind kind,
                                       bool write, int64_t *out_at_ms)
{
    (void)pthread_mutex_lock(&github_limits_lock);
    int64_t now_ms = host_boot_ms();
    enum github_verdict verdict =
        github_limit_judge(limit, client, share, kind, write, now_ms, out_at_ms);
    if (verdict == GITHUB_SEND) {
        struct github_minute *minute = github_limit_minute(limit, now_ms);
        minute->sent[kind]++;
        minute->writes += write ? 1 : 0;
        limit->busy = limit->busy || write;
        limit->wrote_ms = write ? now_ms : limit->wrote_ms;
    }
    (void)pthread_mutex_unlock(&github_limits_lock);
    return verdict;
}

/* ---- replies ---- */

/* −1: there is none. */
static int64_t github_header_number(const struct json_reply *reply, const char *name)
{
    const char *value = http_header(reply->response, name, /* index= */ 0);
    char *end = NULL;
    long long number = value != NULL ? strtoll(value, &end, 10) : -1;
    return end != value && number >= 0 && number <= number_max ? number : -1;
}

/* Until the server's limit starts again, if it is used up; otherwise −1. */
static int64_t github_reply_reset_ms(const struct json_reply *reply)
{
    int64_t reset_s = github_header_number(reply, "x-ratelimit-reset");
    int64_t now_ms = reply->now_ms != TIME_UNKNOWN ? reply->now_ms : host_wall_ms();
    if (reset_s < 0 || github_header_number(reply, "x-ratelimit-remaining") != 0)
        return -1;
    return reset_s * 1000 > now_ms ? reset_s * 1000 - now_ms + PAUSE_LEAST_MS : 0;
}

/* Search and other parts of the API have limits of their own. */
static void github_limit_learn(struct github_limit *limit, const struct json_reply *reply)
{
    const char *part = http_header(reply->response, "x-ratelimit-resource", /* index= */ 0);
    int64_t most = github_header_number(reply, "x-ratelimit-limit");
    int64_t interval_s = github_header_number(reply, "x-poll-interval");
    if (interval_s >= 0)
        limit->poll_interval_ms =
            interval_s < PAUSE_MAX_MS / 1000 ? interval_s * 1000 : PAUSE_MAX_MS;
    if (most < 0 || (part != NULL && strcmp(part, "core") != 0))
        return;
    limit->most = most;
    limit->left = github_header_number(reply, "x-ratelimit-remaining");
    limit->reset_s = github_header_number(reply, "x-ratelimit-reset");
}

/* The pause that the reply requests; 0: none. */
static int64_t github_limit_pause_ms(struct github_limit *limit, const struct json_reply *reply)
{
    const char *message = json_string_value(json_object_get(reply->json, "message"));
    bool says_so = message != NULL && (strcasestr(message, "rate limit") != NULL ||
                                       strcasestr(message, "abuse detection") != NULL);
    int64_t asked_ms = reply->response->retry_after_ms, reset_ms = github_reply_reset_ms(reply);
    if (reply->status != 429 && reply->status != 403)
        return reset_ms > 0 && limit->left == 0 ? reset_ms : 0;
    int64_t pause_ms = asked_ms > reset_ms ? asked_ms : reset_ms;
    if (pause_ms < 0 && (reply->status == 429 || says_so)) {
        pause_ms = limit->secondary_ms > 0 ? 2 * limit->secondary_ms : SECONDARY_MS;
        limit->secondary_ms = pause_ms < SECONDARY_MAX_MS ? pause_ms : SECONDARY_MAX_MS;
        pause_ms = limit->secondary_ms;
    }
    if (pause_ms < 0)
        return 0;
    return pause_ms > PAUSE_LEAST_MS ? pause_ms : PAUSE_LEAST_MS;
}

bool github_limit_end(struct github_limit *limit, bool write, const struct json_reply *reply,
                      int64_t *out_at_ms)
{
    int64_t pause_ms = 0;
    (void)pthread_mutex_lock(&github_limits_lock);
    int64_t now_ms = host_boot_ms();
    limit->busy = limit->busy && !write;
    if (reply != NULL && reply->status != 0) {
        github_limit_learn(limit, reply);
        pause_ms = github_limit_pause_ms(limit, reply);
        if (pause_ms > PAUSE_MAX_MS)
            pause_ms = PAUSE_MAX_MS;
        if (pause_ms > 0 && limit->paused_until_ms < now_ms + pause_ms)
            limit->paused_until_ms = now_ms + pause_ms;
        if (reply->status < 400)
            limit->secondary_ms = 0;
        if (reply->status == 304)
            github_limit_minute(limit, now_ms)->unchanged++;
    }
    *out_at_ms = limit->paused_until_ms;
    (void)pthread_mutex_unlock(&github_limits_lock);
    return pause_ms > 0 && reply->status >= 400;
}

void github_limit_usage(struct github_limit *limit, struct github_usage *out)
{
    (void)pthread_mutex_lock(&github_limits_lock);
    int64_t now_ms = host_boot_ms(), first = now_ms / MINUTE_MS - MINUTES + 1;
    *out = (struct github_usage){.limit = limit->most,
                                 .left = limit->left,
                                 .reset_s = limit->reset_s,
                                 .poll_interval_ms = limit->poll_interval_ms};
    if (limit->paused_until_ms > now_ms)
        out->paused_ms = limit->paused_until_ms - now_ms;
    for (size_t i = 0; i < MINUTES; i++) {
        const struct github_minute *minute = &limit->minutes[i];
        for (size_t kind = 0; kind < GITHUB_KINDS && minute->number >= first; kind++)
            out->sent[kind] += minute->sent[kind];
        out->writes += minute->number >= first ? minute->writes : 0;
    }
    (void)pthread_mutex_unlock(&github_limits_lock);
}
