/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the command line and merges the settings. Flags, parsed first and applied last, override
 * the environment, which overrides the config file and the defaults. Nothing here opens a store.
 */
#include "face/cli/cli.h"

#include "base/nearest.h"
#include "face/cli/suggest.h"
#include "wire/url_redact.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAMES_MAX = 64, PATH_SIZE = 4096 };

struct flag {
    const struct option *option;
    const char *value; /* NULL: none */
    char letter;       /* that was used; 0: the name … */
    const char *name;  /* … or alias, without dashes … */
    size_t length;     /* … of this length */
};

struct parse {
    struct context *context;
    char **argv;
    int argc, at;
    int command; /* the index of its name */
    struct flag *flags;
    size_t flag_count;
};

/* ---- finding ---- */

static bool has_alias(const struct option *option, const char *name, size_t length, char letter)
{
    char alias[ALIAS_SIZE];
    for (const char *at = option->aliases; option_next_alias(&at, alias);) {
        if (letter != 0 ? alias[1] == letter && alias[2] == '\0'
                        : strlen(alias) == length + 2 && memcmp(alias + 2, name, length) == 0)
            return true;
    }
    return false;
}

static const struct option *find_in(const struct option *const *options, const char *name,
                                    size_t length, char letter)
{
    for (; options != NULL && *options != NULL; options++) {
        const struct option *option = *options;
        if (letter != 0 ? option->letter == letter
                        : strlen(option->name) == length && memcmp(option->name, name, length) == 0)
            return option;
        if (has_alias(option, name, length, letter))
            return option;
    }
    return NULL;
}

static const struct option *find_option(const struct context *context, const char *name,
                                        size_t length, char letter)
{
    const struct option *found = find_in(global_options, name, length, letter);
    if (found == NULL && context->command != NULL)
        found = find_in(context->command->options, name, length, letter);
    return found;
}

/* The long names that a command takes, without dashes. */
struct names {
    const char *at[NAMES_MAX];
    char aliases[NAMES_MAX][ALIAS_SIZE];
    size_t count, alias_count;
};

static void add_aliases(const struct option *option, struct names *out)
{
    const char *at = option->aliases;
    while (out->count < NAMES_MAX && option_next_alias(&at, out->aliases[out->alias_count])) {
        const char *alias = out->aliases[out->alias_count];
        if (strncmp(alias, "--", 2) != 0)
            continue;
        out->at[out->count++] = alias + 2;
        out->alias_count++;
    }
}

static void add_names(const struct option *const *options, struct names *out)
{
    for (; options != NULL && *options != NULL && out->count < NAMES_MAX; options++) {
        out->at[out->count++] = (*options)->name;
        add_aliases(*options, out);
    }
}

static int refuse_flag(const struct context *context, const char *name, size_t length)
{
    const struct command *command = context->command;
    static struct names names;
    char arg[NEAREST_WORD_MAX + 1], hint[NEAREST_WORD_MAX + 64];
    add_names(global_options, &names);
    (void)snprintf(arg, sizeof arg, "%.*s", (int)length, name);
    add_names(command != NULL ? command->options : NULL, &names);
    const char *near = nearest_match(arg, names.at, names.count);
    if (near != NULL)
        (void)snprintf(hint, sizeof hint, "the closest is '--%s'", near);
    else
        (void)snprintf(hint, sizeof hint, "see 'leasehold help%s%s'", command != NULL ? " " : "",
                       command != NULL ? command->name : "");
    if (command == NULL)
        return usage_error(context, "unknown option '--%s' before the command; %s", arg, hint);
    return usage_error(context, "%s has no option '--%s'; %s", command->name, arg, hint);
}

static int refuse_command(const struct context *context, const char *arg)
{
    char hint[LH_TEXT_SIZE];
    struct text text;
    text_init(&text, hint, sizeof hint);
    suggest_command(arg, &text);
    return usage_error(context, "unknown command '%.64s'%s", arg, hint);
}

/* `run KEY CMD` without "--": the argument that was read last begins the program. */
static int refuse_program(const struct parse *parse)
{
    char line[LH_TEXT_SIZE - 64];
    struct text text;
    text_init(&text, line, sizeof line);
    suggest_separator(parse->argc, parse->argv, parse->at - 1, &text);
    return usage_error(parse->context, "%s: '--' is missing before the command; write: %s",
                       parse->context->command->name, line);
}

/* `hold KEY -- CMD`: the words of CMD are no keys. A "--" before all keys is allowed. */
static int refuse_program_of_hold(const struct parse *parse)
{
    char line[LH_TEXT_SIZE - 64];
    struct text text;
    text_init(&text, line, sizeof line);
    suggest_run(parse->argc, parse->argv, parse->command, &text);
    return usage_error(parse->context, "%s runs no command; write: %s",
                       parse->context->command->name, line);
}

/* ---- reading the command line ---- */

static void add_flag(struct parse *parse, const struct flag *flag)
{
    if (flag->option == &option_help)
        parse->context->settings.help = true; /* at once: other arguments may be invalid */
    else
        parse->flags[parse->flag_count++] = *flag;
}

static int parse_long_option(struct parse *parse, const char *arg)
{
    const char *name = arg + 2;
    size_t length = strcspn(name, "=");
    const char *value = name[length] == '=' ? name + length + 1 : NULL;
    const struct option *option = find_option(parse->context, name, length, 0);
    if (option == NULL && parse->context->command == NULL && strcmp(name, "version") == 0) {
        parse->context->command = command_find(name);
        return EXIT_DONE;
    }
    if (option == NULL)
        return refuse_flag(parse->context, name, length);
    if (!option_takes_value(option) && value != NULL)
        return usage_error(parse->context, "--%.*s takes no value", (int)length, name);
    if (option_takes_value(option) && value == NULL) {
        if (parse->at == parse->argc)
            return usage_error(parse->context, "--%s needs a value: --%s %s", name, name,
                               option->value);
        value = parse->argv[parse->at++];
    }
    add_flag(parse, &(struct flag){option, value, 0, name, length});
    return EXIT_DONE;
}

/* "-nq", "-w5", "-w 5" */
static int parse_short_options(struct parse *parse, const char *arg)
{
    for (const char *letter = arg + 1; *letter != '\0'; letter++) {
        const struct option *option = find_option(parse->context, NULL, 0, *letter);
        if (option == NULL)
            return usage_error(
                parse->context, "unknown option '-%c' in '%s'; see 'leasehold help%s%s'", *letter,
                arg, parse->context->command != NULL ? " " : "",
                parse->context->command != NULL ? parse->context->command->name : "");
        if (!option_takes_value(option)) {
            add_flag(parse, &(struct flag){option, NULL, *letter, NULL, 0});
            continue;
        }
        const char *value = letter[1] != '\0' ? letter + 1 : NULL;
        if (value == NULL && parse->at == parse->argc)
            return usage_error(parse->context, "-%c needs a value: -%c %s", *letter, *letter,
                               option->value);
        if (value == NULL)
            value = parse->argv[parse->at++];
        add_flag(parse, &(struct flag){option, value, *letter, NULL, 0});
        return EXIT_DONE;
    }
    return EXIT_DONE;
}

static int parse_argument(struct parse *parse, const char *arg)
{
    struct context *context = parse->context;
    if (arg[0] == '-' && arg[1] == '-')
        return parse_long_option(parse, arg);
    if (arg[0] == '-' && arg[1] != '\0')
        return parse_short_options(parse, arg);
    if (context->command != NULL) {
        if (suggest_wants_separator(context, parse->argc, parse->argv, parse->at - 1))
            return refuse_program(parse);
        context->args[context->arg_count++] = arg;
        return EXIT_DONE;
    }
    context->command = command_find(arg);
    parse->command = parse->at - 1;
    return context->command != NULL ? EXIT_DONE : refuse_command(context, arg);
}

/* After "--", which precedes a program or arguments that begin with "-". */
static int parse_rest(struct parse *parse)
{
    struct context *context = parse->context;
    const struct command *command = context->command;
    if (command != NULL && command->takes_program) {
        context->program = parse->argv + parse->at;
        parse->at = parse->argc;
        return EXIT_DONE;
    }
    bool acquires = command == &command_hold || command == &command_acquire;
    if (acquires && context->arg_count > 0 && parse->at < parse->argc && !context->settings.help)
        return refuse_program_of_hold(parse);
    while (command != NULL && parse->at < parse->argc)
        context->args[context->arg_count++] = parse->argv[parse->at++];
    return EXIT_DONE;
}

static int parse_arguments(struct parse *parse)
{
    int status = EXIT_DONE;
    while (status == EXIT_DONE && parse->at < parse->argc) {
        const char *arg = parse->argv[parse->at++];
        status = strcmp(arg, "--") == 0 ? parse_rest(parse) : parse_argument(parse, arg);
    }
    return status;
}

static int check_arg_count(const struct context *context)
{
    const struct command *command = context->command;
    if (context->arg_count < command->min_args)
        return usage_error(context, "%s: missing argument; usage: leasehold %s %s", command->name,
                           command->name, command->args);
    if (context->arg_count <= command->max_args)
        return EXIT_DONE;
    const char *extra = context->args[command->max_args];
    if (command->max_args == 0)
        return usage_error(context, "%s takes no argument, but got '%s'", command->name, extra);
    return usage_error(context, "%s takes at most %zu argument%s, but got '%s' too", command->name,
                       command->max_args, command->max_args > 1 ? "s" : "", extra);
}

/* ---- precedence ---- */

static bool each_option(const struct command *command,
                        bool (*apply)(const struct option *option, struct settings *settings,
                                      struct text *why),
                        struct settings *settings, struct text *why)
{
    const struct option *const *lists[] = {global_options, command->options};
    for (size_t i = 0; i < 2; i++) {
        for (const struct option *const *at = lists[i]; at != NULL && *at != NULL; at++) {
            if (!apply(*at, settings, why))
                return false;
        }
    }
    return true;
}

static bool apply_default(const struct option *option, struct settings *settings, struct text *why)
{
    return option->default_value == NULL ||
           option_set(option, option->default_value, settings, why);
}

static bool apply_environment(const struct option *option, struct settings *settings,
                              struct text *why)
{
    const char *value = option->environment != NULL ? getenv(option->environment) : NULL;
    if (value == NULL || value[0] == '\0')
        return true;
    text_add(why, option->environment);
    text_add(why, ": ");
    if (!option_set(option, value, settings, why))
        return false;
    text_clear(why);
    return true;
}

static int apply_flags(struct parse *parse)
{
    char message[512];
    struct text why;
    text_init(&why, message, sizeof message);
    for (size_t i = 0; i < parse->flag_count; i++) {
        const struct flag *flag = &parse->flags[i];
        if (option_set(flag->option, flag->value, &parse->context->settings, &why))
            continue;
        if (flag->letter != 0)
            return usage_error(parse->context, "-%c: %s", flag->letter, message);
        return usage_error(parse->context, "--%.*s: %s", (int)flag->length, flag->name, message);
    }
    return EXIT_DONE;
}

/* From --config or LEASEHOLD_CONFIG, or the first standard file that exists; NULL: none. */
static const char *config_path(const struct parse *parse, char *path, size_t size)
{
    for (size_t i = parse->flag_count; i-- > 0;) {
        if (parse->flags[i].option == &option_config)
            return parse->flags[i].value;
    }
    const char *named = getenv(option_config.environment);
    if (named != NULL && named[0] != '\0')
        return named;
    const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (base != NULL && base[0] == '/')
        (void)snprintf(path, size, "%s/leasehold/config.yaml", base);
    else if (home != NULL && home[0] == '/')
        (void)snprintf(path, size, "%s/.config/leasehold/config.yaml", home);
    if (path[0] != '\0' && access(path, F_OK) == 0)
        return path;
    (void)snprintf(path, size, "/etc/leasehold/config.yaml");
    return access(path, F_OK) == 0 ? path : NULL;
}

/* Records where the store URL comes from, which doctor and warnings print. */
static void note_source(struct context *context, const char *before, enum setting_source source)
{
    if (context->settings.store != before)
        context->store_from = source;
}

/* Redacts the password in argv, which every user of the host can read. Keeps a copy of the URL. */
static void hide_store_url(const struct parse *parse)
{
    static char kept[URL_SIZE];
    const char **store = &parse->context->settings.store;
    for (int i = 0; i < parse->argc; i++) {
        size_t length = strlen(parse->argv[i]);
        if (*store < parse->argv[i] || *store > parse->argv[i] + length || length >= sizeof kept)
            continue;
        char *url = parse->argv[i] + (*store - parse->argv[i]);
        text_copy(kept, sizeof kept, url);
        *store = kept;
        url_redact_in_place(url);
        return;
    }
}

static int resolve_settings(struct parse *parse)
{
    struct context *context = parse->context;
    const char *const *store = &context->settings.store, *before = *store;
    static char path[PATH_SIZE];
    char message[768];
    struct text why;
    text_init(&why, message, sizeof message);
    (void)each_option(context->command, apply_default, &context->settings, &why);
    context->settings.config = config_path(parse, path, sizeof path);
    if (context->settings.config != NULL &&
        !config_apply(context->settings.config, &context->settings, &why))
        return usage_error(context, "%s", message);
    note_source(context, before, FROM_CONFIG);
    before = *store;
    if (!each_option(context->command, apply_environment, &context->settings, &why))
        return usage_error(context, "%s", message);
    note_source(context, before, FROM_ENVIRONMENT);
    before = *store;
    int status = apply_flags(parse);
    note_source(context, before, FROM_FLAG);
    if (context->store_from == FROM_FLAG)
        hide_store_url(parse);
    return status;
}

/* Without a command, --help means `leasehold help`; so does the program alone, as an error. */
static int choose_help(struct context *context, bool alone)
{
    if (alone) {
        (void)command_help.run(context);
        return EXIT_USAGE;
    }
    if (!context->settings.help)
        return usage_error(context, "no command given; 'leasehold help' lists the commands");
    context->command = &command_help;
    context->settings.help = false;
    return EXIT_DONE;
}

int parse_command_line(int argc, char **argv, struct context *context)
{
    struct parse parse = {.context = context, .argv = argv, .argc = argc, .at = 1};
    /* A cluster such as -nqv has at most one flag per byte. */
    size_t max = 1;
    for (int i = 1; i < argc; i++)
        max += strlen(argv[i]) + 1;
    parse.flags = calloc(max, sizeof *parse.flags);
    context->args = calloc((size_t)argc + 1, sizeof *context->args);
    if (parse.flags == NULL || context->args == NULL) {
        free(parse.flags);
        return output_error(context, LH_FAILED, "out of memory");
    }
    /* Looks for --json first, so that errors in earlier arguments are JSON too. */
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        context->settings.json = context->settings.json || strcmp(argv[i], "--json") == 0;
    int status = parse_arguments(&parse);
    if (status == EXIT_DONE && context->command == NULL)
        status = choose_help(context, /* alone= */ argc == 1);
    if (status == EXIT_DONE && context->command != NULL && !context->settings.help) {
        status = check_arg_count(context);
        if (status == EXIT_DONE)
            status = resolve_settings(&parse);
    }
    free(parse.flags);
    return status;
}
