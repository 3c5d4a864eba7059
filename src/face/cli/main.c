/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line: finds the command that was asked for and hands over to it. It decides nothing
 * about locks. What users type and read is a contract; so are the exit statuses.
 */
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"

enum { EXIT_DONE = 0, EXIT_USAGE = 64, EXIT_INTERNAL = 70 };

static int say_help(void);

static int say_version(void)
{
    puts("leasehold " LH_VERSION);
    puts("stores: none built in");
    return EXIT_DONE;
}

static const struct command {
    const char *name;
    const char *flag; /* how other programs spell it */
    const char *does;
    int (*run)(void);
} commands[] = {
    {.name = "help", .flag = "--help", .does = "print this list", .run = say_help},
    {.name = "version",
     .flag = "--version",
     .does = "print the version and what is built in",
     .run = say_version},
};
enum { COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]) };

static int say_help(void)
{
    puts("usage: leasehold COMMAND\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        printf("  %-9s %s\n", commands[i].name, commands[i].does);
    }
    return EXIT_DONE;
}

static const struct command *find_command(const char *word)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(word, commands[i].name) == 0 || strcmp(word, commands[i].flag) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}

static int refuse_unknown(const char *word)
{
    const char *names[COMMAND_COUNT];
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        names[i] = commands[i].name;
    }
    fprintf(stderr, "leasehold: unknown command '%s'; the closest is '%s'\n", word,
            nearest_word(word, names, COMMAND_COUNT));
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fputs("leasehold: say what to do; 'leasehold help' lists the commands\n", stderr);
        return EXIT_USAGE;
    }
    const struct command *command = find_command(argv[1]);
    if (command == NULL) {
        return refuse_unknown(argv[1]);
    }
    if (argc > 2) {
        fprintf(stderr, "leasehold: %s takes no argument, but got '%s'\n", command->name, argv[2]);
        return EXIT_USAGE;
    }
    int status = command->run();
    /* A full disk or a closed pipe must not look like success. */
    return fflush(stdout) == 0 && !ferror(stdout) ? status : EXIT_INTERNAL;
}
