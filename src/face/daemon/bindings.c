/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bound grants (BIND): the daemon renews them at a third of their TTL, and releases them when the
 * peer closes its connection. A renewal here never moves the client's own deadline (D2). A grant
 * that cannot be renewed is pushed to the client as lost, at two thirds of its TTL or at once.
 */
#include "face/daemon/daemon_internal.h"

#include "base/text.h"
#include "process/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct binding {
    struct table_node by_grant;
    struct list_node node; /* of its connection */
    struct daemon *daemon;
    struct daemon_connection *connection; /* NULL: it has ended, and a renewal is in flight */
    struct poller_timer timer;
    uint64_t token, hold; /* hold_id() */
    int64_t ttl_ms, deadline_ms, sent_ms;
    bool renewing;
    char *key;
    char name[LH_KEY_SIZE + 24]; /* token and key */
};

static void binding_name(const char *key, uint64_t token, char out[LH_KEY_SIZE + 24])
{
    struct text text;
    text_init(&text, out, LH_KEY_SIZE + 24);
    text_add_u64(&text, token);
    TEXT_JOIN(&text, " ", key);
}

static void binding_free(struct binding *binding)
{
    poller_call_at(binding->daemon->poller, &binding->timer, POLLER_NEVER);
    free(binding->key);
    free(binding);
}

/* From here on nothing but a renewal in flight refers to it. */
static void binding_end(struct binding *binding)
{
    table_remove(&binding->daemon->bindings, &binding->by_grant);
    binding->connection = NULL;
    poller_call_at(binding->daemon->poller, &binding->timer, POLLER_NEVER);
    if (!binding->renewing)
        binding_free(binding);
}

static void binding_detach(struct binding *binding)
{
    list_remove(&binding->connection->bindings, &binding->node);
    binding_end(binding);
}

static void binding_push_lost(struct binding *binding, const char *text)
{
    struct resp_reply reply;
    struct daemon_connection *connection = binding->connection;
    hold_lost(binding->daemon, binding->hold);
    if (connection->protocol < 3) { /* its next renewal or release says so */
        binding_detach(binding);
        return;
    }
    reply_begin(&reply, connection->daemon, connection->protocol);
    resp_reply_push(&reply, 2);
    resp_reply_text(&reply, "lock.lost");
    resp_reply_map(&reply, 4);
    reply_pair(&reply, "outcome", "lost");
    reply_pair(&reply, "key", binding->key);
    reply_pair_token(&reply, "token", binding->token);
    reply_pair(&reply, "text", text);
    connection_push(connection, &reply);
    binding_detach(binding);
}

static void binding_on_renewed(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct binding *binding = user;
    int64_t now_ms = host_boot_ms();
    (void)lease;
    binding->renewing = false;
    binding->daemon->calls--;
    if (binding->connection == NULL) {
        binding_free(binding);
        return;
    }
    if (report->outcome == LH_OK) {
        hold_renewed(binding->daemon, binding->hold, report, binding->ttl_ms);
        binding->deadline_ms = binding->sent_ms + binding->ttl_ms * 2 / 3;
        poller_call_at(binding->daemon->poller, &binding->timer,
                       binding->sent_ms + binding->ttl_ms / 3);
    } else if (report->outcome == LH_STALE || now_ms >= binding->deadline_ms) {
        binding_push_lost(binding, report->text);
    } else {
        int64_t again_ms = now_ms + binding->ttl_ms / 20 + 1;
        poller_call_at(binding->daemon->poller, &binding->timer,
                       again_ms < binding->deadline_ms ? again_ms : binding->deadline_ms);
    }
}

/* Due for a renewal; or its deadline has passed while one is in flight. */
static void binding_on_due(void *owner)
{
    struct binding *binding = owner;
    struct daemon *daemon = binding->daemon;
    int64_t now_ms = host_boot_ms();
    if (now_ms >= binding->deadline_ms) {
        binding_push_lost(binding, "lost: the grant could not be renewed in time");
        return;
    }
    binding->renewing = true;
    binding->sent_ms = now_ms;
    if (lh_renew_start(daemon->client, binding->key, binding->token, /* ttl_ms= */ 0,
                       binding_on_renewed, binding, NULL) != LH_OK)
        binding->renewing = false;
    daemon->calls += binding->renewing ? 1 : 0;
    poller_call_at(daemon->poller, &binding->timer,
                   binding->renewing ? binding->deadline_ms : now_ms + binding->ttl_ms / 20 + 1);
    daemon_turn(daemon);
}

void binding_add(struct daemon_connection *connection, const char *key, uint64_t token,
                 int64_t ttl_ms)
{
    struct daemon *daemon = connection->daemon;
    binding_remove(daemon, key, token);
    struct binding *binding = calloc(1, sizeof *binding);
    if (binding == NULL)
        return; /* it lives by its TTL */
    binding->daemon = daemon;
    binding->connection = connection;
    binding->token = token;
    binding->ttl_ms = ttl_ms;
    binding->key = strdup(key);
    binding->timer =
        (struct poller_timer){.at_ms = POLLER_NEVER, .due = binding_on_due, .owner = binding};
    if (binding->key == NULL) {
        free(binding);
        return;
    }
    int64_t now_ms = host_boot_ms();
    binding->deadline_ms = now_ms + ttl_ms * 2 / 3;
    binding->hold = hold_id(hold_key(daemon, "", key), token);
    binding_name(key, token, binding->name);
    table_put(&daemon->bindings, &binding->by_grant, binding->name);
    list_append(&connection->bindings, &binding->node);
    poller_call_at(daemon->poller, &binding->timer, now_ms + ttl_ms / 3);
}

void binding_remove(struct daemon *daemon, const char *key, uint64_t token)
{
    char name[LH_KEY_SIZE + 24];
    if (daemon->bindings.count == 0)
        return;
    binding_name(key, token, name);
    struct binding *binding = (struct binding *)table_find(&daemon->bindings, name);
    if (binding != NULL)
        binding_detach(binding);
}

void bindings_check_rights(struct daemon_connection *connection)
{
    for (struct list_node *node = connection->bindings.first, *next; node != NULL; node = next) {
        struct binding *binding = LIST_ENTRY(node, struct binding, node);
        next = node->next;
        if (!may(connection->who, MAY_RENEW, binding->key))
            binding_push_lost(binding, "lost: the credential may no longer renew this key");
    }
}

void bindings_end(struct daemon_connection *connection, bool release)
{
    struct daemon *daemon = connection->daemon;
    int64_t now_ms = host_boot_ms();
    for (struct list_node *node; (node = list_pop(&connection->bindings)) != NULL;) {
        struct binding *binding = LIST_ENTRY(node, struct binding, node);
        /* After its deadline, for example in a daemon that was stopped, the client may have bound
         * the grant at another daemon since it closed this connection. */
        if (release && now_ms < binding->deadline_ms)
            daemon_release(daemon, binding->key, binding->token);
        binding_end(binding);
    }
}
