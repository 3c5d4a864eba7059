/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold check: lets a command write, or not, by its token; for the side that is written to. It
 * asks no store of locks. The command takes the place of this process, with a descriptor that keeps
 * the guard: so there is nobody whose death could free it while the command writes.
 */
#include "face/cli/cli.h"

#include "io/disk.h"
#include "store/guard.h"
#include "wire/duration.h"
#include "wire/json_text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Scripts and shells use small numbers for their own files, and would close ours. */
enum { DESCRIPTOR_LEAST = 100 };

static const char own_guard[] = "give --guard PATH, a file on the side that is written to";

/* The one that was named, or beside the store's file. */
static int guard_path(struct visit *visit, char *path, size_t size)
{
    const char *named = visit->settings.guard;
    if (named == NULL) {
        int status = visit_url(visit);
        if (status != EXIT_DONE)
            return status;
        const char *file = visit_file(visit);
        if (file == NULL)
            return say_usage(visit, "%s is no file that a guard could stand beside; %s",
                             visit->shown, own_guard);
        if ((size_t)snprintf(path, size, "%s.guard", file) >= size)
            return say_usage(visit, "the path of the guard is too long");
        return EXIT_DONE;
    }
    if ((size_t)snprintf(path, size, "%s", named) >= size)
        return say_usage(visit, "--guard: the path is too long");
    return EXIT_DONE;
}

static int refuse(const struct visit *visit, enum guard_result result, uint64_t highest,
                  const char *why)
{
    const struct settings *settings = &visit->settings;
    struct lh_report report = {.since_ms = -1, .ends_in_ms = -1, .token = highest};
    if (result == GUARD_TROUBLE)
        return say_trouble(visit, LH_UNAVAILABLE, "the guard cannot tell, so nobody is let in: %s",
                           why);
    if (result == GUARD_STALE) {
        report.outcome = LH_STALE;
        report.refusal = lh_refusal_word(LH_VERB_CHECK, LH_STALE);
        (void)snprintf(report.text, sizeof report.text,
                       "stale: %.120s has seen token %" PRIu64 ", which is above %" PRIu64
                       "; nothing was changed",
                       settings->key, highest, settings->token);
    } else {
        char wait[DURATION_SHOWN];
        report.outcome = LH_BUSY;
        (void)snprintf(report.text, sizeof report.text,
                       "busy: another command writes under %.120s; waited %s for its end",
                       settings->key, duration_show(settings->wait_ms, wait));
    }
    return say_report(visit, settings->key, &report);
}

static int say_in(const struct visit *visit, const char *path)
{
    const struct settings *settings = &visit->settings;
    char line[LINE_SIZE];
    struct text text;
    if (!settings->json) {
        if (!settings->quiet)
            printf("current: %s, token %" PRIu64 "\n", settings->key, settings->token);
        return EXIT_DONE;
    }
    text_init(&text, line, sizeof line);
    json_begin(&text);
    json_add_words(&text, "outcome", "ok");
    json_add_words(&text, "key", settings->key);
    json_add_token(&text, "token", settings->token);
    json_add_words(&text, "guard", path);
    json_end(&text);
    puts(line);
    return EXIT_DONE;
}

/* Comes back only when it failed. */
static int become(const struct visit *visit, const char *program, int held)
{
    int file = fcntl(held, F_DUPFD, DESCRIPTOR_LEAST);
    if (file < 0) /* the limit is lower than that */
        file = fcntl(held, F_DUPFD, STDERR_FILENO + 1);
    if (file < 0)
        return say_trouble(visit, LH_FAILED, "the command cannot be given the guard: %s",
                           strerror(errno));
    (void)execv(program, visit->program);
    int error = errno;
    (void)close(file);
    (void)say_trouble(visit, LH_FAILED, "%s cannot be run: %s", visit->program[0], strerror(error));
    return EXIT_NOT_EXECUTABLE;
}

static int64_t deadline_of(const struct visit *visit)
{
    int64_t wait_ms = visit->settings.wait_ms;
    return wait_ms == LH_WAIT_FOREVER ? INT64_MAX : host_boot_ms() + wait_ms;
}

static int enter(const struct visit *visit, const struct disk *disk, const struct host_ids *ids,
                 const char *path, const char *program)
{
    char words[LH_TEXT_SIZE];
    struct text why;
    struct guard guard;
    uint64_t highest = 0;
    text_init(&why, words, sizeof words);
    text_add(&why, path);
    text_add(&why, ": ");
    if (guard_open(&guard, disk, ids, &why) != GUARD_IN)
        return refuse(visit, GUARD_TROUBLE, highest, words);
    enum guard_result result = guard_enter(&guard, visit->settings.key, visit->settings.token,
                                           deadline_of(visit), &highest, &why);
    int status = EXIT_DONE;
    if (result == GUARD_IN)
        guard_tend(&guard);
    if (result != GUARD_IN)
        status = refuse(visit, result, highest, words);
    else if (program != NULL)
        status = become(visit, program, guard.held);
    else
        status = say_in(visit, path);
    guard_close(&guard);
    return status;
}

/* What can be wrong before anything is touched. */
static int look_first(struct visit *visit, char *program, size_t size)
{
    const struct settings *settings = &visit->settings;
    if (settings->key == NULL || settings->token == 0)
        return say_usage(visit, "check needs both: leasehold check --key KEY --token N");
    int status = take_check_keys(visit, &settings->key, 1);
    if (status != EXIT_DONE || visit->program == NULL)
        return status;
    if (visit->program[0] == NULL)
        return say_usage(visit, "say what to run behind --");
    return visit_find_program(visit, program, size, "nothing was changed");
}

static int run_check(struct visit *visit)
{
    char program[PATH_MAX], path[PATH_MAX], words[LH_TEXT_SIZE];
    struct text why;
    struct disk disk;
    struct host_ids ids;
    int status = look_first(visit, program, sizeof program);
    if (status == EXIT_DONE)
        status = guard_path(visit, path, sizeof path);
    if (status != EXIT_DONE)
        return status;
    text_init(&why, words, sizeof words);
    if (!host_read(&ids, &why) || !disk_open(&disk, path, &why))
        return refuse(visit, GUARD_TROUBLE, /* highest= */ 0, words);
    say_detail(visit, "guard %s", path);
    status = enter(visit, &disk, &ids, path, visit->program != NULL ? program : NULL);
    disk_done(&disk);
    return status;
}

static const struct option option_key = {.name = "key",
                                         .kind = VALUE_TEXT,
                                         .at = offsetof(struct settings, key),
                                         .value = "KEY",
                                         .flag_only = true,
                                         .does = "the key that the token is of"};
static const struct option option_guard = {
    .name = "guard",
    .kind = VALUE_TEXT,
    .at = offsetof(struct settings, guard),
    .value = "PATH",
    .does = "the file that keeps the highest tokens; otherwise beside the store: its path and "
            ".guard"};

static const struct option *const check_options[] = {&option_key,  &option_token,   &option_guard,
                                                     &option_wait, &option_no_wait, NULL};

const struct command command_check = {
    .name = "check",
    .words = "--key KEY --token N [-- CMD...]",
    .summary = "let CMD write unless a newer token was seen",
    .about =
        "For the side that is written to. Keeps the highest token of each key in a guard file; who "
        "comes with a lower one was overtaken, perhaps without knowing it: status 78, and nothing "
        "is changed. Otherwise the token is on the disk before CMD starts, CMD runs in place of "
        "this program, and nobody else is let in with that key while CMD, or what it started, "
        "still runs. Other keys do not wait.\n\n"
        "Without CMD the answer only narrows the gap: between it and your write anything can "
        "happen. Give the write as CMD.\n\n"
        "All who write must use the same guard. A guard that cannot be read lets nobody in "
        "(status 69). Never put an older copy of it in its place.",
    .example = "  leasehold run report -- sh -c '\n"
               "      make-report >new.txt\n"
               "      leasehold check --key report --token \"$LEASEHOLD_TOKEN\" -- \\\n"
               "          mv new.txt report.txt'",
    .options = check_options,
    .most_words = 0,
    .takes_program = true,
    .run = run_check,
};
