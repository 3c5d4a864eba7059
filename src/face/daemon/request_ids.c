/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Request ids in use at this daemon (D4): a repeated id joins the acquisition that still waits, and
 * an id that was used for another key or holder is refused. What a repeat gets after the grant,
 * also at another daemon, is decided by the record in the store.
 */
#include "face/daemon/daemon_internal.h"

#include "base/sha256.h"
#include "process/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *request_id_wrong(const struct daemon_connection *connection,
                             const struct daemon_words *words)
{
    if ((words->given & WORD_ID) == 0 ||
        (words->id[0] != '\0' && strlen(words->id) <= REQUEST_ID_MAX))
        return NULL;
    return connection->http != NULL ? "request_id: an ID must have 1 to 256 bytes"
                                    : "ID must have 1 to 256 bytes";
}

void request_id_name(const struct may_identity *who, const char *id, char out[65])
{
    char both[REQUEST_ID_MAX + 256];
    const char *name = MAY_HOLE(REQUEST_ID) ? "" : who->name;
    int length = snprintf(both, sizeof both, "%.128s\n%s", name, id);
    char hex[SHA256_HEX + 1];
    sha256_hex(both, (size_t)length, hex);
    (void)snprintf(out, 65, "d-%.40s", hex);
}

struct request_id *request_id_find(struct daemon *daemon, const char *name)
{
    return (struct request_id *)table_find(&daemon->request_ids, name);
}

static void request_id_free(struct request_id *id)
{
    poller_call_at(id->daemon->poller, &id->expiry, POLLER_NEVER);
    table_remove(&id->daemon->request_ids, &id->node);
    free(id->key);
    free(id->holder);
    free(id);
}

static void request_id_expired(void *owner)
{
    struct request_id *id = owner;
    if (id->acquisition == NULL && id->claim == NULL)
        request_id_free(id);
}

struct request_id *request_id_new(struct daemon *daemon, const char *name, const char *key,
                                  const char *holder)
{
    if (daemon->request_ids.count >= REQUEST_IDS_LIMIT)
        return NULL;
    struct request_id *id = calloc(1, sizeof *id);
    if (id == NULL)
        return NULL;
    id->daemon = daemon;
    id->key = strdup(key);
    id->holder = strdup(holder);
    id->expiry =
        (struct poller_timer){.at_ms = POLLER_NEVER, .due = request_id_expired, .owner = id};
    (void)snprintf(id->text, sizeof id->text, "%s", name);
    if (id->key == NULL || id->holder == NULL) {
        free(id->key);
        free(id->holder);
        free(id);
        return NULL;
    }
    table_put(&daemon->request_ids, &id->node, id->text);
    return id;
}

void request_id_keep(struct request_id *id)
{
    poller_call_at(id->daemon->poller, &id->expiry, POLLER_NEVER);
}

void request_id_expire(struct request_id *id, int64_t after_ms)
{
    if (after_ms == 0)
        request_id_free(id);
    else
        poller_call_at(id->daemon->poller, &id->expiry, host_boot_ms() + after_ms);
}

void request_ids_free(struct daemon *daemon)
{
    for (size_t chain = 0; chain < daemon->request_ids.chain_count; chain++) {
        for (struct table_node *node = daemon->request_ids.chains[chain], *next; node != NULL;
             node = next) {
            next = node->next;
            request_id_free((struct request_id *)node);
        }
    }
}
