/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log, and what it says of refusals: one line per class and second at most, whatever clients
 * do. A line has the number of refusals that it stands for; a last one follows if some were not
 * written. Texts are ours: no key, no secret, and of a client's bytes only the name of an unknown
 * command.
 */
#include "face/daemon/daemon_internal.h"

#include "base/check.h"
#include "process/host.h"

enum { REFUSALS_PAUSE_MS = 1000 };

struct refusal_class {
    const char *name, *event;
    enum daemon_level level;
};

static const struct refusal_class classes[REFUSAL_CLASSES] = {
    [REFUSED_PROTOCOL] = {"protocol_error", "refused", DAEMON_WARNING},
    [REFUSED_COMMAND] = {"bad_command", "refused", DAEMON_WARNING},
    [REFUSED_NOT_AUTHENTICATED] = {"not_authenticated", "refused", DAEMON_WARNING},
    [REFUSED_CREDENTIAL] = {"wrong_credential", "refused", DAEMON_WARNING},
    [REFUSED_NOT_PERMITTED] = {"not_permitted", "refused", DAEMON_WARNING},
    [REFUSED_CONNECTION] = {"too_many_connections", "refused", DAEMON_WARNING},
    [REFUSED_SLOW_CLIENT] = {"slow_client", "connection_cut", DAEMON_WARNING},
    [REFUSED_LIMIT] = {"limit_exceeded", "refused", DAEMON_WARNING},
    [REFUSED_TLS] = {"tls_handshake", "connection_cut", DAEMON_WARNING},
    [REFUSED_HTTP] = {"bad_http_request", "refused", DAEMON_WARNING},
    [REFUSED_DRAINING] = {"draining", "refused", DAEMON_INFO},
};

void daemon_log(const struct daemon *daemon, enum daemon_level level, const char *event,
                const char *text)
{
    struct daemon_line line = {.level = level, .event = event, .text = text};
    daemon->options->log(daemon->options->user, &line);
}

const char *refusal_class_name(enum daemon_refusal_class class)
{
    return class < REFUSAL_CLASSES ? classes[class].name : "unknown";
}

/* The line stands for all that were not written, and `more`. */
static void refusals_write(struct daemon *daemon, enum daemon_refusal_class class, uint64_t more,
                           struct daemon_line line)
{
    struct daemon_refusals *refusals = &daemon->refusals[class];
    line.level = classes[class].level;
    line.event = classes[class].event;
    line.class = classes[class].name;
    line.count = refusals->unwritten + more;
    refusals->unwritten = 0;
    refusals->quiet_until_ms = host_boot_ms() + REFUSALS_PAUSE_MS;
    daemon->options->log(daemon->options->user, &line);
}

/* Writes the last lines of classes whose pause is over, and waits for that of the others. */
static void refusals_on_due(void *owner)
{
    struct daemon *daemon = owner;
    int64_t now_ms = host_boot_ms(), next_ms = POLLER_NEVER;
    for (unsigned class = 0; class < REFUSAL_CLASSES; class ++) {
        const struct daemon_refusals *refusals = &daemon->refusals[class];
        if (refusals->unwritten == 0)
            continue;
        if (now_ms >= refusals->quiet_until_ms)
            refusals_write(daemon, class, /* more= */ 0,
                           (struct daemon_line){.text = "further ones of this class"});
        else if (refusals->quiet_until_ms < next_ms)
            next_ms = refusals->quiet_until_ms;
    }
    poller_call_at(daemon->poller, &daemon->refusals_timer, next_ms);
}

void daemon_refused(struct daemon *daemon, enum daemon_refusal_class class, const char *peer,
                    const char *identity, const char *text)
{
    ASSERT(class < REFUSAL_CLASSES);
    struct daemon_refusals *refusals = &daemon->refusals[class];
    refusals->count++;
    if (host_boot_ms() >= refusals->quiet_until_ms) {
        refusals_write(daemon, class, /* more= */ 1,
                       (struct daemon_line){.peer = peer, .identity = identity, .text = text});
        return;
    }
    refusals->unwritten++;
    daemon->refusals_timer.due = refusals_on_due;
    daemon->refusals_timer.owner = daemon;
    if (refusals->unwritten == 1 && (daemon->refusals_timer.poller == NULL ||
                                     refusals->quiet_until_ms < daemon->refusals_timer.at_ms))
        poller_call_at(daemon->poller, &daemon->refusals_timer, refusals->quiet_until_ms);
}

void connection_refused(struct daemon_connection *connection, enum daemon_refusal_class class,
                        const char *text)
{
    daemon_refused(connection->daemon, class, stream_name(connection->stream),
                   connection->who->name, text);
}

uint64_t refusals_of_commands(const struct daemon *daemon)
{
    return daemon->refusals[REFUSED_PROTOCOL].count + daemon->refusals[REFUSED_COMMAND].count +
           daemon->refusals[REFUSED_NOT_AUTHENTICATED].count +
           daemon->refusals[REFUSED_CREDENTIAL].count +
           daemon->refusals[REFUSED_NOT_PERMITTED].count;
}

void daemon_log_done(struct daemon *daemon)
{
    for (unsigned class = 0; class < REFUSAL_CLASSES; class ++)
        daemon->refusals[class].quiet_until_ms = 0;
    if (daemon->refusals_timer.poller != NULL)
        refusals_on_due(daemon);
}
