/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold check: lets a command write, or not, by its token; for the side that is written to. It
 * asks no store of locks. The command takes the place of this process, with a descriptor that keeps
 * the guard: so there is nobody whose death could free it while the command writes.
 */
#include "face/cli/cli.h"

#include "disk/disk.h"
#include "store/fence.h"
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
enum { DESCRIPTOR_MIN = 100 };

static const char fence_hint[] = "give --guard PATH, a file on the side that is written to";

/* The one that was named, or beside the store's file. */
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

static int check_refuse(const struct context *context, enum fence_result result, uint64_t highest,
                        const char *why)
{
    const struct settings *settings = &context->settings;
    struct lh_report report = {.since_ms = -1, .ends_in_ms = -1, .token = highest};
    if (result == FENCE_TROUBLE)
        return output_error(context, LH_UNAVAILABLE,
                            "the guard cannot tell, so nobody is let in: %s", why);
    if (result == FENCE_STALE) {
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
    return output_report(context, settings->key, &report);
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

/* Comes back only when it failed. */
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

static int64_t check_deadline_ms(const struct context *context)
{
    int64_t wait_ms = context->settings.wait_ms;
    return wait_ms == LH_WAIT_FOREVER ? INT64_MAX : host_boot_ms() + wait_ms;
}

static int check_enter(const struct context *context, const struct disk *disk,
                       const struct host_ids *ids, const char *path, const char *program)
{
    char message[LH_TEXT_SIZE];
    struct text why;
    struct fence fence;
    uint64_t highest = 0;
    text_init(&why, message, sizeof message);
    text_add(&why, path);
    text_add(&why, ": ");
    if (fence_open(&fence, disk, ids, &why) != FENCE_OK)
        return check_refuse(context, FENCE_TROUBLE, highest, message);
    enum fence_result result = fence_enter(&fence, context->settings.key, context->settings.token,
                                           check_deadline_ms(context), &highest, &why);
    int status = EXIT_DONE;
    if (result == FENCE_OK)
        fence_maintain(&fence);
    if (result != FENCE_OK)
        status = check_refuse(context, result, highest, message);
    else if (program != NULL)
        status = check_exec(context, program, fence.held);
    else
        status = output_current(context, path);
    fence_close(&fence);
    return status;
}

/* What can be wrong before anything is touched. */
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

static int cmd_check(struct context *context)
{
    char program[PATH_MAX], path[PATH_MAX], message[LH_TEXT_SIZE];
    struct text why;
    struct disk disk;
    struct host_ids ids;
    int status = check_arguments(context, program, sizeof program);
    if (status == EXIT_DONE)
        status = check_fence_path(context, path, sizeof path);
    if (status != EXIT_DONE)
        return status;
    text_init(&why, message, sizeof message);
    if (!host_read(&ids, &why) || !disk_open(&disk, path, &why))
        return check_refuse(context, FENCE_TROUBLE, /* highest= */ 0, message);
    output_detail(context, "guard %s", path);
    status = check_enter(context, &disk, &ids, path, context->program != NULL ? program : NULL);
    disk_done(&disk);
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
