/* SPDX-License-Identifier: Apache-2.0 */
/* The paths that are no verbs: health, readiness, metrics, and what is served here. */
#include "face/daemon/http_face.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

void http_index(struct daemon_connection *connection, const struct httpd_request *request)
{
    static const char text[] = "leasehold: locks that one of many workers holds at a time.\n\n"
                               "POST /v1/locks/KEY/acquire  {\"holder\":\"me\",\"ttl_ms\":30000}\n"
                               "POST /v1/locks/KEY/renew    {\"token\":\"N\"}\n"
                               "POST /v1/locks/KEY/release  {\"token\":\"N\"}\n"
                               "GET  /v1/locks/KEY          /v1/locks?prefix=  /v1/watch?prefix=\n"
                               "GET  /metrics /healthz /readyz\n"
                               "GET  /openapi.json          everything else\n";
    (void)request;
    http_respond(connection, 200, "text/plain; charset=utf-8", text, sizeof text - 1, NULL);
}

/* Never asks the store: a daemon must not be restarted because its store is down. */
void http_healthz(struct daemon_connection *connection, const struct httpd_request *request)
{
    static const char json[] = "{\"outcome\":\"ok\",\"text\":\"ok: running\"}";
    (void)request;
    http_respond(connection, 200, "application/json", json, sizeof json - 1, NULL);
}

static void page_on_probed(void *user, bool up, const char *why)
{
    struct http_connection *http = user;
    struct daemon_slot *slot = http->probing;
    struct lh_report report = LH_REPORT_INIT;
    struct text text;
    http->probing = NULL;
    if (!up)
        drain_report(&report);
    text_init(&text, report.text, sizeof report.text);
    if (up)
        text_add(&text, "ok: ready");
    else if (slot->daemon->draining)
        text_add(&text, "unavailable: the daemon is stopping");
    else
        TEXT_JOIN(&text, "unavailable: the store does not answer: ", why);
    slot_reply_report(slot, &report);
}

void http_readyz(struct daemon_connection *connection, const struct httpd_request *request)
{
    struct http_connection *http = connection->http;
    (void)request;
    http->probing = connection_slot(connection);
    if (http->probing == NULL) {
        http_refuse(connection, 500, "out of memory", NULL);
        return;
    }
    http->probe = (struct probe_waiter){.done = page_on_probed, .user = http};
    probe_ask(connection->daemon, &http->probe);
}

/* The connection ends: nobody waits for the probe. */
void http_readyz_leave(struct daemon_connection *connection)
{
    struct http_connection *http = connection->http;
    if (http->probing == NULL)
        return;
    probe_cancel(connection->daemon, &http->probe);
    http->probing->unused = true;
    http->probing = NULL;
}

void http_metrics(struct daemon_connection *connection, const struct httpd_request *request)
{
    struct text text;
    (void)request;
    if (!may(connection->who, MAY_READ, "") &&
        !MAY_HOLE(METRICS)) { /* only the prefix of all keys matches "" */
        http_refuse(connection, 403, "metrics need the right to read all keys: read *", NULL);
        return;
    }
    char *bytes = malloc(DAEMON_METRICS_SIZE);
    if (bytes == NULL) {
        http_refuse(connection, 500, "out of memory", NULL);
        return;
    }
    text_init(&text, bytes, DAEMON_METRICS_SIZE);
    if (daemon_metrics_write(connection->daemon, &text))
        http_respond(connection, 200, "text/plain; version=0.0.4; charset=utf-8", bytes,
                     text.length, NULL);
    else
        http_refuse(connection, 500, "out of memory", NULL);
    free(bytes);
}
