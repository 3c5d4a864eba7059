/* SPDX-License-Identifier: Apache-2.0 */
/* leasehold serve: the daemon. Translates options; src/face/daemon does the rest. */
#include "face/cli/cli.h"
#include "face/daemon/daemon.h"
#include "wire/json_text.h"
#include "wire/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void serve_log(void *user, const struct daemon_line *line)
{
    static const char *const names[] = {
        [DAEMON_INFO] = "info", [DAEMON_WARNING] = "warning", [DAEMON_ERROR] = "error"};
    const struct context *context = user;
    char time[32], bytes[2048];
    struct text json;
    if (context->settings.quiet && line->level == DAEMON_INFO)
        return;
    text_init(&json, bytes, sizeof bytes);
    json_begin(&json);
    json_add_string(&json, "time", format_time(wall_clock_ms(), time));
    json_add_string(&json, "level", names[line->level]);
    json_add_string(&json, "event", line->event);
    if (line->class != NULL) {
        json_add_string(&json, "class", line->class);
        json_add_string(&json, "peer", line->peer);
        json_add_string(&json, "identity", line->identity);
        json_add_number(&json, "count", (int64_t)line->count);
    }
    json_add_string(&json, "text", line->text);
    json_end(&json);
    fprintf(stderr, "%s\n", json.bytes);
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
        serve_log(user, &(struct daemon_line){DAEMON_INFO, .event = "listening", .text = line});
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

enum { HOSTS_MAX = 32 };

/* The names of --host, at the commas. False: too many. */
static bool serve_split_hosts(const char *names, char *memory, size_t size,
                              const char *out[HOSTS_MAX + 1])
{
    size_t count = 0;
    out[0] = NULL;
    if (names == NULL)
        return true;
    if (strlen(names) >= size)
        return false;
    memcpy(memory, names, strlen(names) + 1);
    char *rest = memory;
    for (char *name; (name = strsep(&rest, ",")) != NULL;) {
        if (name[0] == '\0')
            continue;
        if (count == HOSTS_MAX)
            return false;
        out[count++] = name;
        out[count] = NULL;
    }
    return true;
}

/* NULL, or what is wrong. */
static const char *serve_check_tls(const struct settings *settings)
{
    if (settings->tls_cert == NULL && settings->tls_key != NULL)
        return "--tls-key needs --tls-cert";
    if (settings->tls_cert == NULL && settings->tls_client_ca != NULL)
        return "--tls-client-ca needs --tls-cert";
    if (settings->tls_cert != NULL && settings->stdio)
        return "--tls-cert is for TCP; it excludes --stdio";
    return NULL;
}

/* Octal, as for chmod. False if it is none. */
static bool serve_read_mode(const char *text, unsigned *out)
{
    size_t length = strlen(text);
    *out = 0;
    if (length < 3 || length > 4 || strspn(text, "01234567") != length)
        return false;
    for (size_t i = 0; i < length; i++)
        *out = *out * 8 + (unsigned)(text[i] - '0');
    return *out <= 0777;
}

static int cmd_serve(struct context *context)
{
    const struct settings *settings = &context->settings;
    const char *hosts[HOSTS_MAX + 1];
    char host_names[4096];
    struct daemon_options options = {.address = settings->listen,
                                     .http_address = settings->http,
                                     .http_required = true,
                                     .hosts = hosts,
                                     .unix_path = settings->unix_path,
                                     .unix_required = true,
                                     .tls_cert = settings->tls_cert,
                                     .tls_key = settings->tls_key,
                                     .tls_client_ca = settings->tls_client_ca,
                                     .stdio = settings->stdio,
                                     .connections_max = (size_t)settings->connections_max,
                                     .tokens = settings->tokens,
                                     .insecure = settings->insecure,
#ifdef LH_MUTANTS
                                     .planted = settings->planted,
#endif
                                     .store = context->shown,
                                     .metrics_prefix = settings->metrics_prefix,
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
    if (settings->http == NULL) {
        options.http_address = options.address != NULL ? DAEMON_HTTP_ADDRESS : NULL;
        options.http_required = false;
    } else if (strcmp(settings->http, "off") == 0) {
        options.http_address = NULL;
    }
    if (!serve_split_hosts(settings->hosts, host_names, sizeof host_names, hosts))
        return usage_error(context, "--host has too many names; at most 32");
    if (options.address == NULL && options.http_address == NULL && options.unix_path == NULL &&
        !settings->stdio)
        return usage_error(context,
                           "nothing to serve on; give --listen, --http, --unix or --stdio");
    if (!metrics_is_prefix(settings->metrics_prefix))
        return usage_error(context, "--metrics-prefix must have 1 to 64 letters, digits and "
                                    "underscores, and must not begin with a digit");
    if (!serve_read_mode(settings->unix_mode, &options.unix_mode))
        return usage_error(context, "--unix-mode %s: not a mode; write it as 0660",
                           settings->unix_mode);
    if (options.unix_mode != 0600 && settings->tokens == NULL)
        return usage_error(context,
                           "--unix-mode %s lets other users connect; give --tokens, which says "
                           "what they may do",
                           settings->unix_mode);
    const char *wrong = serve_check_tls(settings);
    if (wrong != NULL)
        return usage_error(context, "%s", wrong);
    if (settings->tls_cert != NULL && options.address == NULL && options.http_address == NULL)
        return usage_error(context, "--tls-cert is for TCP; give --listen or --http");
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

static const struct option option_http = {
    .name = "http",
    .kind = VALUE_TEXT,
    .value = "ADDR",
    .at = offsetof(struct settings, http),
    .help = "address and port of HTTP, as --listen; default " DAEMON_HTTP_ADDRESS
            ", which is skipped if it is in use, and off with --listen off"};

static const struct option option_host = {
    .name = "host",
    .kind = VALUE_TEXT,
    .value = "NAME,...",
    .at = offsetof(struct settings, hosts),
    .help = "names by which HTTP clients reach this daemon, beside addresses and localhost"};

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

static const struct option option_metrics_prefix = {
    .name = "metrics-prefix",
    .kind = VALUE_TEXT,
    .value = "PREFIX",
    .at = offsetof(struct settings, metrics_prefix),
    .default_value = DAEMON_METRICS_PREFIX,
    .help = "begin the names of the metrics with PREFIX and an underscore"};

static const struct option option_tokens = {
    .name = "tokens",
    .kind = VALUE_TEXT,
    .value = "FILE",
    .at = offsetof(struct settings, tokens),
    .help = "credentials: lines of NAME SECRET VERBS PREFIX...; peers must send AUTH, and may do "
            "what their lines allow; SIGHUP reads it again"};

static const struct option option_unix_mode = {
    .name = "unix-mode",
    .kind = VALUE_TEXT,
    .value = "MODE",
    .at = offsetof(struct settings, unix_mode),
    .default_value = "0600",
    .help = "mode of the unix socket, in octal; another one needs --tokens"};

static const struct option option_insecure = {
    .name = "insecure",
    .kind = VALUE_FLAG,
    .at = offsetof(struct settings, insecure),
    .help = "listen beyond loopback without TLS or without credentials"};

#ifdef LH_MUTANTS
static const struct option option_planted = {.name = "planted",
                                             .kind = VALUE_TEXT,
                                             .value = "NAME",
                                             .at = offsetof(struct settings, planted),
                                             .help = "switch a planted hole on"};
#endif

static const struct option *const serve_options[] = {&option_listen,
                                                     &option_http,
                                                     &option_host,
                                                     &option_unix,
                                                     &option_unix_mode,
                                                     &option_stdio,
                                                     &option_tokens,
                                                     &option_insecure,
                                                     &option_tls_cert,
                                                     &option_tls_key,
                                                     &option_tls_client_ca,
                                                     &option_max_connections,
                                                     &option_metrics_prefix,
#ifdef LH_MUTANTS
                                                     &option_planted,
#endif
                                                     NULL};

const struct command command_serve = {
    .name = "serve",
    .args = "",
    .summary = "serve the locks of a store to other programs: the daemon",
    .about =
        "Serves the store to programs of any language through the protocol of Redis (RESP2 and "
        "RESP3): any Redis client is a client. LOCK.ACQUIRE key holder ttl_ms takes a lock, "
        "LOCK.RENEW key token renews it, LOCK.RELEASE key token gives it back; ONCE.* and "
        "WATERMARK.* serve ids that are done once and stored positions. HTTP serves the same with "
        "JSON, and /metrics. docs/daemon.md lists all commands, paths and the rules for "
        "clients.\n\n"
        "A grant belongs to its client, not to the daemon: it lives by its TTL, and any daemon of "
        "the same store renews and releases it by its token. With BIND the daemon renews it, and "
        "releases it when the client closes its connection.\n\n"
        "By default the daemon listens on loopback and on a private unix socket, and whoever can "
        "connect may do everything. With --tokens a peer sends AUTH first. An address beyond "
        "loopback needs TLS and --tokens, or --insecure. SIGHUP reads the files of --tokens and "
        "--tls-* again; if one is unusable, the previous ones stay in use, and the log states why. "
        "SIGTERM ends the daemon; grants stay. Logs are JSON lines on stderr.",
    .example = "leasehold serve --store redis://cache:6379\n"
               "redis-cli -p 7379 LOCK.ACQUIRE backup host-1 30000\n"
               "curl http://127.0.0.1:7380/v1/locks/backup\n"
               "leasehold serve --listen :7379 --tokens tokens --tls-cert server.pem\n"
               "leasehold serve --stdio --store file:/var/lib/app/locks.log",
    .options = serve_options,
    .min_args = 0,
    .max_args = 0,
    .run = cmd_serve};
