/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion scripts for bash and zsh, generated from the tables: commands, options, choices and
 * steps. Keys come from `leasehold list --names` at completion time. completion_fish.c is for fish.
 */
#include "face/cli/manual.h"

#include <string.h>

static void put_flags(FILE *out, const struct option *const *options)
{
    for (; options != NULL && *options != NULL; options++) {
        fprintf(out, " --%s", (*options)->name);
        if ((*options)->letter != 0)
            fprintf(out, " -%c", (*options)->letter);
        char alias[ALIAS_SIZE];
        for (const char *at = (*options)->aliases; option_next_alias(&at, alias);)
            fprintf(out, " %s", alias);
    }
}

bool completion_takes_file(const struct option *option)
{
    return option->value != NULL &&
           (strcmp(option->value, "PATH") == 0 || strcmp(option->value, "FILE") == 0);
}

static void put_choice(FILE *out, const struct option *option)
{
    if (completion_takes_file(option))
        fprintf(out, "    --%s) compopt -o default; COMPREPLY=(); return ;;\n", option->name);
    if (option->kind != VALUE_CHOICE)
        return;
    fprintf(out, "    --%s) words='", option->name);
    for (size_t i = 0; option->choices[i] != NULL; i++)
        fprintf(out, "%s%s", i > 0 ? " " : "", option->choices[i]);
    fputs("' ;;\n", out);
}

/* The values of options. An option of several commands appears several times; the shell uses the
 * first match. */
static void put_choices(FILE *out)
{
    for (const struct option *const *at = global_options; *at != NULL; at++)
        put_choice(out, *at);
    for (size_t i = 0; command_at(i) != NULL; i++) {
        for (const struct option *const *at = command_at(i)->options; at != NULL && *at != NULL;
             at++)
            put_choice(out, *at);
    }
}

bool completion_takes_keys(const struct command *command)
{
    return command->args != NULL &&
           (strncmp(command->args, "KEY", 3) == 0 || strncmp(command->args, "[PREFIX", 7) == 0);
}

bool completion_takes_step(const struct command *command)
{
    return command->args != NULL && command->args[strcspn(command->args, " |")] == '|';
}

void completion_put_steps(FILE *out, const struct command *command)
{
    for (const char *at = command->args; *at != '\0' && *at != ' '; at++)
        fputc(*at == '|' ? ' ' : *at, out);
}

void completion_bash(FILE *out)
{
    fputs("# bash completion for leasehold; written by 'leasehold help --format bash'\n"
          "_leasehold() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    local command='' words='' i\n"
          "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
          "        case ${COMP_WORDS[i]} in\n"
          "        --) mapfile -t COMPREPLY < <(compgen -c -- \"$word\"); return ;;\n",
          out);
    fputs("        --store|--config) ((i++)) ;;\n        -*) ;;\n"
          "        *) command=${command:-${COMP_WORDS[i]}} ;;\n        esac\n    done\n"
          "    case $before in\n",
          out);
    put_choices(out);
    fputs("    esac\n"
          "    if [[ -z $words ]]; then\n        case $command in\n        '') words='",
          out);
    for (size_t i = 0; command_at(i) != NULL; i++)
        fprintf(out, "%s%s", i > 0 ? " " : "", command_at(i)->name);
    put_flags(out, global_options);
    fputs("' ;;\n", out);
    for (size_t i = 0; command_at(i) != NULL; i++) {
        const struct command *command = command_at(i);
        fprintf(out, "        %s) words='", command->name);
        put_flags(out, command->options);
        put_flags(out, global_options);
        fputs("'\n", out);
        if (completion_takes_keys(command))
            fputs("            [[ $word == -* ]] || words=$(leasehold list --names 2>/dev/null)\n",
                  out);
        if (completion_takes_step(command)) {
            fprintf(out, "            [[ $word == -* || $before != %s ]] || words='",
                    command->name);
            completion_put_steps(out, command);
            fputs("'\n", out);
        }
        fputs("            ;;\n", out);
    }
    fputs("        esac\n    fi\n"
          "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n}\n"
          "complete -F _leasehold leasehold\n",
          out);
}

/* Quotes text for a single-quoted argument of _arguments. */
static void put_zsh(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            fputs("'\\''", out);
        else if (strchr("[]:\\", *text) != NULL)
            fprintf(out, "\\%c", *text);
        else
            fputc(*text, out);
    }
}

static void put_zsh_option(FILE *out, const struct option *option, const char *flag)
{
    fprintf(out, "            '%s%s[", option->kind == VALUE_PAIR ? "*" : "", flag);
    put_zsh(out, option->help);
    fputc(']', out);
    if (option_takes_value(option)) {
        fputc(':', out);
        put_zsh(out, option->value);
        fputc(':', out);
    }
    if (option->kind == VALUE_CHOICE) {
        fputc('(', out);
        for (size_t i = 0; option->choices[i] != NULL; i++)
            fprintf(out, "%s%s", i > 0 ? " " : "", option->choices[i]);
        fputc(')', out);
    }
    fputs("' \\\n", out);
}

static void put_zsh_options(FILE *out, const struct option *const *options)
{
    for (; options != NULL && *options != NULL; options++) {
        const struct option *option = *options;
        char flag[ALIAS_SIZE];
        (void)snprintf(flag, sizeof flag, "--%s", option->name);
        put_zsh_option(out, option, flag);
        (void)snprintf(flag, sizeof flag, "-%c", option->letter);
        if (option->letter != 0)
            put_zsh_option(out, option, flag);
        for (const char *at = option->aliases; option_next_alias(&at, flag);)
            put_zsh_option(out, option, flag);
    }
}

void completion_zsh(FILE *out)
{
    fputs("#compdef leasehold\n"
          "# zsh completion for leasehold; written by 'leasehold help --format zsh'\n"
          "_leasehold_keys() {\n"
          "    local -a keys\n"
          "    keys=(${(f)\"$(leasehold list --names 2>/dev/null)\"})\n"
          "    compadd -a keys\n}\n"
          "_leasehold() {\n    local -a commands\n    commands=(\n",
          out);
    for (size_t i = 0; command_at(i) != NULL; i++) {
        fprintf(out, "        '%s:", command_at(i)->name);
        put_zsh(out, command_at(i)->summary);
        fputs("'\n", out);
    }
    fputs("    )\n    local curcontext=$curcontext state line\n    _arguments -C \\\n", out);
    put_zsh_options(out, global_options);
    fputs("            '1:command:->command' '*::argument:->argument'\n    case $state in\n"
          "    command) _describe command commands ;;\n"
          "    argument)\n        case $line[1] in\n",
          out);
    for (size_t i = 0; command_at(i) != NULL; i++) {
        const struct command *command = command_at(i);
        fprintf(out, "        %s) _arguments \\\n", command->name);
        put_zsh_options(out, command->options);
        put_zsh_options(out, global_options);
        if (completion_takes_step(command)) {
            fputs("            '1:step:(", out);
            completion_put_steps(out, command);
            fputs(")' \\\n", out);
        }
        fputs(completion_takes_keys(command) ? "            '*:key:_leasehold_keys' ;;\n"
                                             : "            '*:word:_default' ;;\n",
              out);
    }
    fputs("        esac ;;\n    esac\n}\n_leasehold \"$@\"\n", out);
}
