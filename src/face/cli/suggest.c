/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suggestions for mistyped command lines: the command that was probably meant, or the same line
 * with the missing "--". For messages only: nothing here is run, and nothing is suggested if
 * nothing is near.
 */
#include "face/cli/suggest.h"

#include "base/nearest.h"
#include "wire/url_redact.h"

#include <string.h>

enum { NAMES_MAX = 64, STEP_SIZE = 32 };

/* ---- commands ---- */

/* Words of other lock tools, and what to write here. */
static const struct synonym {
    const char *word, *line;
} synonyms[] = {
    {"lock", "leasehold run KEY -- CMD, leasehold hold KEY, or leasehold acquire KEY"},
    {"trylock", "leasehold run -n KEY -- CMD, or leasehold acquire -n KEY"},
    {"try", "leasehold run -n KEY -- CMD, or leasehold acquire -n KEY"},
    {"wait", "leasehold run -w DUR KEY -- CMD, or leasehold acquire -w DUR KEY"},
    {"take", "leasehold acquire KEY"},
    {"grab", "leasehold acquire KEY"},
    {"exec", "leasehold run KEY -- CMD"},
    {"flock", "leasehold run KEY -- CMD"},
    {"with", "leasehold run KEY -- CMD"},
    {"semaphore", "leasehold run KEY --limit N -- CMD"},
    {"elect", "leasehold run KEY -- CMD"},
    {"unlock", "leasehold release KEY --token N; to take it from its holder: leasehold break KEY "
               "--reason TEXT"},
    {"free", "leasehold release KEY --token N; to take it from its holder: leasehold break KEY "
             "--reason TEXT"},
    {"force-unlock", "leasehold break KEY --reason TEXT"},
    {"steal", "leasehold break KEY --reason TEXT"},
    {"kick", "leasehold break KEY --reason TEXT"},
    {"delete", "leasehold break KEY --reason TEXT"},
    {"rm", "leasehold break KEY --reason TEXT"},
    {"extend", "leasehold renew KEY --token N"},
    {"refresh", "leasehold renew KEY --token N"},
    {"keepalive", "leasehold renew KEY --token N"},
    {"who", "leasehold status KEY, or leasehold why KEY"},
    {"info", "leasehold status KEY"},
    {"show", "leasehold status KEY"},
    {"get", "leasehold status KEY"},
    {"inspect", "leasehold status KEY"},
    {"describe", "leasehold status KEY"},
    {"ls", "leasehold list [PREFIX]"},
    {"ps", "leasehold list [PREFIX]"},
    {"locks", "leasehold list [PREFIX]"},
    {"tail", "leasehold watch [PREFIX]"},
    {"monitor", "leasehold watch [PREFIX]"},
    {"log", "leasehold history KEY"},
    {"logs", "leasehold history KEY"},
    {"reset", "leasehold clear KEY"},
    {"gc", "leasehold collect"},
    {"prune", "leasehold collect"},
    {"benchmark", "leasehold bench"},
    {"diagnose", "leasehold doctor"},
    {"health", "leasehold doctor"},
    {"ping", "leasehold doctor"},
    {"man", "leasehold help [COMMAND]"},
};

void suggest_command(const char *word, struct text *out)
{
    const char *names[NAMES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < sizeof synonyms / sizeof synonyms[0]; i++) {
        if (strcmp(synonyms[i].word, word) == 0) {
            text_add(out, "; write: ");
            text_add(out, synonyms[i].line);
            return;
        }
    }
    for (; count < NAMES_MAX && command_at(count) != NULL; count++)
        names[count] = command_at(count)->name;
    const char *near = nearest_match(word, names, count);
    text_add(out, near != NULL ? "; the closest is '" : "; 'leasehold help' lists the commands");
    if (near == NULL)
        return;
    text_add(out, near);
    text_add(out, "'");
}

/* ---- the missing "--" ---- */

/* True if the word is a step of the command, such as `begin` of once, or resembles one. */
static bool is_step(const struct command *command, const char *word)
{
    const char *at = command->args;
    size_t length = strcspn(at, "| ");
    bool more = at[length] == '|';
    for (; more; at += length + 1) {
        char step[STEP_SIZE];
        const char *const name = step;
        struct text text;
        length = strcspn(at, "| ");
        more = at[length] == '|';
        text_init(&text, step, sizeof step);
        text_add_bytes(&text, at, length);
        if (nearest_match(word, &name, 1) != NULL)
            return true;
    }
    return false;
}

/* True if the option takes the place of a program, as -c 'SHELL STRING' does. */
static bool replaces_program(const struct command *command, const char *arg)
{
    for (const struct option *const *at = command->options; at != NULL && *at != NULL; at++) {
        size_t length = strlen((*at)->name);
        if ((*at)->letter == 'c' &&
            (strcmp(arg, "-c") == 0 ||
             (strncmp(arg, "--", 2) == 0 && strncmp(arg + 2, (*at)->name, length) == 0)))
            return true;
    }
    return false;
}

/* True for `sh`, `/usr/bin/python3` and the like, whose -c is not ours. */
static bool is_interpreter(const char *arg)
{
    static const char *const names[] = {"sh", "bash", "dash", "zsh", "ksh", "perl", "ruby", "node"};
    const char *slash = strrchr(arg, '/'), *name = slash != NULL ? slash + 1 : arg;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return strncmp(name, "python", strlen("python")) == 0;
}

bool suggest_wants_separator(const struct context *context, int argc, char *const *argv, int at)
{
    const struct command *command = context->command;
    int replaced_at = 0;
    if (!command->takes_program || context->arg_count == 0 || context->settings.help)
        return false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0)
            return false;
        if (replaces_program(command, argv[i]))
            replaced_at = i;
    }
    bool wants = replaced_at == 0 ? context->arg_count == command->min_args
                                  : replaced_at > at && is_interpreter(argv[at]);
    return wants && !is_step(command, context->args[0]);
}

void suggest_add_quoted(struct text *out, const char *arg)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_@%+=:,./-";
    if (arg[0] != '\0' && arg[strspn(arg, plain)] == '\0') {
        text_add(out, arg);
        return;
    }
    text_add(out, "'");
    for (; *arg != '\0'; arg++) {
        if (*arg == '\'')
            text_add(out, "'\\''");
        else
            text_add_bytes(out, arg, 1);
    }
    text_add(out, "'");
}

/* A URL is printed without its secrets, also as --store=URL. */
static void add_argument(struct text *out, const char *arg)
{
    char buffer[URL_SIZE];
    struct text shown;
    const char *equals = strncmp(arg, "--", 2) == 0 ? strchr(arg, '=') : NULL;
    const char *url = equals != NULL ? equals + 1 : arg;
    text_add(out, " ");
    if (strstr(url, "://") == NULL) {
        suggest_add_quoted(out, arg);
        return;
    }
    text_init(&shown, buffer, sizeof buffer);
    text_add_bytes(&shown, arg, (size_t)(url - arg));
    url_redact(url, &shown);
    suggest_add_quoted(out, buffer);
}

/* False, after adding " ...", if there is no room for the whole argument and those after it. */
static bool add_whole_argument(struct text *out, const char *before, const char *arg)
{
    static const char more[] = " ...";
    size_t length = out->length;
    text_add(out, before);
    add_argument(out, arg);
    if (!out->cut && out->size - out->length > sizeof more)
        return true;
    out->length = length;
    out->cut = false;
    text_add(out, more);
    return false;
}

void suggest_separator(int argc, char *const *argv, int before, struct text *out)
{
    text_add(out, "leasehold");
    for (int i = 1; i < argc && add_whole_argument(out, i == before ? " --" : "", argv[i]); i++) {
    }
}

/* The number of arguments of an option that `run` does not have. */
static int not_for_run(const char *arg)
{
    if (strcmp(arg, "--pid") == 0)
        return 2;
    return strcmp(arg, "--until-signal") == 0 || strncmp(arg, "--pid=", strlen("--pid=")) == 0;
}

void suggest_run(int argc, char *const *argv, int command, struct text *out)
{
    bool is_ours = true; /* until "--" */
    text_add(out, "leasehold");
    for (int i = 1; i < argc; i++) {
        int skipped = is_ours ? not_for_run(argv[i]) : 0;
        is_ours = is_ours && strcmp(argv[i], "--") != 0;
        if (skipped > 0)
            i += skipped - 1;
        else if (!add_whole_argument(out, "", i == command ? "run" : argv[i]))
            return;
    }
}
