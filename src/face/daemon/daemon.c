/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of the daemon: sockets, signals, and the turn of the loop. In one turn all readable
 * connections start their commands, then the store is stepped once, then all replies are sent.
 */
#include "face/daemon/http_face.h"

#include "base/text.h"
#include "process/host.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- the turn ---- */

static void daemon_step_store(void *owner)
{
    struct daemon *daemon = owner;
    bool readable = daemon->store_readable;
    daemon->store_readable = false;
    (void)(readable ? lh_step(daemon->client) : lh_run(daemon->client));
}

void daemon_turn(struct daemon *daemon)
{
    poller_defer(daemon->poller, &daemon->turn_end);
}

static void daemon_on_released(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct daemon *daemon = user;
    (void)lease;
    (void)report;
    daemon->calls--;
}

void daemon_release(struct daemon *daemon, const char *key, uint64_t token)
{
    hold_released(daemon, hold_id(hold_key(daemon, "", key), token), LH_OK);
    if (lh_release_token_start(daemon->client, key, token, /* cooldown_ms= */ 0, daemon_on_released,
                               daemon, NULL) == LH_OK)
        daemon->calls++;
    daemon_turn(daemon);
}

static void daemon_on_store(void *owner, unsigned what)
{
    struct daemon *daemon = owner;
    (void)what;
    daemon->store_readable = true;
    daemon_turn(daemon);
}

/* ---- signals ---- */

/* Files that others replace: credentials and certificates. */
static void daemon_reload(struct daemon *daemon)
{
    auth_reload(daemon);
    daemon_reload_tls(daemon);
}

static void daemon_on_signal(void *owner, unsigned what)
{
    struct daemon *daemon = owner;
    struct signalfd_siginfo info;
    (void)what;
    if (read(daemon->signal_watch.file, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    if (info.ssi_signo == SIGHUP) {
        daemon_reload(daemon);
        return;
    }
    daemon_log(daemon, DAEMON_INFO, "stopping",
               info.ssi_signo == SIGTERM ? "received SIGTERM" : "received SIGINT");
    if (daemon->draining || daemon->stopping)
        _exit(EXIT_FAILURE); /* the second signal: grants are left to their TTL */
    drain_begin(daemon);
}

static bool daemon_watch_signals(struct daemon *daemon)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    if (!daemon->options->stdio) { /* there its parent has gone */
        (void)sigaddset(&set, SIGHUP);
        (void)signal(SIGHUP, SIG_DFL); /* nohup(1) ignores it, and it would not be received */
    }
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    daemon->signal_watch = (struct poller_watch){
        .file = signalfd(-1, &set, SFD_CLOEXEC), .ready = daemon_on_signal, .owner = daemon};
    return daemon->signal_watch.file >= 0 &&
           poller_watch(daemon->poller, &daemon->signal_watch, POLLER_READ);
}

/* ---- sockets ---- */

static void daemon_accept(struct daemon *daemon, int file, const struct listener_peer *peer,
                          enum connection_protocol protocol)
{
    const char *refusal = daemon->connection_count >= daemon->options->connections_max
                              ? "-ERR max number of connections reached; see --max-connections\r\n"
                              : auth_refusal(daemon, peer);
    struct tls_server *tls = peer->local ? NULL : daemon->tls;
    if (refusal == NULL) {
        struct daemon_connection *connection =
            connection_open(daemon, file, file, peer->address, protocol, tls);
        if (connection != NULL)
            auth_start(connection, peer);
        return;
    }
    const char *text = protocol == CONNECTION_HTTP ? http_full : refusal;
    if (tls == NULL)
        (void)send(file, text, strlen(text), MSG_NOSIGNAL);
    (void)close(file);
    daemon_refused(daemon, REFUSED_CONNECTION, peer->address, /* identity= */ NULL,
                   "too many connections, in all or of this address before AUTH, or a user without "
                   "a right to this socket");
}

static void daemon_on_accepted(void *owner, int file, const struct listener_peer *peer)
{
    daemon_accept(owner, file, peer, CONNECTION_RESP);
}

static void daemon_on_web_accepted(void *owner, int file, const struct listener_peer *peer)
{
    daemon_accept(owner, file, peer, CONNECTION_HTTP);
}

/* False with `why`. */
static bool daemon_listen_unix(struct daemon *daemon, const struct listener_callbacks *callbacks,
                               struct text *why)
{
    const char *path = daemon->options->unix_path;
    switch (listener_open_unix(daemon->poller, path, daemon->options->unix_mode, callbacks,
                               &daemon->local, why)) {
    case LISTENER_OPEN:
        return true;
    case LISTENER_IN_USE:
    case LISTENER_FAILED:
        break;
    }
    if (daemon->options->unix_required)
        return false;
    daemon_log(daemon, DAEMON_WARNING, "socket_skipped", why->bytes);
    return true;
}

/* False with `why`. */
static bool daemon_listen_web(struct daemon *daemon, struct text *why)
{
    struct listener_callbacks callbacks = {.accepted = daemon_on_web_accepted, .owner = daemon};
    daemon->http = http_face_new(daemon);
    if (daemon->http == NULL) {
        text_add(why, "out of memory");
        return false;
    }
    daemon->web = listener_open_tcp(daemon->poller, daemon->options->http_address, &callbacks, why);
    if (daemon->web != NULL)
        return auth_check_listener(daemon, daemon->web, why);
    if (daemon->options->http_required)
        return false;
    daemon_log(daemon, DAEMON_WARNING, "socket_skipped", why->bytes);
    text_clear(why);
    return true;
}

static bool daemon_listen(struct daemon *daemon, struct text *why)
{
    struct listener_callbacks callbacks = {.accepted = daemon_on_accepted, .owner = daemon};
    if (daemon->options->stdio) {
        (void)connection_open(daemon, STDIN_FILENO, STDOUT_FILENO, "stdio", CONNECTION_RESP,
                              /* tls= */ NULL);
        return true;
    }
    if (daemon->options->address != NULL) {
        daemon->tcp = listener_open_tcp(daemon->poller, daemon->options->address, &callbacks, why);
        if (daemon->tcp == NULL || !auth_check_listener(daemon, daemon->tcp, why))
            return false;
    }
    if (daemon->options->unix_path != NULL && !daemon_listen_unix(daemon, &callbacks, why))
        return false;
    if (daemon->options->http_address != NULL && !daemon_listen_web(daemon, why))
        return false;
    if (daemon->tcp != NULL || daemon->local != NULL || daemon->web != NULL)
        return true;
    text_clear(why);
    text_add(why, "no socket is open: give --listen, --http, --unix or --stdio");
    return false;
}

static void daemon_announce(struct daemon *daemon)
{
    const struct listener *all[] = {daemon->tcp, daemon->local, daemon->web};
    char addresses[1024];
    struct text text;
    text_init(&text, addresses, sizeof addresses);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i] == NULL)
            continue;
        if (text.length > 0)
            text_add(&text, "\n");
        if (all[i] == daemon->web)
            text_add(&text, daemon->tls != NULL ? "https://" : "http://");
        listener_describe(all[i], &text);
    }
    daemon->options->ready(daemon->options->user, addresses);
}

/* ---- life ---- */

static void daemon_serve(struct daemon *daemon)
{
    while (!daemon->stopping) {
        poller_wait(daemon->poller, -1);
        poller_step(daemon->poller);
    }
}

/* Grants are left to their TTL: their clients still use them (D1). */
static void daemon_cut_connections(struct daemon *daemon)
{
    listener_free(&daemon->tcp);
    listener_free(&daemon->local);
    listener_free(&daemon->web);
    while (daemon->connections.first != NULL)
        connection_end(LIST_ENTRY(daemon->connections.first, struct daemon_connection, node),
                       CONNECTION_CUT);
}

/* The library calls back for everything that was started, at the latest after its timeout. */
static void daemon_finish_calls(struct daemon *daemon)
{
    acquisitions_cancel_all(daemon);
    while (daemon->calls > 0 || daemon->acquisitions.first != NULL) {
        poller_step(daemon->poller);
        if (daemon->calls > 0 || daemon->acquisitions.first != NULL)
            poller_wait(daemon->poller, -1);
    }
}

void daemon_free(struct daemon *daemon)
{
    daemon_cut_connections(daemon);
    daemon_finish_calls(daemon);
    claims_free(daemon);
    http_face_free(daemon);
    if (daemon->store_watch.poller != NULL)
        (void)poller_watch(daemon->poller, &daemon->store_watch, 0);
    lh_close(&daemon->client);
    acquisitions_free(daemon);
    request_ids_free(daemon);
    if (daemon->signal_watch.poller != NULL)
        (void)poller_watch(daemon->poller, &daemon->signal_watch, 0);
    if (daemon->signal_watch.file > 0)
        (void)close(daemon->signal_watch.file);
    drain_done(daemon);
    daemon_log_done(daemon);
    poller_cancel_deferred(&daemon->turn_end);
    slots_free(daemon);
    holds_free(daemon);
    probe_end(daemon);
    table_done(&daemon->request_ids);
    table_done(&daemon->bindings);
    table_done(&daemon->before_auth);
    credentials_free(&daemon->credentials);
    tls_server_free(&daemon->tls);
    poller_free(&daemon->poller);
    free(daemon);
}

struct daemon *daemon_new(struct lh_client **client, const struct daemon_options *options)
{
    struct daemon *daemon = calloc(1, sizeof *daemon);
    if (daemon == NULL)
        return NULL;
    daemon->client = *client;
    *client = NULL;
    daemon->options = options;
    daemon->report = (struct lh_report)LH_REPORT_INIT;
    daemon->turn_end = (struct poller_deferred){.run = daemon_step_store, .owner = daemon};
    daemon->started_ms = host_boot_ms();
    daemon->poller = poller_new();
    /* Its replies need no waiting: a large batch costs more than it saves. */
    if (daemon->poller != NULL && options->store != NULL &&
        strncmp(options->store, "memory:", 7) == 0)
        poller_set_burst(daemon->poller, MEMORY_BURST);
    daemon->store_watch = (struct poller_watch){
        .file = lh_fd(daemon->client), .ready = daemon_on_store, .owner = daemon};
    if (daemon->poller != NULL && table_init(&daemon->request_ids) &&
        table_init(&daemon->bindings) && table_init(&daemon->before_auth) &&
        daemon->store_watch.file >= 0 &&
        poller_watch(daemon->poller, &daemon->store_watch, POLLER_READ))
        return daemon;
    daemon_free(daemon);
    return NULL;
}

/* False with a reason. */
static bool daemon_start(struct daemon *daemon, struct text *why)
{
#ifdef LH_MUTANTS
    if (daemon->options->planted != NULL && !may_plant(daemon->options->planted)) {
        TEXT_JOIN(why, "usage: ", daemon->options->planted, ": there is no such hole");
        return false;
    }
#endif
    if (!auth_load(daemon, why))
        return false;
    if (daemon_watch_signals(daemon))
        return daemon_start_tls(daemon, why) && daemon_listen(daemon, why);
    TEXT_JOIN(why, "cannot watch signals: ", strerror(errno));
    return false;
}

enum lh_outcome daemon_run(struct lh_client **client, const struct daemon_options *options,
                           struct lh_report *report)
{
    char message[LH_TEXT_SIZE] = "out of memory or descriptors";
    struct text text, why;
    struct daemon *daemon = daemon_new(client, options);
    bool started = false;
    if (daemon != NULL) {
        text_init(&why, message, sizeof message);
        started = daemon_start(daemon, &why);
    }
    bool usage = !started && strncmp(message, "usage: ", 7) == 0;
    report->outcome = started ? LH_OK : usage ? LH_USAGE : LH_FAILED;
    text_init(&text, report->text, sizeof report->text);
    TEXT_JOIN(&text, started ? "ok: stopped" : usage ? "" : "failed: ", started ? "" : message);
    if (started) {
        daemon_announce(daemon);
        daemon_serve(daemon);
    }
    if (daemon != NULL)
        daemon_free(daemon);
    return report->outcome;
}
