/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The completion script for fish, generated from the same tables as those for bash and zsh. Keys
 * come from `leasehold list --names` at completion time; after "--" the completions are those of
 * the program that is run.
 */
#include "face/cli/manual.h"

#include <string.h>

static const char functions_end[] =
    "            set skip yes\n"
    "        else if not string match -q -- '-*' $word\n"
    "            echo $word\n"
    "            return\n"
    "        end\n"
    "    end\n"
    "end\n"
    "function __leasehold_in\n"
    "    set -l command (__leasehold_command)\n"
    "    test \"$command\" = \"$argv[1]\"\n"
    "    and not contains -- -- (commandline -opc)\n"
    "end\n"
    "function __leasehold_after\n"
    "    test (commandline -opc)[-1] = $argv[1]\n"
    "end\n"
    "function __leasehold_keys\n"
    "    leasehold list --names 2>/dev/null\n"
    "end\n"
    "function __leasehold_in_program\n"
    "    contains -- -- (commandline -opc)\n"
    "end\n"
    "function __leasehold_program\n"
    "    set -l words (commandline -opc)\n"
    "    set -l dashes (contains -i -- -- $words)\n"
    "    set -e words[1..$dashes]\n"
    "    complete -C (string join ' ' -- (string escape -- $words) (commandline -ct))\n"
    "end\n";

/* The functions that find the command on the line, past the values of global options. */
static void put_functions(FILE *out)
{
    fputs("function __leasehold_command\n"
          "    set -l skip no\n"
          "    for word in (commandline -opc)[2..-1]\n"
          "        if test $skip = yes\n"
          "            set skip no\n"
          "        else if contains -- $word",
          out);
    for (const struct option *const *at = global_options; *at != NULL; at++) {
        if (option_takes_value(*at))
            fprintf(out, " --%s", (*at)->name);
    }
    fputs("\n", out);
    fputs(functions_end, out);
}

static void put_quoted(FILE *out, const char *text)
{
    fputc('\'', out);
    for (; *text != '\0'; text++) {
        if (*text == '\'' || *text == '\\')
            fputc('\\', out);
        fputc(*text, out);
    }
    fputc('\'', out);
}

/* Completions of this command only; of all if it is NULL. */
static void put_begin(FILE *out, const struct command *command)
{
    fputs("complete -c leasehold", out);
    if (command != NULL)
        fprintf(out, " -n '__leasehold_in %s'", command->name);
}

static void put_value(FILE *out, const struct option *option)
{
    if (completion_takes_file(option)) {
        fputs(" -rF", out);
    } else if (option->kind == VALUE_CHOICE) {
        fputs(" -xa '", out);
        for (size_t i = 0; option->choices[i] != NULL; i++)
            fprintf(out, "%s%s", i > 0 ? " " : "", option->choices[i]);
        fputs("'", out);
    } else {
        fputs(" -x", out);
    }
}

static void put_fish_options(FILE *out, const struct command *command,
                             const struct option *const *options)
{
    for (; options != NULL && *options != NULL; options++) {
        put_begin(out, command);
        fprintf(out, " -l %s", (*options)->name);
        if ((*options)->letter != 0)
            fprintf(out, " -s %c", (*options)->letter);
        char alias[ALIAS_SIZE];
        for (const char *at = (*options)->aliases; option_next_alias(&at, alias);)
            fprintf(out, alias[1] == '-' ? " -l %s" : " -s %s", alias + (alias[1] == '-' ? 2 : 1));
        if (option_takes_value(*options))
            put_value(out, *options);
        fputs(" -d ", out);
        put_quoted(out, (*options)->help);
        fputc('\n', out);
    }
}

static void put_arguments(FILE *out, const struct command *command)
{
    if (completion_takes_keys(command)) {
        put_begin(out, command);
        fputs(" -a '(__leasehold_keys)'\n", out);
    }
    if (completion_takes_step(command)) {
        fprintf(out, "complete -c leasehold -n '__leasehold_after %s' -a '", command->name);
        completion_put_steps(out, command);
        fputs("'\n", out);
    }
}

void completion_fish(FILE *out)
{
    fputs("# fish completion for leasehold; written by 'leasehold help --format fish'\n", out);
    put_functions(out);
    fputs("complete -c leasehold -f\n"
          "complete -c leasehold -n __leasehold_in_program -a '(__leasehold_program)'\n",
          out);
    for (size_t i = 0; command_at(i) != NULL; i++) {
        fprintf(out,
                "complete -c leasehold -n '__leasehold_in \"\"; or __leasehold_after help' "
                "-a %s -d ",
                command_at(i)->name);
        put_quoted(out, command_at(i)->summary);
        fputc('\n', out);
    }
    put_fish_options(out, NULL, global_options);
    for (size_t i = 0; command_at(i) != NULL; i++) {
        put_fish_options(out, command_at(i), command_at(i)->options);
        put_arguments(out, command_at(i));
    }
}
