/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold help: lists the commands or describes one. Help text, manual pages and shell
 * completions are generated from the same tables.
 */
#include "face/cli/cli.h"
#include "face/cli/manual.h"
#include "face/cli/suggest.h"

#include <stdio.h>
#include <string.h>

enum { COLUMNS = 80, LEFT = 30 };

enum format { FORMAT_TEXT, FORMAT_MAN, FORMAT_BASH, FORMAT_ZSH, FORMAT_FISH };

static const char *const format_names[] = {"text", "man", "bash", "zsh", "fish", NULL};
static const struct option option_format = {
    .name = "format",
    .kind = VALUE_CHOICE,
    .at = offsetof(struct settings, format),
    .value = "FORM",
    .choices = format_names,
    .default_value = "text",
    .flag_only = true,
    .help = "output text, a manual page (man), or shell completion (bash, zsh, fish)"};

/* Wraps text at 80 columns, from column `at` on, with that indent; keeps empty lines. */
static void wrap(const char *text, int at, int indent)
{
    while (*text != '\0') {
        int length = (int)strcspn(text, " \n");
        if (at > indent && at + 1 + length > COLUMNS) {
            printf("\n%*s", indent, "");
            at = indent;
        } else if (at > indent) {
            putchar(' ');
            at++;
        }
        printf("%.*s", length, text);
        at += length;
        text += length;
        if (*text == '\n') {
            printf("\n\n%*s", indent, "");
            at = indent;
        }
        text += strspn(text, " \n");
    }
    putchar('\n');
}

static void show_option(const struct option *option)
{
    char left[64], right[256];
    struct text text;
    (void)snprintf(left, sizeof left, "%c%c%c --%s%s%s", option->letter != 0 ? '-' : ' ',
                   option->letter != 0 ? option->letter : ' ', option->letter != 0 ? ',' : ' ',
                   option->name, option->value != NULL ? " " : "",
                   option->value != NULL ? option->value : "");
    text_init(&text, right, sizeof right);
    option_describe(option, &text);
    if (option->default_value != NULL) {
        text_add(&text, " [");
        text_add(&text, option->default_value);
        text_add(&text, "]");
    }
    if (option->environment != NULL) {
        text_add(&text, " (");
        text_add(&text, option->environment);
        text_add(&text, ")");
    }
    printf("  %-*s ", LEFT - 3, left);
    wrap(right, LEFT, LEFT);
}

static void show_options(const char *title, const struct option *const *options)
{
    if (options == NULL)
        return;
    printf("\n%s:\n", title);
    for (; *options != NULL; options++)
        show_option(*options);
}

static void help_show_command(const struct command *command)
{
    printf("usage: leasehold %s%s%s%s\n\n", command->name,
           command->options != NULL ? " [OPTION...]" : "", command->args != NULL ? " " : "",
           command->args != NULL ? command->args : "");
    wrap(command->about, 0, 0);
    show_options("options", command->options);
    show_options("options of every command", global_options);
    if (command->example != NULL)
        printf("\nexamples:\n%s\n", command->example);
}

static void show_all(void)
{
    printf("usage: leasehold [OPTION...] COMMAND ...\n\n");
    for (size_t i = 0; command_at(i) != NULL; i++)
        printf("  %-9s %s\n", command_at(i)->name, command_at(i)->summary);
    show_options("options of every command", global_options);
    printf("\n'leasehold help COMMAND' describes a command.\n");
}

static int help_refuse(const struct context *context, const char *name)
{
    char hint[LH_TEXT_SIZE];
    struct text text;
    text_init(&text, hint, sizeof hint);
    suggest_command(name, &text);
    return usage_error(context, "there is no command '%.64s'%s", name, hint);
}

static int cmd_help(struct context *context)
{
    const struct command *command = context->settings.help ? context->command : NULL;
    if (command == NULL && context->arg_count > 0) {
        command = command_find(context->args[0]);
        if (command == NULL)
            return help_refuse(context, context->args[0]);
    }
    switch ((enum format)context->settings.format) {
    case FORMAT_MAN:
        manual_page(command, stdout);
        return EXIT_DONE;
    case FORMAT_BASH:
        completion_bash(stdout);
        return EXIT_DONE;
    case FORMAT_ZSH:
        completion_zsh(stdout);
        return EXIT_DONE;
    case FORMAT_FISH:
        completion_fish(stdout);
        return EXIT_DONE;
    case FORMAT_TEXT:
        break;
    }
    if (command != NULL)
        help_show_command(command);
    else
        show_all();
    return EXIT_DONE;
}

static const struct option *const help_options[] = {&option_format, NULL};

const struct command command_help = {
    .name = "help",
    .args = "[COMMAND]",
    .summary = "list the commands, or describe one",
    .about = "Lists the commands, or describes COMMAND, as leasehold COMMAND --help does.",
    .options = help_options,
    .max_args = 1,
    .run = cmd_help,
};
