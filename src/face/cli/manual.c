/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Manual pages in roff, generated from the same tables as --help.
 */
#include "face/cli/manual.h"

#include <ctype.h>
#include <string.h>

/* Escapes text for roff: leading dots and quotes, backslashes, and dashes that can be copied. */
static void put_roff(FILE *out, const char *text)
{
    bool fresh = true;
    for (; *text != '\0'; text++) {
        if (fresh && (*text == '.' || *text == '\''))
            fputs("\\&", out);
        fresh = *text == '\n';
        if (*text == '-')
            fputs("\\-", out);
        else if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '"')
            fputs("\\(dq", out);
        else
            fputc(*text, out);
    }
}

/* Paragraphs are separated by an empty line. */
static void put_paragraphs(FILE *out, const char *text)
{
    const char *end;
    while ((end = strstr(text, "\n\n")) != NULL) {
        char part[4096];
        (void)snprintf(part, sizeof part, "%.*s", (int)(end - text), text);
        put_roff(out, part);
        fputs("\n.PP\n", out);
        text = end + 2;
    }
    put_roff(out, text);
    fputc('\n', out);
}

static void put_upper(FILE *out, const char *text)
{
    for (; *text != '\0'; text++)
        fputc(toupper((unsigned char)*text), out);
}

static void put_options(FILE *out, const struct option *const *options)
{
    for (; options != NULL && *options != NULL; options++) {
        const struct option *option = *options;
        char help[512];
        struct text text;
        fputs(".TP\n\\fB", out);
        if (option->letter != 0)
            fprintf(out, "\\-%c\\fR, \\fB", option->letter);
        fputs("\\-\\-", out);
        put_roff(out, option->name);
        fputs("\\fR", out);
        if (option->value != NULL) {
            fputs(" \\fI", out);
            put_roff(out, option->value);
            fputs("\\fR", out);
        }
        fputc('\n', out);
        text_init(&text, help, sizeof help);
        option_describe(option, &text);
        put_roff(out, help);
        fputc('\n', out);
        if (option->default_value != NULL) {
            fputs("(default: ", out);
            put_roff(out, option->default_value);
            fputs(")\n", out);
        }
        if (option->environment != NULL)
            fprintf(out, "(environment: %s)\n", option->environment);
    }
}

static void put_heading(FILE *out, const struct command *command)
{
    fputs(".\\\" SPDX-License-Identifier: Apache-2.0\n.TH LEASEHOLD", out);
    if (command != NULL) {
        fputs("\\-", out);
        put_upper(out, command->name);
    }
    fprintf(out, " 1 \"\" \"leasehold %s\" \"User Commands\"\n.SH NAME\nleasehold", lh_version());
    if (command != NULL) {
        fputs("\\-", out);
        put_roff(out, command->name);
        fputs(" \\- ", out);
        put_roff(out, command->summary);
    } else {
        fputs(" \\- locks that are leases, with fencing tokens", out);
    }
    fputs("\n.SH SYNOPSIS\n", out);
}

static void put_statuses(FILE *out)
{
    static const struct {
        int status;
        const char *means;
    } statuses[] = {
        {EXIT_DONE, "Success."},
        {EXIT_NO, "The id is new (seen), or was already done or running (mark)."},
        {EXIT_USAGE, "Usage error in the arguments or the configuration."},
        {EXIT_MISMATCH,
         "Mismatch: the key is not a semaphore, or has another limit; the id has another payload."},
        {EXIT_UNAVAILABLE, "Unavailable: the store failed; whether the key is free is unknown."},
        {EXIT_INTERNAL, "Internal error, or the output could not be written."},
        {EXIT_COOLING, "Cooling: the work was done recently; the id is done."},
        {EXIT_BUSY, "Busy: the key is held, or was not granted within --wait; the id is running."},
        {EXIT_LOST, "Lost: the lock was lost while the command ran."},
        {EXIT_DENIED, "Denied: the store does not permit the operation."},
        {EXIT_STALE, "Stale: the token no longer holds the key; nothing was changed."},
        {EXIT_TIMEOUT, "Timeout: the command took longer than --max-hold and was ended."},
    };
    fputs(".SH EXIT STATUS\n", out);
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        fprintf(out, ".TP\n.B %d\n", statuses[i].status);
        put_roff(out, statuses[i].means);
        fputc('\n', out);
    }
    fputs(".TP\n.B 126, 127\nThe program to run is not executable, or was not found.\n"
          ".TP\n.B 128+N\nEnded by signal N.\n",
          out);
}

static void put_program(FILE *out)
{
    fputs(".B leasehold\n[\\fIOPTION\\fR...] \\fICOMMAND\\fR ...\n.SH DESCRIPTION\n", out);
    put_paragraphs(out,
                   "Manages locks that are leases. A lease has a holder and expires unless the "
                   "holder renews it. Each grant has a fencing token that only grows, so that the "
                   "protected resource can refuse a late writer.\n\n"
                   "Results go to stdout, refusals and errors to stderr; with --json both are "
                   "objects, one per line. Durations are written 500ms, 1.5s, 30s, 5m or 24h; a "
                   "bare number is seconds.");
    fputs(".SH COMMANDS\n", out);
    for (size_t i = 0; command_at(i) != NULL; i++) {
        fputs(".TP\n.BR leasehold\\-", out);
        put_roff(out, command_at(i)->name);
        fputs(" (1)\n", out);
        put_roff(out, command_at(i)->summary);
        fputc('\n', out);
    }
    fputs(".SH OPTIONS\nBefore or after the command:\n", out);
    put_options(out, global_options);
}

static void put_stores(FILE *out)
{
    static const struct {
        const char *url, *means;
    } stores[] = {
        {"file:PATH",
         "A log file on a local disk, shared by all processes of the host. The default."},
        {"memory:", "Private to the process; lost when it exits."},
        {"redis://[USER[:PASSWORD]@]HOST[:PORT][,HOST...][/DB][?OPTION=VALUE&...]",
         "A Redis server, or several hosts: nodes of a cluster, or Sentinels. Options: key=, "
         "dedup= and watermark=, name templates shared with other programs, each with one %s "
         "(key=lock:%s); password-file=PATH, read again when it changes; sentinel=NAME, the master "
         "that the Sentinels monitor; scripts=no, for servers without scripts; protocol=2 or 3. "
         "A password in --store is erased from the process arguments. Prefer LEASEHOLD_STORE, the "
         "config file, or a password-file, which also hides it from CMD."},
        {"rediss://...",
         "The same with TLS. Options: ca=PATH, cert=PATH and tls-key=PATH, in PEM; name=NAME, "
         "required in the certificate of the server."},
        {"k8s://[NAMESPACE][?OPTION=VALUE&...]",
         "Leases of a Kubernetes cluster, with KUBECONFIG or the service account of the pod. "
         "Options: prefix=, of every name; names=auto, hash or plain, see leasehold-name (1); "
         "skew=5s, the maximum difference between the clocks of the API servers; events=on, to "
         "write Kubernetes Events; collect=30, the number of unused Leases that a process removes "
         "per minute, or off; context=, of the kubeconfig."},
        {"github://OWNER/REPO[?OPTION=VALUE&...]",
         "Refs of a GitHub repository, with the token of GITHUB_TOKEN or GH_TOKEN; GITHUB_API_URL "
         "is the address of a GitHub Enterprise server, as in https://github.example/api/v3. "
         "Whoever can read the repository can read the records. Options: show=off, to show "
         "nothing on issues; stale=5m, after which a worker without a heartbeat is dead; "
         "heartbeat=100s; poll=60s, of waiters; pace=1s, between two writes; writes=400, an hour, "
         "of all workers of the account; budget=, of requests an hour; token-file=PATH; app=ID "
         "and app-key-file=PATH, of a GitHub App."},
    };
    fputs(
        ".SH STORES\nURLs for \\-\\-store, LEASEHOLD_STORE and the config file; leasehold version "
        "lists the stores that are built in.\n",
        out);
    for (size_t i = 0; i < sizeof stores / sizeof stores[0]; i++) {
        fputs(".TP\n.B ", out);
        put_roff(out, stores[i].url);
        fputc('\n', out);
        put_roff(out, stores[i].means);
        fputc('\n', out);
    }
}

static void put_files(FILE *out)
{
    fputs(".SH FILES\n.TP\n.I ~/.local/state/leasehold/locks.log\nThe default store; "
          "below XDG_STATE_HOME if that is set.\n.TP\n.I /var/lib/leasehold/locks.log\nThe default "
          "store of root.\n.TP\n.I ~/.config/leasehold/config.yaml, /etc/leasehold/config.yaml\n"
          "Config file; the first one that exists is read: a YAML mapping whose keys are the long "
          "options, such as\n.B ttl: 1m\\fR.\nAn option takes precedence over the environment, and "
          "the environment over the file.\n",
          out);
}

void manual_page(const struct command *command, FILE *out)
{
    put_heading(out, command);
    if (command == NULL) {
        put_program(out);
    } else {
        fputs(".B leasehold ", out);
        put_roff(out, command->name);
        fputc('\n', out);
        if (command->options != NULL)
            fputs("[\\fIOPTION\\fR...]\n", out);
        if (command->args != NULL) {
            put_roff(out, command->args);
            fputc('\n', out);
        }
        fputs(".SH DESCRIPTION\n", out);
        put_paragraphs(out, command->about);
        fputs(".SH OPTIONS\n", out);
        put_options(out, command->options);
        put_options(out, global_options);
        if (command->example != NULL) {
            fputs(".SH EXAMPLES\n.nf\n", out);
            put_roff(out, command->example);
            fputs("\n.fi\n", out);
        }
    }
    put_statuses(out);
    if (command == NULL)
        put_stores(out);
    put_files(out);
    fputs(".SH SEE ALSO\n", out);
    fputs(command != NULL ? ".BR leasehold (1),\n.BR flock (1)\n" : ".BR flock (1)\n", out);
}
