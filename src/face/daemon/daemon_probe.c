/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does the store answer? One read of a key that nobody holds, shared by all who ask meanwhile; its
 * result is good for a second. Nothing is read while nobody asks.
 */
#include "face/daemon/daemon_internal.h"

#include "base/text.h"
#include "process/host.h"

enum { PROBE_FRESH_MS = 1000, PROBE_TIMEOUT_MS = 2000 };

#define PROBE_KEY      "leasehold-readiness"
#define PROBE_DRAINING "draining: the daemon is stopping"

static void probe_answer(const struct daemon *daemon, struct probe_waiter *waiter)
{
    waiter->waits = false;
    if (daemon->draining)
        waiter->done(waiter->user, /* up= */ false, PROBE_DRAINING);
    else
        waiter->done(waiter->user, !daemon->probe.down, daemon->probe.why);
}

static void probe_finish(struct daemon *daemon, bool up, const char *why)
{
    struct daemon_probe *probe = &daemon->probe;
    struct text text;
    text_init(&text, probe->why, sizeof probe->why);
    text_add_clean(&text, why, strlen(why));
    probe->known = true;
    probe->down = !up;
    probe->at_ms = host_boot_ms();
    poller_call_at(daemon->poller, &probe->deadline, POLLER_NEVER);
    for (struct list_node *node; (node = list_pop(&probe->waiters)) != NULL;)
        probe_answer(daemon, LIST_ENTRY(node, struct probe_waiter, node));
}

static void probe_on_deadline(void *owner)
{
    probe_finish(owner, /* up= */ false, "unavailable: the store did not reply within 2 s");
}

static bool probe_on_view(void *user, const struct lh_view *view)
{
    (void)user;
    (void)view;
    return false;
}

static void probe_on_done(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct daemon *daemon = user;
    bool up = report->outcome == LH_OK;
    (void)lease;
    daemon->calls--;
    daemon->probe.in_flight = false;
    probe_finish(daemon, up, up ? "ok" : report->text);
}

/* A read that is still in flight after its deadline serves those who ask next. */
static void probe_start(struct daemon *daemon)
{
    struct daemon_probe *probe = &daemon->probe;
    struct lh_report report = LH_REPORT_INIT;
    if (probe->deadline.at_ms == POLLER_NEVER || probe->deadline.due == NULL) {
        probe->deadline.due = probe_on_deadline;
        probe->deadline.owner = daemon;
        poller_call_at(daemon->poller, &probe->deadline, host_boot_ms() + PROBE_TIMEOUT_MS);
    }
    if (probe->in_flight)
        return;
    if (lh_status_details_start(daemon->client, PROBE_KEY, probe_on_view, probe_on_done, daemon,
                                &report) != LH_OK) {
        probe_finish(daemon, /* up= */ false, report.text);
        return;
    }
    probe->in_flight = true;
    daemon->calls++;
    daemon_turn(daemon);
}

static bool probe_is_fresh(const struct daemon_probe *probe)
{
    return probe->known && host_boot_ms() - probe->at_ms < PROBE_FRESH_MS;
}

void probe_ask(struct daemon *daemon, struct probe_waiter *waiter)
{
    struct daemon_probe *probe = &daemon->probe;
    if (daemon->draining || probe_is_fresh(probe)) {
        probe_answer(daemon, waiter);
        return;
    }
    waiter->waits = true;
    list_append(&probe->waiters, &waiter->node);
    probe_start(daemon);
}

void probe_cancel(struct daemon *daemon, struct probe_waiter *waiter)
{
    if (waiter->waits)
        list_remove(&daemon->probe.waiters, &waiter->node);
    waiter->waits = false;
}

void probe_refresh(struct daemon *daemon)
{
    if (!daemon->draining && !probe_is_fresh(&daemon->probe) && !daemon->probe.in_flight)
        probe_start(daemon);
}

void probe_end(struct daemon *daemon)
{
    if (daemon->probe.deadline.poller != NULL)
        poller_call_at(daemon->poller, &daemon->probe.deadline, POLLER_NEVER);
}
