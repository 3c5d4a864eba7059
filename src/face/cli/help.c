/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold help: what there is, and what a command does. The same tables give the text, the manual
 * pages and the shells' completions.
 */
#include "face/cli/cli.h"
#include "face/cli/manual.h"

#include <stdio.h>
#include <string.h>

enum { COLUMNS = 80, LEFT = 30 };

enum format { FORMAT_TEXT, FORMAT_MAN, FORMAT_BASH, FORMAT_ZSH };

static const char *const format_words[] = {"text", "man", "bash", "zsh", NULL};
static const struct option option_format = {
    .name = "format",
    .kind = VALUE_CHOICE,
    .at = offsetof(struct settings, format),
    .value = "FORM",
    .choices = format_words,
    .usual = "text",
    .flag_only = true,
    .does = "text, a manual page (man), or a shell's completion (bash, zsh)"};

/* Words from column `at` on, in lines of 80 columns that begin at `indent`; an empty line stays. */
static void wrap(const char *words, int at, int indent)
{
    while (*words != '\0') {
        int length = (int)strcspn(words, " \n");
        if (at > indent && at + 1 + length > COLUMNS) {
            printf("\n%*s", indent, "");
            at = indent;
        } else if (at > indent) {
            putchar(' ');
            at++;
        }
        printf("%.*s", length, words);
        at += length;
        words += length;
        if (*words == '\n') {
            printf("\n\n%*s", indent, "");
            at = indent;
        }
        words += strspn(words, " \n");
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
    text_add(&text, option->does);
    if (option->usual != NULL) {
        text_add(&text, " [");
        text_add(&text, option->usual);
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

static void show_command(const struct command *command)
{
    printf("usage: leasehold %s%s%s%s\n\n", command->name,
           command->options != NULL ? " [OPTION...]" : "", command->words != NULL ? " " : "",
           command->words != NULL ? command->words : "");
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
    printf("\n'leasehold help COMMAND' explains one.\n");
}

static int run_help(struct visit *visit)
{
    const struct command *command = visit->settings.help ? visit->command : NULL;
    if (command == NULL && visit->word_count > 0) {
        command = command_find(visit->words[0]);
        if (command == NULL)
            return say_usage(visit, "there is no command '%s'; 'leasehold help' lists them",
                             visit->words[0]);
    }
    switch ((enum format)visit->settings.format) {
    case FORMAT_MAN:
        manual_page(command, stdout);
        return EXIT_DONE;
    case FORMAT_BASH:
        completion_bash(stdout);
        return EXIT_DONE;
    case FORMAT_ZSH:
        completion_zsh(stdout);
        return EXIT_DONE;
    case FORMAT_TEXT:
        break;
    }
    if (command != NULL)
        show_command(command);
    else
        show_all();
    return EXIT_DONE;
}

static const struct option *const help_options[] = {&option_format, NULL};

const struct command command_help = {
    .name = "help",
    .words = "[COMMAND]",
    .summary = "list the commands, or explain one",
    .about = "Lists the commands, or explains one of them, as --help does behind a command.",
    .options = help_options,
    .most_words = 1,
    .run = run_help,
};
