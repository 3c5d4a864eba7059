/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command, options and words of one call. Flags are found first and applied last: a flag beats the
 * environment, that the config file, and that the default. Nothing here opens a store.
 */
#include "face/cli/cli.h"

#include "base/nearest.h"
#include "wire/url_shown.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAMES_MAX = 64, PATH_SIZE = 4096 };

struct flag {
    const struct option *option;
    const char *value; /* NULL: it takes none */
    char spelled;      /* the letter, or 0: by name */
};

struct parse {
    struct visit *visit;
    char **argv;
    int argc, at;
    struct flag *flags;
    size_t flag_count;
};

/* ---- finding ---- */

static const struct option *find_in(const struct option *const *options, const char *name,
                                    size_t length, char letter)
{
    for (; options != NULL && *options != NULL; options++) {
        const struct option *option = *options;
        if (letter != 0 ? option->letter == letter
                        : strlen(option->name) == length && memcmp(option->name, name, length) == 0)
            return option;
    }
    return NULL;
}

static const struct option *find_option(const struct visit *visit, const char *name, size_t length,
                                        char letter)
{
    const struct option *found = find_in(global_options, name, length, letter);
    if (found == NULL && visit->command != NULL)
        found = find_in(visit->command->options, name, length, letter);
    return found;
}

static size_t add_names(const struct option *const *options, const char **names, size_t count)
{
    for (; options != NULL && *options != NULL && count < NAMES_MAX; options++)
        names[count++] = (*options)->name;
    return count;
}

static int refuse_flag(const struct visit *visit, const char *name, size_t length)
{
    const char *names[NAMES_MAX];
    char word[NEAREST_WORD_MAX + 1];
    size_t count = add_names(global_options, names, 0);
    (void)snprintf(word, sizeof word, "%.*s", (int)length, name);
    if (visit->command == NULL)
        return say_usage(visit, "unknown option '--%s' before the command; the closest is '--%s'",
                         word, nearest_word(word, names, count));
    count = add_names(visit->command->options, names, count);
    return say_usage(visit, "%s has no option '--%s'; the closest is '--%s'", visit->command->name,
                     word, nearest_word(word, names, count));
}

static int refuse_command(const struct visit *visit, const char *word)
{
    const char *names[NAMES_MAX];
    size_t count = 0;
    for (const struct command *command; (command = command_at(count)) != NULL; count++)
        names[count] = command->name;
    return say_usage(visit, "unknown command '%s'; the closest is '%s'", word,
                     nearest_word(word, names, count));
}

/* ---- reading the command line ---- */

static void keep_flag(struct parse *parse, const struct option *option, const char *value,
                      char spelled)
{
    if (option == &option_help)
        parse->visit->settings.help = true; /* at once: the words need not be right then */
    else
        parse->flags[parse->flag_count++] = (struct flag){option, value, spelled};
}

static int read_long(struct parse *parse, const char *word)
{
    const char *name = word + 2;
    size_t length = strcspn(name, "=");
    const char *value = name[length] == '=' ? name + length + 1 : NULL;
    const struct option *option = find_option(parse->visit, name, length, 0);
    if (option == NULL && parse->visit->command == NULL && strcmp(name, "version") == 0) {
        parse->visit->command = command_find(name);
        return EXIT_DONE;
    }
    if (option == NULL)
        return refuse_flag(parse->visit, name, length);
    if (!option_takes_value(option) && value != NULL)
        return say_usage(parse->visit, "--%s takes no value", option->name);
    if (option_takes_value(option) && value == NULL) {
        if (parse->at == parse->argc)
            return say_usage(parse->visit, "--%s needs a value: --%s %s", option->name,
                             option->name, option->value);
        value = parse->argv[parse->at++];
    }
    keep_flag(parse, option, value, 0);
    return EXIT_DONE;
}

/* "-nq", "-w5", "-w 5" */
static int read_letters(struct parse *parse, const char *word)
{
    for (const char *letter = word + 1; *letter != '\0'; letter++) {
        const struct option *option = find_option(parse->visit, NULL, 0, *letter);
        if (option == NULL)
            return say_usage(parse->visit, "unknown option '-%c' in '%s'; see 'leasehold help%s%s'",
                             *letter, word, parse->visit->command != NULL ? " " : "",
                             parse->visit->command != NULL ? parse->visit->command->name : "");
        if (!option_takes_value(option)) {
            keep_flag(parse, option, NULL, *letter);
            continue;
        }
        const char *value = letter[1] != '\0' ? letter + 1 : NULL;
        if (value == NULL && parse->at == parse->argc)
            return say_usage(parse->visit, "-%c needs a value: -%c %s", *letter, *letter,
                             option->value);
        keep_flag(parse, option, value != NULL ? value : parse->argv[parse->at++], *letter);
        return EXIT_DONE;
    }
    return EXIT_DONE;
}

static int read_word(struct parse *parse, const char *word)
{
    struct visit *visit = parse->visit;
    if (word[0] == '-' && word[1] == '-')
        return read_long(parse, word);
    if (word[0] == '-' && word[1] != '\0')
        return read_letters(parse, word);
    if (visit->command != NULL) {
        visit->words[visit->word_count++] = word;
        return EXIT_DONE;
    }
    visit->command = command_find(word);
    return visit->command != NULL ? EXIT_DONE : refuse_command(visit, word);
}

static int read_line(struct parse *parse)
{
    struct visit *visit = parse->visit;
    while (parse->at < parse->argc) {
        const char *word = parse->argv[parse->at++];
        bool ends = strcmp(word, "--") == 0;
        int status = ends ? EXIT_DONE : read_word(parse, word);
        if (status != EXIT_DONE)
            return status;
        if (!ends)
            continue;
        if (visit->command != NULL && visit->command->takes_program) {
            visit->program = parse->argv + parse->at;
            return EXIT_DONE;
        }
        while (visit->command != NULL && parse->at < parse->argc)
            visit->words[visit->word_count++] = parse->argv[parse->at++];
    }
    return EXIT_DONE;
}

static int check_words(const struct visit *visit)
{
    const struct command *command = visit->command;
    if (visit->word_count < command->least_words)
        return say_usage(visit, "%s needs more: leasehold %s %s", command->name, command->name,
                         command->words);
    if (visit->word_count <= command->most_words)
        return EXIT_DONE;
    const char *extra = visit->words[command->most_words];
    if (command->most_words == 0)
        return say_usage(visit, "%s takes no argument, but got '%s'", command->name, extra);
    return say_usage(visit, "%s takes at most %zu, but got '%s' too", command->name,
                     command->most_words, extra);
}

/* ---- order of authority ---- */

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
    return option->usual == NULL || option_set(option, option->usual, settings, why);
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
    char words[512];
    struct text why;
    text_init(&why, words, sizeof words);
    for (size_t i = 0; i < parse->flag_count; i++) {
        const struct flag *flag = &parse->flags[i];
        if (option_set(flag->option, flag->value, &parse->visit->settings, &why))
            continue;
        if (flag->spelled != 0)
            return say_usage(parse->visit, "-%c: %s", flag->spelled, words);
        return say_usage(parse->visit, "--%s: %s", flag->option->name, words);
    }
    return EXIT_DONE;
}

/* The file that was named, or the first of the usual ones that is there; NULL: none. */
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

/* The store is the one setting of which people must be told who said so. */
static void note_source(struct visit *visit, const char *before, enum source source)
{
    if (visit->settings.store != before)
        visit->store_from = source;
}

/* Everybody on this host can read the words that a program was called with: a password does not
 * stay there longer than it must. */
static void hide_store(const struct parse *parse)
{
    static char kept[URL_SIZE];
    const char **store = &parse->visit->settings.store;
    for (int i = 0; i < parse->argc; i++) {
        size_t length = strlen(parse->argv[i]);
        if (*store < parse->argv[i] || *store > parse->argv[i] + length || length >= sizeof kept)
            continue;
        char *url = parse->argv[i] + (*store - parse->argv[i]);
        text_copy(kept, sizeof kept, url);
        *store = kept;
        url_hide(url);
        return;
    }
}

static int settle(struct parse *parse)
{
    struct visit *visit = parse->visit;
    const char *const *store = &visit->settings.store, *before = *store;
    static char path[PATH_SIZE];
    char words[768];
    struct text why;
    text_init(&why, words, sizeof words);
    (void)each_option(visit->command, apply_default, &visit->settings, &why);
    visit->settings.config = config_path(parse, path, sizeof path);
    if (visit->settings.config != NULL &&
        !config_apply(visit->settings.config, &visit->settings, &why))
        return say_usage(visit, "%s", words);
    note_source(visit, before, FROM_CONFIG);
    before = *store;
    if (!each_option(visit->command, apply_environment, &visit->settings, &why))
        return say_usage(visit, "%s", words);
    note_source(visit, before, FROM_ENVIRONMENT);
    before = *store;
    int status = apply_flags(parse);
    note_source(visit, before, FROM_FLAG);
    if (visit->store_from == FROM_FLAG)
        hide_store(parse);
    return status;
}

/* No command was named: --help alone is the command of that name. */
static int choose_help(struct visit *visit)
{
    if (!visit->settings.help)
        return say_usage(visit, "say what to do; 'leasehold help' lists the commands");
    visit->command = &command_help;
    visit->settings.help = false;
    return EXIT_DONE;
}

int parse_call(int argc, char **argv, struct visit *visit)
{
    struct parse parse = {.visit = visit, .argv = argv, .argc = argc, .at = 1};
    /* A word of letters can hold as many flags as it has bytes. */
    size_t most = 1;
    for (int i = 1; i < argc; i++)
        most += strlen(argv[i]) + 1;
    parse.flags = calloc(most, sizeof *parse.flags);
    visit->words = calloc((size_t)argc + 1, sizeof *visit->words);
    if (parse.flags == NULL || visit->words == NULL) {
        free(parse.flags);
        return say_trouble(visit, LH_FAILED, "memory is short");
    }
    /* Whoever wants JSON wants it for the mistakes before it, too. */
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        visit->settings.json = visit->settings.json || strcmp(argv[i], "--json") == 0;
    int status = read_line(&parse);
    if (status == EXIT_DONE && visit->command == NULL)
        status = choose_help(visit);
    if (status == EXIT_DONE && visit->command != NULL && !visit->settings.help) {
        status = check_words(visit);
        if (status == EXIT_DONE)
            status = settle(&parse);
    }
    free(parse.flags);
    return status;
}
