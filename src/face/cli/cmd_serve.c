/* SPDX-License-Identifier: Apache-2.0 */
/* leasehold serve: the daemon. Translates options; src/face/daemon does the rest. */
#include "face/cli/cli.h"
#include "face/daemon/daemon.h"
#include "wire/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void serve_log(void *user, enum daemon_level level, const char *event, const char *text)
{
    static const char *const names[] = {
        [DAEMON_INFO] = "info", [DAEMON_WARNING] = "warning", [DAEMON_ERROR] = "error"};
    const struct context *context = user;
    char time[32], bytes[2048];
    struct text line;
    if (context->settings.quiet && level == DAEMON_INFO)
        return;
    text_init(&line, bytes, sizeof bytes);
    json_begin(&line);
    json_add_string(&line, "time", format_time(wall_clock_ms(), time));
    json_add_string(&line, "level", names[level]);
    json_add_string(&line, "event", event);
    json_add_string(&line, "text", text);
    json_end(&line);
    fprintf(stderr, "%s\n", line.bytes);
}

/* On stdout, so that a script can read the port that was taken; stdio has no address. */
static void serve_ready(void *user, const char *addresses)
{
    const struct context *context = user;
    char one[1024], line[1152];
    for (const char *at = addresses; *at != '\0';) {
        size_t length = strcspn(at, "\n");
        (void)snprintf(one, sizeof one, "%.*s", (int)length, at);
        (void)snprintf(line, sizeof line, "serving %s", one);
        if (!context->settings.quiet)
            printf("listening on %s\n", one);
        serve_log(user, DAEMON_INFO, "listening", line);
        at += length + (at[length] == '\n' ? 1 : 0);
    }
    (void)fflush(stdout);
}

/* The private socket of this user; NULL: there is no place for it. */
static const char *serve_default_socket(void)
{
    static char path[1024];
    const char *folder = getenv("XDG_RUNTIME_DIR");
    if (folder == NULL || folder[0] != '/')
        folder = geteuid() == 0 ? "/run" : NULL;
    if (folder == NULL)
        return NULL;
    int length = snprintf(path, sizeof path, "%s/leasehold.sock", folder);
    return length < (int)sizeof path ? path : NULL;
}

/* NULL, or what is wrong. */
static const char *serve_check_tls(const struct settings *settings)
{
    if (settings->tls_cert == NULL && settings->tls_key != NULL)
        return "--tls-key needs --tls-cert";
    if (settings->tls_cert == NULL && settings->tls_client_ca != NULL)
        return "--tls-client-ca needs --tls-cert";
    if (settings->tls_cert != NULL && (settings->stdio || strcmp(settings->listen, "off") == 0))
        return "--tls-cert is for TCP; it excludes --stdio and --listen off";
    return NULL;
}

static int cmd_serve(struct context *context)
{
    const struct settings *settings = &context->settings;
    struct daemon_options options = {.address = settings->listen,
                                     .unix_path = settings->unix_path,
                                     .unix_required = true,
                                     .tls_cert = settings->tls_cert,
                                     .tls_key = settings->tls_key,
                                     .tls_client_ca = settings->tls_client_ca,
                                     .stdio = settings->stdio,
                                     .connections_max = (size_t)settings->connections_max,
                                     .store = context->shown,
                                     .log = serve_log,
                                     .ready = serve_ready,
                                     .user = context};
    struct lh_report report = LH_REPORT_INIT;
    if (settings->unix_path == NULL) {
        options.unix_path = serve_default_socket();
        options.unix_required = false;
    } else if (strcmp(settings->unix_path, "off") == 0) {
        options.unix_path = NULL;
    }
    if (strcmp(settings->listen, "off") == 0)
        options.address = NULL;
    if (options.address == NULL && options.unix_path == NULL && !settings->stdio)
        return usage_error(context, "nothing to serve on; give --listen, --unix or --stdio");
    const char *wrong = serve_check_tls(settings);
    if (wrong != NULL)
        return usage_error(context, "%s", wrong);
    int status = context_open_store(context);
    if (status != EXIT_DONE)
        return status;
    if (daemon_run(&context->client, &options, &report) != LH_OK)
        return output_plain_report(context, &report);
    return EXIT_DONE;
}

static const struct option option_listen = {
    .name = "listen",
    .kind = VALUE_TEXT,
    .value = "ADDR",
    .at = offsetof(struct settings, listen),
    .default_value = DAEMON_ADDRESS,
    .help = "address and port of RESP: HOST:PORT, PORT (on loopback), or off; port 0 takes a "
            "free one and prints it"};

static const struct option option_unix = {
    .name = "unix",
    .kind = VALUE_TEXT,
    .value = "PATH",
    .at = offsetof(struct settings, unix_path),
    .help = "path of the unix socket (mode 0600), or off; default "
            "$XDG_RUNTIME_DIR/leasehold.sock, for root /run/leasehold.sock"};

static const struct option option_tls_cert = {
    .name = "tls-cert",
    .kind = VALUE_TEXT,
    .value = "FILE",
    .at = offsetof(struct settings, tls_cert),
    .help = "PEM file of the certificate and its chain: TCP connections need TLS, 1.2 or later"};

static const struct option option_tls_key = {
    .name = "tls-key",
    .kind = VALUE_TEXT,
    .value = "FILE",
    .at = offsetof(struct settings, tls_key),
    .help = "PEM file of its key, mode 0600; default the file of --tls-cert"};

static const struct option option_tls_client_ca = {
    .name = "tls-client-ca",
    .kind = VALUE_TEXT,
    .value = "FILE",
    .at = offsetof(struct settings, tls_client_ca),
    .help = "PEM file of the CA that signs certificates of clients; a client may have none"};

static const struct option option_stdio = {
    .name = "stdio",
    .kind = VALUE_FLAG,
    .at = offsetof(struct settings, stdio),
    .flag_only = true,
    .help = "serve one connection on stdin and stdout, and end with it; no socket is opened"};

static const struct option option_max_connections = {.name = "max-connections",
                                                     .kind = VALUE_COUNT,
                                                     .value = "N",
                                                     .at =
                                                         offsetof(struct settings, connections_max),
                                                     .min = 1,
                                                     .max = DAEMON_CONNECTIONS_LIMIT,
                                                     .default_value = "10000",
                                                     .help = "refuse further connections"};

static const struct option *const serve_options[] = {
    &option_listen,  &option_unix,          &option_stdio,           &option_tls_cert,
    &option_tls_key, &option_tls_client_ca, &option_max_connections, NULL};

const struct command command_serve = {
    .name = "serve",
    .args = "",
    .summary = "serve the locks of a store to other programs: the daemon",
    .about =
        "Serves the store to programs of any language through the protocol of Redis (RESP2 and "
        "RESP3): any Redis client is a client. LOCK.ACQUIRE key holder ttl_ms takes a lock, "
        "LOCK.RENEW key token renews it, LOCK.RELEASE key token gives it back; ONCE.* and "
        "WATERMARK.* serve ids that are done once and stored positions. docs/daemon.md lists all "
        "commands and the rules for clients.\n\n"
        "A grant belongs to its client, not to the daemon: it lives by its TTL, and any daemon of "
        "the same store renews and releases it by its token. With BIND the daemon renews it, and "
        "releases it when the client closes its connection.\n\n"
        "By default the daemon listens on loopback and on a private unix socket. SIGTERM ends it; "
        "grants stay. SIGHUP reads the files of --tls-* again; if one is unusable, the previous "
        "ones stay in use, and the log states why. Logs are JSON lines on stderr.",
    .example = "leasehold serve --store redis://cache:6379\n"
               "redis-cli -p 7379 LOCK.ACQUIRE backup host-1 30000\n"
               "leasehold serve --listen :7379 --tls-cert server.pem --tls-key server.key\n"
               "leasehold serve --stdio --store file:/var/lib/app/locks.log",
    .options = serve_options,
    .min_args = 0,
    .max_args = 0,
    .run = cmd_serve};
