/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The diagnosis of a Redis server: whether it answers and permits what we need, and which of its
 * settings weaken a lock (docs/guarantees.md). Writes nothing.
 */
#include "store/redis/redis_internal.h"

#include "process/host.h"
#include "store/admin.h"
#include "wire/duration.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SMALLEST_USER "docs/redis-store.md has the smallest user"

enum {
    PROBE_TIMEOUT_MS = 3000,
    REPLY_MAX = 32 * 1024,
    TEXT_SIZE = 256,
    OLDEST = 7,
    CLOCKS_APART_MS = 2000,
    VALUE = 64,
};

/* ---- the connection ---- */

/* Queries the server through the driver's own connection, which finds it in a cluster and behind
 * Sentinels, too. */
struct redis_probe {
    struct redis redis;
    struct conn_call call;
    int64_t timeout_ms;
    bool answered, refused;
    struct text text; /* of the reply */
    char reply[REPLY_MAX];
};

static void redis_probe_set_reply(struct redis_probe *probe, const char *bytes, size_t length)
{
    text_init(&probe->text, probe->reply, sizeof probe->reply);
    text_add_bytes(&probe->text, bytes, length);
}

static void on_redis_probe_reply(struct conn_call *call, const struct resp_item *item,
                                 struct resp_walk *walk, const struct conn_error *error)
{
    struct redis_probe *probe =
        (struct redis_probe *)(void *)((char *)call - offsetof(struct redis_probe, call));
    struct resp_item inner;
    probe->answered = true;
    probe->refused = error != NULL || item->kind == RESP_ERROR;
    if (error != NULL) {
        redis_probe_set_reply(probe, error->why, strlen(error->why));
        return;
    }
    redis_probe_set_reply(probe, item->text,
                          item->kind == RESP_TEXT || probe->refused ? item->length : 0);
    while (resp_next(walk, &inner)) {
        if (inner.kind != RESP_TEXT)
            continue;
        text_add_bytes(&probe->text, inner.text, inner.length);
        text_add(&probe->text, "\n");
    }
}

/* Steps until the reply has arrived, or without a request until the connection is open; false if it
 * is lost, or the timeout ends. */
static bool redis_probe_await(struct redis_probe *probe, bool request)
{
    const struct redis_conn *conn = &probe->redis.main.conn;
    int64_t end_ms = host_boot_ms() + probe->timeout_ms;
    struct pollfd news = {.fd = redis_driver.fd(&probe->redis), .events = POLLIN};
    for (;;) {
        redis_driver.step(&probe->redis);
        int64_t left_ms = end_ms - host_boot_ms();
        if (request ? probe->answered : conn->state == CONN_READY)
            return true;
        if (conn->state == CONN_IDLE || left_ms <= 0)
            return false;
        (void)poll(&news, 1, (int)left_ms);
    }
}

/* Sends a command; NULL ends its words. Returns the reply, the elements of a list in lines; NULL,
 * with `why`, if the server refuses, is gone or does not reply. */
static const char *redis_probe_query(struct redis_probe *probe, const char *const *words,
                                     struct text *why)
{
    struct redis_conn *conn = &probe->redis.main.conn;
    probe->answered = false;
    conn_open(conn); /* after the loss that an earlier query reported */
    if (redis_probe_await(probe, /* request= */ false)) {
        (void)conn_send(conn, &probe->call, words);
        stream_flush(conn->stream);
        if (!redis_probe_await(probe, /* request= */ true)) /* a late reply is the next one's */
            conn_abort(conn, REPLY_TROUBLE, "it does not reply");
    }
    if (probe->answered && !probe->refused)
        return probe->reply;
    text_add(why, probe->answered            ? probe->reply
                  : conn->state == CONN_IDLE ? conn->why
                                             : "it does not reply");
    return NULL;
}

/* The value of a "name:value" line, as in INFO; false if it is missing. */
static bool redis_probe_value(const char *reply, const char *name, char *out, size_t size)
{
    size_t length = strlen(name);
    for (const char *line = reply; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n' ? 1 : 0;
        if (strncmp(line, name, length) != 0 || line[length] != ':')
            continue;
        const char *value = line + length + 1;
        size_t count = strcspn(value, "\r\n");
        count = count < size ? count : size - 1;
        memcpy(out, value, count);
        out[count] = '\0';
        return true;
    }
    return false;
}

/* ---- the checks ---- */

static void redis_check_version(const struct diagnosis *diagnosis, const char *info)
{
    char version[VALUE] = "", own[VALUE] = "";
    bool valkey = redis_probe_value(info, "valkey_version", own, sizeof own);
    (void)redis_probe_value(info, "redis_version", version, sizeof version);
    if (strtol(version, NULL, 10) < OLDEST)
        diagnosis_report(diagnosis, FINDING_WARNING, "version", "use Redis 7 or Valkey 8",
                         "the server is Redis %s, which is not tested", version);
    else
        diagnosis_report(diagnosis, FINDING_OK, "version", NULL, "the server is %s %s",
                         valkey ? "Valkey" : "Redis", valkey ? own : version);
}

static void redis_check_memory(const struct diagnosis *diagnosis, const char *info)
{
    char max[VALUE] = "0", policy[VALUE] = "";
    (void)redis_probe_value(info, "maxmemory", max, sizeof max);
    (void)redis_probe_value(info, "maxmemory_policy", policy, sizeof policy);
    if (strcmp(policy, "noeviction") == 0)
        diagnosis_report(diagnosis, FINDING_OK, "memory", NULL,
                         "nothing is evicted when memory is full");
    else
        diagnosis_report(diagnosis, FINDING_WARNING, "memory", "set maxmemory-policy to noeviction",
                         "maxmemory-policy is %s%s: locks are evicted when memory is full, while "
                         "their holders work",
                         policy, strcmp(max, "0") == 0 ? ", without a limit yet" : "");
}

static void redis_check_persistence(const struct diagnosis *diagnosis, struct redis_probe *probe,
                                    const char *info)
{
    static const char *const ask[] = {"CONFIG", "GET", "appendfsync", NULL};
    char on[VALUE] = "", sync[VALUE] = "", message[TEXT_SIZE];
    struct text why;
    (void)redis_probe_value(info, "aof_enabled", on, sizeof on);
    if (strcmp(on, "1") != 0) {
        diagnosis_report(
            diagnosis, FINDING_WARNING, "persistence",
            "set appendonly to yes and appendfsync to always",
            "appendonly is no: a crash of the server frees every lock, and forgets every id");
        return;
    }
    text_init(&why, message, sizeof message);
    const char *reply = redis_probe_query(probe, ask, &why);
    const char *value = reply != NULL ? strchr(reply, '\n') : NULL;
    if (value != NULL)
        (void)snprintf(sync, sizeof sync, "%.*s", (int)strcspn(value + 1, "\n"), value + 1);
    if (value == NULL)
        diagnosis_report(diagnosis, FINDING_WARNING, "persistence", NULL,
                         "whether appendfsync is always cannot be asked: %s", message);
    else if (strcmp(sync, "always") == 0)
        diagnosis_report(diagnosis, FINDING_OK, "persistence", NULL,
                         "what is answered is on the disk before (appendfsync always)");
    else
        diagnosis_report(
            diagnosis, FINDING_WARNING, "persistence", "set appendfsync to always",
            "appendfsync is %s: with the power, locks that were granted shortly before are "
            "lost",
            sync);
}

static void redis_check_replication(const struct diagnosis *diagnosis, const char *info)
{
    char role[VALUE] = "", count[VALUE] = "0";
    (void)redis_probe_value(info, "role", role, sizeof role);
    (void)redis_probe_value(info, "connected_slaves", count, sizeof count);
    if (strcmp(role, "slave") == 0)
        diagnosis_report(diagnosis, FINDING_PROBLEM, "replicas",
                         "name the master, or its Sentinels",
                         "the server is a replica, which takes no locks");
    else if (strcmp(count, "0") != 0)
        diagnosis_report(
            diagnosis, FINDING_WARNING, "replicas",
            "let what is guarded refuse old tokens (docs/fencing.md)",
            "the server has %s replica%s: a failover can lose locks that were just granted", count,
            strcmp(count, "1") == 0 ? "" : "s");
    else
        diagnosis_report(diagnosis, FINDING_OK, "replicas", NULL,
                         "the server has no replicas, so no failover can lose a lock");
}

static void redis_check_time(const struct diagnosis *diagnosis, struct redis_probe *probe)
{
    char message[TEXT_SIZE], apart[DURATION_SHOWN];
    struct text why;
    struct timespec now = {0};
    text_init(&why, message, sizeof message);
    const char *reply = redis_probe_query(probe, (const char *[]){"TIME", NULL}, &why);
    if (reply == NULL) {
        diagnosis_report(diagnosis, FINDING_PROBLEM, "rights", SMALLEST_USER, "%s", message);
        return;
    }
    (void)clock_gettime(CLOCK_REALTIME, &now);
    char *rest = NULL;
    int64_t theirs_ms = strtoll(reply, &rest, 10) * 1000;
    theirs_ms += strtoll(rest, NULL, 10) / 1000;
    int64_t ahead_ms = theirs_ms - ((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000);
    (void)duration_show(ahead_ms < 0 ? -ahead_ms : ahead_ms, apart);
    if (ahead_ms > CLOCKS_APART_MS || ahead_ms < -CLOCKS_APART_MS)
        diagnosis_report(
            diagnosis, FINDING_WARNING, "clock", "let both follow the same time servers",
            "the server's clock is %s %s ours: when it is put right by a step, leases end "
            "too early or too late",
            apart, ahead_ms > 0 ? "ahead of" : "behind");
    else
        diagnosis_report(diagnosis, FINDING_OK, "clock", NULL, "the server's clock is ours, to %s",
                         apart);
}

static void redis_diagnose_server(const char *url, const struct diagnosis *diagnosis,
                                  struct redis_probe *probe)
{
    char message[TEXT_SIZE];
    struct text why;
    struct redis_conn *conn = &probe->redis.main.conn;
    conn_open(conn);
    if (!redis_probe_await(probe, /* request= */ false)) {
        diagnosis_report(diagnosis, FINDING_PROBLEM, "server", NULL, "%s",
                         conn->state == CONN_IDLE ? conn->why : "it does not reply");
        return;
    }
    diagnosis->check_read(diagnosis, url, SMALLEST_USER);
    redis_check_time(diagnosis, probe);
    text_init(&why, message, sizeof message);
    const char *info = redis_probe_query(probe, (const char *[]){"INFO", NULL}, &why);
    char *kept = info != NULL ? strdup(info) : NULL; /* the next query overwrites it */
    if (kept != NULL) {
        redis_check_version(diagnosis, kept);
        redis_check_memory(diagnosis, kept);
        redis_check_persistence(diagnosis, probe, kept);
        redis_check_replication(diagnosis, kept);
    } else {
        diagnosis_report(diagnosis, FINDING_WARNING, "settings",
                         "name a user that may, for doctor alone: +info +config|get",
                         "the server's settings cannot be asked: %s", message);
    }
    free(kept);
}

void redis_diagnose(const char *url, const struct diagnosis *diagnosis)
{
    char message[TEXT_SIZE];
    struct text why;
    text_init(&why, message, sizeof message);
    struct redis_probe *probe = calloc(1, sizeof *probe);
    struct store_callbacks callbacks = {.timeout_ms =
                                            diagnosis_timeout_ms(diagnosis, PROBE_TIMEOUT_MS)};
    bool opened = probe != NULL && redis_driver.open(&probe->redis, url, &callbacks, &why);
    if (opened) {
        probe->timeout_ms = callbacks.timeout_ms;
        probe->call.reply = on_redis_probe_reply;
        redis_diagnose_server(url, diagnosis, probe);
        redis_driver.close(&probe->redis);
    } else {
        const char *usage = strstr(message, "usage: "); /* for open(): here it is a finding */
        diagnosis_report(diagnosis, FINDING_PROBLEM, "server", NULL, "%s",
                         probe == NULL   ? "out of memory"
                         : usage != NULL ? usage + strlen("usage: ")
                                         : message);
    }
    free(probe);
}
