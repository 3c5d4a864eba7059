/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The orderly end of the daemon, which a signal begins: no new connections and grants, and waits
 * and watches end. A connection ends after its last reply. One with bound grants stays, and the
 * daemon renews them, until its client closes it, for 10 s at most. Must not release a grant: what
 * is left then lives by its TTL (D1).
 */
#include "face/daemon/daemon_internal.h"

#include "base/text.h"
#include "process/host.h"

#include <stdio.h>

enum {
    DRAIN_MS = 10000,
    DRAIN_REVIEW_MS = 20,
    DRAIN_READ_MS = 500,   /* then a peer that always sends more is not read any longer */
    DRAIN_LINGER_MS = 250, /* for peers to read their last reply and close */
    DRAIN_RETRY_MS = 1000, /* about a restart */
};

/* ---- refusals ---- */

void drain_report(struct lh_report *out)
{
    *out = (struct lh_report)LH_REPORT_INIT;
    out->outcome = LH_UNAVAILABLE;
    out->refusal = lh_refusal_word(LH_VERB_ACQUIRE, LH_UNAVAILABLE);
    out->retry_after_ms = DRAIN_RETRY_MS;
    text_copy(out->text, sizeof out->text, "unavailable: the daemon is stopping; try another one");
}

bool drain_refuses(struct daemon_slot *slot)
{
    struct lh_report report;
    if (!slot->daemon->draining)
        return false;
    drain_report(&report);
    if (slot->connection != NULL)
        connection_refused(slot->connection, REFUSED_DRAINING, report.text);
    slot_reply_report(slot, &report);
    return true;
}

/* ---- the end of connections ---- */

static bool drain_is_idle(const struct daemon_connection *connection)
{
    return connection->slot_count == 0 && connection->acquisitions.first == NULL &&
           connection->bindings.first == NULL;
}

/* Commands behind the last reply start in the next turn, so a connection ends at the second review
 * that finds it idle. True if it must still go on. */
static bool drain_review_connection(struct daemon_connection *connection, bool reads)
{
    bool idle = drain_is_idle(connection), was_idle = connection->idle;
    bool unused = connection->acquisitions.first == NULL && connection->bindings.first == NULL;
    connection->idle = idle;
    if (!connection->ending && ((idle && was_idle) || (unused && !reads)))
        connection_end_after_replies(connection);
    return !idle;
}

/* Returns how many must still go on. */
static size_t drain_review_connections(struct daemon *daemon, int64_t now_ms)
{
    bool reads = now_ms < daemon->drain_until_ms - DRAIN_MS + DRAIN_READ_MS;
    size_t active = 0;
    for (struct list_node *node = daemon->connections.first; node != NULL; node = node->next)
        active += drain_review_connection(LIST_ENTRY(node, struct daemon_connection, node), reads)
                      ? 1
                      : 0;
    return active;
}

static void drain_finish(struct daemon *daemon, const char *why)
{
    char text[160];
    (void)snprintf(text, sizeof text, "%s; bound grants left to their TTL: %zu", why,
                   daemon->bindings.count);
    daemon_log(daemon, DAEMON_INFO, "drained", text);
    daemon->stopping = true;
}

static void drain_on_review(void *owner)
{
    struct daemon *daemon = owner;
    int64_t now_ms = host_boot_ms();
    if (drain_review_connections(daemon, now_ms) > 0)
        daemon->drain_linger_ms = now_ms + DRAIN_LINGER_MS;
    if (daemon->connections.first == NULL)
        drain_finish(daemon, "all connections have ended");
    else if (now_ms >= daemon->drain_until_ms)
        drain_finish(daemon, "10 s have passed");
    else if (now_ms >= daemon->drain_linger_ms)
        drain_finish(daemon, "all replies were sent");
    else
        poller_call_at(daemon->poller, &daemon->drain_timer, now_ms + DRAIN_REVIEW_MS);
}

/* ---- life ---- */

void drain_begin(struct daemon *daemon)
{
    int64_t now_ms = host_boot_ms();
    daemon->draining = true;
    daemon->drain_until_ms = now_ms + DRAIN_MS;
    daemon->drain_linger_ms = now_ms + DRAIN_LINGER_MS;
    daemon->drain_timer = (struct poller_timer){.due = drain_on_review, .owner = daemon};
    listener_free(&daemon->tcp);
    listener_free(&daemon->local);
    /* HTTP still accepts: /readyz says that the daemon drains. */
    acquisitions_drain(daemon);
    for (struct list_node *node = daemon->connections.first; node != NULL; node = node->next)
        watches_drain(LIST_ENTRY(node, struct daemon_connection, node));
    poller_call_at(daemon->poller, &daemon->drain_timer, now_ms + DRAIN_REVIEW_MS);
}

void drain_done(struct daemon *daemon)
{
    if (daemon->draining)
        poller_call_at(daemon->poller, &daemon->drain_timer, POLLER_NEVER);
}
