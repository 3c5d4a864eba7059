/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Manual pages in roff, written from the tables: what --help says and what man says cannot part.
 */
#include "face/cli/manual.h"

#include <ctype.h>
#include <string.h>

/* Text as roff wants it: no leading dot, dashes that can be copied. */
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
        put_roff(out, option->help);
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
        {EXIT_DONE, "Done."},
        {EXIT_NO, "The other answer of seen (it was not) and mark (it was already)."},
        {EXIT_USAGE, "The call or the configuration is wrong; the message says how."},
        {EXIT_MISMATCH,
         "The key is a semaphore of another limit, or none; the id has another payload."},
        {EXIT_UNAVAILABLE, "The store is in trouble: neither free nor busy."},
        {EXIT_INTERNAL, "Internal error, or the answer could not be written."},
        {EXIT_COOLING, "Cooling: it was done recently; the id was done."},
        {EXIT_BUSY, "Busy: held elsewhere, or not granted within --wait; the id is being done."},
        {EXIT_LOST, "Lost: the lock was lost."},
        {EXIT_DENIED, "The store does not permit it."},
        {EXIT_STALE, "The token is stale; nothing was changed."},
    };
    fputs(".SH EXIT STATUS\n", out);
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        fprintf(out, ".TP\n.B %d\n", statuses[i].status);
        put_roff(out, statuses[i].means);
        fputc('\n', out);
    }
    fputs(".TP\n.B 126, 127\nThe program to run is not executable, not found.\n"
          ".TP\n.B 128+N\nEnded by signal N.\n",
          out);
}

static void put_program(FILE *out)
{
    fputs(".B leasehold\n[\\fIOPTION\\fR...] \\fICOMMAND\\fR ...\n.SH DESCRIPTION\n", out);
    put_paragraphs(out,
                   "Takes locks that are leases: who holds one has it for a time, renews it, and "
                   "has a token that only grows, so that what the lock guards can refuse a late "
                   "writer.\n\n"
                   "Answers go to stdout, refusals and errors to stderr; with --json both are "
                   "objects, one for each line. Lengths of time are written 500ms, 1.5s, 30s, 5m "
                   "or 24h; a bare number is seconds.");
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
        {"file:PATH", "A log on a local disk, shared by all processes of the host. The default."},
        {"memory:", "Begins empty in every process, and ends with it."},
        {"redis://[USER[:PASSWORD]@]HOST[:PORT][,HOST...][/DB][?OPTION=VALUE&...]",
         "A Redis server, or several hosts: nodes of a cluster, or Sentinels. Options: key=, "
         "dedup= and watermark=, the names that other programs know, each with one %s "
         "(key=lock:%s); password-file=PATH, read anew when it changes; sentinel=NAME, the master "
         "whose Sentinels the hosts are; scripts=no, for servers without scripts; protocol=2 or 3. "
         "A password in --store is blotted out of the program's words, but better stands in "
         "LEASEHOLD_STORE, in the config file, or in a password-file, which keeps it from CMD "
         "too."},
        {"rediss://...",
         "The same with TLS; ca=PATH, cert=PATH and tls-key=PATH in PEM, name=NAME that the "
         "server's certificate must have."},
        {"k8s://[NAMESPACE][?OPTION=VALUE&...]",
         "Leases of a Kubernetes cluster, with KUBECONFIG or as the pod's service account. "
         "Options: "
         "prefix=, before every name; names=auto, hash or plain, see leasehold-name (1); skew=5s, "
         "how far the clocks of its API servers may be apart; events=on, to tell what happens as "
         "Events; collect=30, how many Leases that nobody needs a process removes in a minute, or "
         "off; context=, of the kubeconfig."},
    };
    fputs(
        ".SH STORES\nWhat \\-\\-store, LEASEHOLD_STORE and the config file take; leasehold version "
        "says what is built in.\n",
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
    fputs(".SH FILES\n.TP\n.I ~/.local/state/leasehold/locks.log\nThe store when none is named; "
          "below XDG_STATE_HOME if that is set.\n.TP\n.I /var/lib/leasehold/locks.log\nThe same "
          "for root.\n.TP\n.I ~/.config/leasehold/config.yaml, /etc/leasehold/config.yaml\n"
          "Defaults, the first that is there: a YAML mapping whose keys are the long options, such "
          "as\n.B ttl: 1m\\fR.\nA flag beats the environment, the environment the file.\n",
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
