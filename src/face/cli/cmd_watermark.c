/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold watermark: stores the position up to which a source was read. Positions are defined by
 * the source. The core enforces that they move forward only, and only from the expected position.
 */
#include "face/cli/cli.h"

#include "wire/json_text.h"

#include <stdio.h>
#include <string.h>

/* Printed and accepted for no position. Not "", which shells drop. */
static const char no_position[] = "-";

static int output_text(const struct text *text)
{
    puts(text->bytes);
    return EXIT_DONE;
}

/* `starts`: also prints START, where a poll by the clock of the store begins. */
static int output_position(const struct context *context, const struct lh_watermark *found,
                           bool starts)
{
    bool somewhere = found->value[0] != '\0';
    char line[LINE_SIZE];
    struct text text;
    text_init(&text, line, sizeof line);
    if (context->settings.json) {
        json_begin(&text);
        json_add_string(&text, "name", context->args[1]);
        json_add_string(&text, "value", somewhere ? found->value : NULL);
        if (starts)
            json_add_length(&text, "start_ms", found->start_ms);
        json_add_string(&text, "store", context->shown);
        json_end(&text);
        return output_text(&text);
    }
    text_add(&text, somewhere ? found->value : no_position);
    if (starts && found->start_ms >= 0) {
        text_add(&text, " ");
        text_add_i64(&text, found->start_ms);
    } else if (starts) {
        text_add(&text, " ");
        text_add(&text, no_position);
    }
    return output_text(&text);
}

static int output_moved(const struct context *context, const char *what)
{
    char line[LINE_SIZE];
    struct text text;
    if (!context->settings.json) {
        if (!context->settings.quiet)
            printf("%s: %s\n", what, context->args[1]);
        return EXIT_DONE;
    }
    text_init(&text, line, sizeof line);
    json_begin(&text);
    json_add_string(&text, "outcome", lh_outcome_name(LH_OK));
    json_add_string(&text, "name", context->args[1]);
    json_add_string(&text, "value", context->settings.to);
    json_add_string(&text, "store", context->shown);
    json_end(&text);
    return output_text(&text);
}

/* ---- the steps ---- */

static int watermark_read(struct context *context, bool starts)
{
    const char *name = context->args[1];
    struct lh_watermark found = LH_WATERMARK_INIT;
    struct lh_report report = LH_REPORT_INIT;
    if (lh_watermark_begin(context->client, name, context->settings.overlap_ms, &found, &report) !=
        LH_OK)
        return output_report(context, name, &report);
    return output_position(context, &found, starts);
}

static int watermark_step_get(struct context *context)
{
    return watermark_read(context, /* starts= */ false);
}

static int watermark_step_begin(struct context *context)
{
    return watermark_read(context, /* starts= */ true);
}

static int watermark_step_advance(struct context *context)
{
    const char *name = context->args[1], *expected = context->settings.expected;
    struct lh_report report = LH_REPORT_INIT;
    if (strcmp(expected, no_position) == 0)
        expected = "";
    if (lh_watermark_advance_id(context->client, name, expected, context->settings.to,
                                context->settings.request_id, &report) != LH_OK)
        return output_report(context, name, &report);
    return output_moved(context, "advanced");
}

static int watermark_step_set(struct context *context)
{
    const struct settings *settings = &context->settings;
    const char *name = context->args[1];
    struct lh_report report = LH_REPORT_INIT;
    if (lh_watermark_set(context->client, name, settings->to, settings->reason, &report) != LH_OK)
        return output_report(context, name, &report);
    return output_moved(context, "set");
}

struct watermark_step {
    const char *name;
    int (*run)(struct context *context);
    bool moves, expects, explains;
    const char *call;
};

static const struct watermark_step steps[] = {
    {.name = "get", .run = watermark_step_get, .call = "get NAME"},
    {.name = "begin", .run = watermark_step_begin, .call = "begin NAME"},
    {.name = "advance",
     .run = watermark_step_advance,
     .moves = true,
     .expects = true,
     .call = "advance NAME --to VALUE --expected VALUE"},
    {.name = "set",
     .run = watermark_step_set,
     .moves = true,
     .explains = true,
     .call = "set NAME --to VALUE --reason TEXT"},
};

/* Requires the options of the step, and refuses those that it would ignore. */
static int watermark_check_step(const struct context *context, const struct watermark_step *step)
{
    const struct settings *settings = &context->settings;
    if (step->moves != (settings->to != NULL) || step->expects != (settings->expected != NULL) ||
        step->explains != (settings->reason != NULL))
        return usage_error(context, "usage: leasehold watermark %s", step->call);
    if (settings->request_id != NULL && !step->expects)
        return usage_error(context, "--request-id is for advance");
    if (step->moves && strcmp(settings->to, no_position) == 0)
        return usage_error(context, "--to: '%s' means no position", no_position);
    return check_keys(context, context->args + 1, 1);
}

static int cmd_watermark(struct context *context)
{
    const struct watermark_step *step = NULL;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (strcmp(steps[i].name, context->args[0]) == 0)
            step = &steps[i];
    }
    if (step == NULL)
        return usage_error(context, "watermark has no step '%s'; use get, begin, advance or set",
                           context->args[0]);
    int status = watermark_check_step(context, step);
    if (status == EXIT_DONE)
        status = context_open_store(context);
    return status == EXIT_DONE ? step->run(context) : status;
}

static const struct option option_to = {.name = "to",
                                        .kind = VALUE_TEXT,
                                        .at = offsetof(struct settings, to),
                                        .value = "VALUE",
                                        .flag_only = true,
                                        .help = "advance, set: new position, at most 1 KiB"};
static const struct option option_expected = {
    .name = "expected",
    .kind = VALUE_TEXT,
    .at = offsetof(struct settings, expected),
    .value = "VALUE",
    .flag_only = true,
    .help = "advance: position when the poll began; - for none yet"};
static const struct option option_overlap = {
    .name = "overlap",
    .kind = VALUE_DURATION,
    .at = offsetof(struct settings, overlap_ms),
    .value = "DUR",
    .min = 1,
    .max = (int64_t)24 * 3600 * 1000,
    .default_value = "1m",
    .help = "begin: how far START is before the time of the store"};

static const struct option option_advance_id = {
    .name = "request-id",
    .kind = VALUE_TEXT,
    .at = offsetof(struct settings, request_id),
    .value = "ID",
    .flag_only = true,
    .help = "advance: make the call idempotent: the same ID again does not advance twice"};

static const struct option *const watermark_options[] = {
    &option_to, &option_expected, &option_advance_id, &option_reason, &option_overlap, NULL};

const struct command command_watermark = {
    .name = "watermark",
    .args = "get|begin|advance|set NAME",
    .summary = "store the position up to which a source was read",
    .about =
        "begin prints 'VALUE START': the stored position, and the time of the store minus the "
        "overlap, in milliseconds of Unix time. Read the source from VALUE on, handle everything, "
        "then advance from VALUE to the position of the source when you began: its own cursor or "
        "clock. Advance to START only if the source has neither. A - means no position yet, or a "
        "store without a persistent clock.\n\n"
        "advance moves forward only, and only from the position given by --expected. Otherwise "
        "another client was faster: nothing is changed and the status is 78; begin again. This "
        "holds even if that client moved to the same position: of several concurrent clients one "
        "gets status 0. A script that may miss the reply gives its own --request-id and repeats "
        "the same call, which succeeds again until another client moves the watermark. Positions "
        "compare as numbers, as timestamps (RFC 3339, with Z or an offset such as +02:00, which is "
        "converted to UTC) or byte by byte; the first position decides which. A position of "
        "another kind is refused with status 65. Positions are stored as given.\n\n"
        "get prints only the position. set is for operators: it moves in any direction, also "
        "backward, and records the reason.",
    .example = "  read -r value start < <(leasehold watermark begin orders)\n"
               "  next=$(handle-orders --since \"$value\") &&\n"
               "      leasehold watermark advance orders --to \"$next\" --expected \"$value\"",
    .options = watermark_options,
    .min_args = 2,
    .max_args = 2,
    .run = cmd_watermark,
};
