/* SPDX-License-Identifier: Apache-2.0 */
/* See redis_probe.h. */
#include "store/redis/redis_probe.h"

#include "process/host.h"
#include "store/redis/redis_connection.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

struct redis_probe {
    struct poller *poller;
    struct redis_url url;
    struct credentials credentials;
    struct redis_conn conn;
    struct conn_call call;
    int64_t timeout_ms;
    bool ready, over, answered, refused;
    struct text text; /* of the reply */
    char reply[REDIS_PROBE_REPLY_MAX];
};

static void on_redis_probe_ready(void *owner)
{
    struct redis_probe *probe = owner;
    probe->ready = true;
}

static void redis_probe_set_reply(struct redis_probe *probe, const char *bytes, size_t length)
{
    text_init(&probe->text, probe->reply, sizeof probe->reply);
    text_add_bytes(&probe->text, bytes, length);
}

static void on_redis_probe_lost(void *owner, const struct conn_error *error)
{
    struct redis_probe *probe = owner;
    if (!probe->over)
        redis_probe_set_reply(probe, error->why, strlen(error->why));
    probe->over = true;
}

static bool on_redis_probe_pushed(void *owner, struct resp_walk *walk, size_t count)
{
    (void)owner, (void)walk, (void)count;
    return true;
}

static void on_redis_probe_reply(struct conn_call *call, const struct resp_item *item,
                                 struct resp_walk *walk, const struct conn_error *error)
{
    struct redis_probe *probe =
        (struct redis_probe *)(void *)((char *)call - offsetof(struct redis_probe, call));
    struct resp_item inner;
    if (error != NULL)
        return; /* the loss is reported separately */
    probe->answered = true;
    probe->refused = item->kind == RESP_ERROR;
    redis_probe_set_reply(probe, item->text,
                          item->kind == RESP_TEXT || probe->refused ? item->length : 0);
    while (resp_next(walk, &inner)) {
        if (inner.kind != RESP_TEXT)
            continue;
        text_add_bytes(&probe->text, inner.text, inner.length);
        text_add(&probe->text, "\n");
    }
}

/* Waits until `what` is true, the server is gone, or the timeout ends. */
static bool redis_probe_await(struct redis_probe *probe, const bool *what)
{
    int64_t end_ms = host_boot_ms() + probe->timeout_ms;
    struct pollfd news = {.fd = poller_fd(probe->poller), .events = POLLIN};
    for (;;) {
        poller_step(probe->poller);
        int64_t left_ms = end_ms - host_boot_ms();
        if (*what || probe->over || left_ms <= 0)
            return *what;
        (void)poll(&news, 1, (int)left_ms);
    }
}

static void redis_probe_explain(const struct redis_probe *probe, struct text *why)
{
    text_add(why, probe->over || probe->refused ? probe->reply : "it does not reply");
}

struct redis_probe *redis_probe_new(const char *url, int64_t timeout_ms, struct text *why)
{
    struct redis_probe *probe = calloc(1, sizeof *probe);
    struct conn_callbacks callbacks = {.ready = on_redis_probe_ready,
                                       .lost = on_redis_probe_lost,
                                       .pushed = on_redis_probe_pushed,
                                       .owner = probe};
    if (probe == NULL) {
        text_add(why, "out of memory");
        return NULL;
    }
    probe->timeout_ms = timeout_ms;
    probe->call.reply = on_redis_probe_reply;
    if (!redis_url_read(url, &probe->url, why))
        goto out;
    probe->poller = poller_new();
    if (probe->poller == NULL) {
        text_add(why, "out of memory or descriptors");
        goto out;
    }
    if (!credentials_init(&probe->credentials, &probe->url, probe->poller, why)) {
        poller_free(&probe->poller);
        goto out;
    }
    conn_init(&probe->conn, probe->poller, &probe->url, &probe->credentials, &callbacks,
              /* seed= */ 1);
    probe->conn.timeout_ms = timeout_ms;
    conn_open(&probe->conn);
    if (redis_probe_await(probe, &probe->ready))
        return probe;
    redis_probe_explain(probe, why);
out:
    redis_probe_free(&probe);
    return NULL;
}

void redis_probe_free(struct redis_probe **probe)
{
    if (*probe == NULL)
        return;
    if ((*probe)->poller != NULL) {
        conn_done(&(*probe)->conn);
        credentials_done(&(*probe)->credentials);
        poller_free(&(*probe)->poller);
    }
    free(*probe);
    *probe = NULL;
}

const char *redis_probe_query(struct redis_probe *probe, const char *first, const char *second,
                              const char *third, struct text *why)
{
    probe->answered = probe->refused = false;
    if (!probe->over) {
        conn_begin(&probe->conn, &probe->call, second == NULL ? 1 : third == NULL ? 2 : 3);
        conn_arg(&probe->conn, first);
        if (second != NULL)
            conn_arg(&probe->conn, second);
        if (third != NULL)
            conn_arg(&probe->conn, third);
        stream_flush(probe->conn.stream);
    }
    if (!probe->over && redis_probe_await(probe, &probe->answered) && !probe->refused)
        return probe->reply;
    redis_probe_explain(probe, why);
    probe->over = probe->over || !probe->answered; /* a late reply would be the next one's */
    return NULL;
}

bool redis_probe_value(const char *reply, const char *name, char *out, size_t size)
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
