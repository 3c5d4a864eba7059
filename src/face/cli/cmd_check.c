/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold check: admits a command by its token, on the side that is written to. It asks no store
 * of locks. The command replaces this process and inherits the descriptor that keeps other writers
 * out, so no other process can release it while the command writes.
 */
#include "face/cli/cli.h"

#include "leasehold_admin.h"
#include "wire/json_text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Shells and scripts redirect small descriptors, and would close ours. */
enum { DESCRIPTOR_MIN = 100 };

static const char fence_hint[] = "give --guard PATH, a file on the side that is written to";

/* The file of --guard, or beside the file of the store. */
static int check_fence_path(struct context *context, char *path, size_t size)
{
    const char *named = context->settings.fence;
    if (named == NULL) {
        int status = context_prepare_store(context);
        if (status != EXIT_DONE)
            return status;
        const char *file = context_store_path(context);
        if (file == NULL)
            return usage_error(context, "%s is no file that a guard could stand beside; %s",
                               context->shown, fence_hint);
        if ((size_t)snprintf(path, size, "%s.guard", file) >= size)
            return usage_error(context, "the path of the guard is too long");
        return EXIT_DONE;
    }
    if ((size_t)snprintf(path, size, "%s", named) >= size)
        return usage_error(context, "--guard: the path is too long");
    return EXIT_DONE;
}

static int output_current(const struct context *context, const char *path)
{
    const struct settings *settings = &context->settings;
    char line[LINE_SIZE];
    struct text text;
    if (!settings->json) {
        if (!settings->quiet)
            printf("current: %s, token %" PRIu64 "\n", settings->key, settings->token);
        return EXIT_DONE;
    }
    text_init(&text, line, sizeof line);
    json_begin(&text);
    json_add_string(&text, "outcome", "ok");
    json_add_string(&text, "key", settings->key);
    json_add_token(&text, "token", settings->token);
    json_add_string(&text, "guard", path);
    json_end(&text);
    puts(line);
    return EXIT_DONE;
}

/* Returns only when it failed. */
static int check_exec(const struct context *context, const char *program, int held)
{
    int file = fcntl(held, F_DUPFD, DESCRIPTOR_MIN);
    if (file < 0) /* the limit is lower than that */
        file = fcntl(held, F_DUPFD, STDERR_FILENO + 1);
    if (file < 0)
        return output_error(context, LH_FAILED, "the command cannot be given the guard: %s",
                            strerror(errno));
    (void)execv(program, context->program);
    int error = errno;
    (void)close(file);
    (void)output_error(context, LH_FAILED, "%s cannot be run: %s", context->program[0],
                       strerror(error));
    return EXIT_NOT_EXECUTABLE;
}

/* Checks what needs no file. */
static int check_arguments(struct context *context, char *program, size_t size)
{
    const struct settings *settings = &context->settings;
    if (settings->key == NULL || settings->token == 0)
        return usage_error(context, "check needs both: leasehold check --key KEY --token N");
    int status = check_keys(context, &settings->key, 1);
    if (status != EXIT_DONE || context->program == NULL)
        return status;
    if (context->program[0] == NULL)
        return usage_error(context, "say what to run behind --");
    return context_find_program(context, program, size, "nothing was changed");
}

/* A refusal is about the key; trouble is not. */
static int check_refuse(const struct context *context, const struct lh_report *report)
{
    bool refused = report->outcome == LH_STALE || report->outcome == LH_BUSY;
    return refused ? output_report(context, context->settings.key, report)
                   : output_plain_report(context, report);
}

static int cmd_check(struct context *context)
{
    const struct settings *settings = &context->settings;
    char program[PATH_MAX], path[PATH_MAX];
    struct lh_report report = LH_REPORT_INIT;
    int held = -1;
    int status = check_arguments(context, program, sizeof program);
    if (status == EXIT_DONE)
        status = check_fence_path(context, path, sizeof path);
    if (status != EXIT_DONE)
        return status;
    output_detail(context, "guard %s", path);
    if (lh_check(path, settings->key, settings->token, settings->wait_ms, &held, &report) != LH_OK)
        return check_refuse(context, &report);
    status = context->program != NULL ? check_exec(context, program, held)
                                      : output_current(context, path);
    (void)close(held);
    return status;
}

static const struct option option_key = {.name = "key",
                                         .kind = VALUE_TEXT,
                                         .at = offsetof(struct settings, key),
                                         .value = "KEY",
                                         .flag_only = true,
                                         .help = "the key that the token is of"};
static const struct option option_guard = {
    .name = "guard",
    .kind = VALUE_TEXT,
    .at = offsetof(struct settings, fence),
    .value = "PATH",
    .help = "the file that keeps the highest tokens; otherwise beside the store: its path and "
            ".guard"};

static const struct option *const check_options[] = {&option_key,  &option_token,   &option_guard,
                                                     &option_wait, &option_no_wait, NULL};

const struct command command_check = {
    .name = "check",
    .args = "--key KEY --token N [-- CMD...]",
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
    .max_args = 0,
    .takes_program = true,
    .run = cmd_check,
};
