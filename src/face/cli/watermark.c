/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold watermark: how far a source was read. Positions are the source's own; that they move
 * only forward, and only from what their mover expects, is decided by the core.
 */
#include "face/cli/cli.h"

#include "wire/json_text.h"

#include <stdio.h>
#include <string.h>

/* For no position, where one could stand: a word that shells do not drop, as they would "". */
static const char nowhere[] = "-";

static int put_line(const struct text *text)
{
    puts(text->bytes);
    return EXIT_DONE;
}

/* `starts`: also where a poll by the store's clock would begin. */
static int say_position(const struct visit *visit, const struct lh_watermark *found, bool starts)
{
    bool somewhere = found->value[0] != '\0';
    char line[LINE_SIZE];
    struct text text;
    text_init(&text, line, sizeof line);
    if (visit->settings.json) {
        json_begin(&text);
        json_add_words(&text, "name", visit->words[1]);
        json_add_words(&text, "value", somewhere ? found->value : NULL);
        if (starts)
            json_add_length(&text, "start_ms", found->start_ms);
        json_add_words(&text, "store", visit->shown);
        json_end(&text);
        return put_line(&text);
    }
    text_add(&text, somewhere ? found->value : nowhere);
    if (starts && found->start_ms >= 0) {
        text_add(&text, " ");
        text_add_i64(&text, found->start_ms);
    } else if (starts) {
        text_add(&text, " ");
        text_add(&text, nowhere);
    }
    return put_line(&text);
}

static int say_moved(const struct visit *visit, const char *what)
{
    char line[LINE_SIZE];
    struct text text;
    if (!visit->settings.json) {
        if (!visit->settings.quiet)
            printf("%s: %s\n", what, visit->words[1]);
        return EXIT_DONE;
    }
    text_init(&text, line, sizeof line);
    json_begin(&text);
    json_add_words(&text, "outcome", lh_outcome_name(LH_OK));
    json_add_words(&text, "name", visit->words[1]);
    json_add_words(&text, "value", visit->settings.to);
    json_add_words(&text, "store", visit->shown);
    json_end(&text);
    return put_line(&text);
}

/* ---- the steps ---- */

static int look(struct visit *visit, bool starts)
{
    const char *name = visit->words[1];
    struct lh_watermark found;
    struct lh_report report;
    if (lh_watermark_begin(visit->client, name, visit->settings.overlap_ms, &found, &report) !=
        LH_OK)
        return say_report(visit, name, &report);
    return say_position(visit, &found, starts);
}

static int step_get(struct visit *visit)
{
    return look(visit, /* starts= */ false);
}

static int step_begin(struct visit *visit)
{
    return look(visit, /* starts= */ true);
}

static int step_advance(struct visit *visit)
{
    const char *name = visit->words[1], *expected = visit->settings.expected;
    struct lh_report report;
    if (strcmp(expected, nowhere) == 0)
        expected = "";
    if (lh_watermark_advance_id(visit->client, name, expected, visit->settings.to,
                                visit->settings.request_id, &report) != LH_OK)
        return say_report(visit, name, &report);
    return say_moved(visit, "advanced");
}

static int step_set(struct visit *visit)
{
    const struct settings *settings = &visit->settings;
    const char *name = visit->words[1];
    struct lh_report report;
    if (lh_watermark_set(visit->client, name, settings->to, settings->reason, &report) != LH_OK)
        return say_report(visit, name, &report);
    return say_moved(visit, "set");
}

struct step {
    const char *name;
    int (*take)(struct visit *visit);
    bool moves, expects, explains;
    const char *call;
};

static const struct step steps[] = {
    {.name = "get", .take = step_get, .call = "get NAME"},
    {.name = "begin", .take = step_begin, .call = "begin NAME"},
    {.name = "advance",
     .take = step_advance,
     .moves = true,
     .expects = true,
     .call = "advance NAME --to VALUE --expected VALUE"},
    {.name = "set",
     .take = step_set,
     .moves = true,
     .explains = true,
     .call = "set NAME --to VALUE --reason TEXT"},
};

/* Everything that it needs, and nothing that it would pass over. */
static int check_step(const struct visit *visit, const struct step *step)
{
    const struct settings *settings = &visit->settings;
    if (step->moves != (settings->to != NULL) || step->expects != (settings->expected != NULL) ||
        step->explains != (settings->reason != NULL))
        return say_usage(visit, "write: leasehold watermark %s", step->call);
    if (settings->request_id != NULL && !step->expects)
        return say_usage(visit, "--request-id is for advance");
    if (step->moves && strcmp(settings->to, nowhere) == 0)
        return say_usage(visit, "--to: '%s' stands for no position", nowhere);
    return take_check_keys(visit, visit->words + 1, 1);
}

static int run_watermark(struct visit *visit)
{
    const struct step *step = NULL;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (strcmp(steps[i].name, visit->words[0]) == 0)
            step = &steps[i];
    }
    if (step == NULL)
        return say_usage(visit, "watermark has no '%s'; there are get, begin, advance and set",
                         visit->words[0]);
    int status = check_step(visit, step);
    if (status == EXIT_DONE)
        status = visit_open(visit);
    return status == EXIT_DONE ? step->take(visit) : status;
}

static const struct option option_to = {.name = "to",
                                        .kind = VALUE_TEXT,
                                        .at = offsetof(struct settings, to),
                                        .value = "VALUE",
                                        .flag_only = true,
                                        .does = "advance, set: the new position, at most 1 KiB"};
static const struct option option_expected = {
    .name = "expected",
    .kind = VALUE_TEXT,
    .at = offsetof(struct settings, expected),
    .value = "VALUE",
    .flag_only = true,
    .does = "advance: where it stood when the poll began; - for nowhere yet"};
static const struct option option_overlap = {
    .name = "overlap",
    .kind = VALUE_DURATION,
    .at = offsetof(struct settings, overlap_ms),
    .value = "DUR",
    .least = 1,
    .most = (int64_t)24 * 3600 * 1000,
    .usual = "1m",
    .does = "begin: how much earlier than the store's time START is"};

static const struct option option_advance_id = {
    .name = "request-id",
    .kind = VALUE_TEXT,
    .at = offsetof(struct settings, request_id),
    .value = "ID",
    .flag_only = true,
    .does = "advance: names this advance; the same one again is a success, not a second advance"};

static const struct option *const watermark_options[] = {
    &option_to, &option_expected, &option_advance_id, &option_reason, &option_overlap, NULL};

const struct command command_watermark = {
    .name = "watermark",
    .words = "get|begin|advance|set NAME",
    .summary = "remember how far a source was read",
    .about =
        "begin prints 'VALUE START': the stored position, and the store's time less the overlap, "
        "in milliseconds of Unix time. Read the source from VALUE on, handle everything, then "
        "advance from VALUE to where the source stood when you began: its own cursor or clock. "
        "Only a source that has neither is advanced to START. A - stands for no position yet, and "
        "for a store without a lasting clock.\n\n"
        "advance moves forward only, and only from what --expected says; otherwise somebody else "
        "was faster, nothing is changed and the status is 78: begin again. That is so also when "
        "somebody else moved it to the same place: of several who race, one has status 0. A "
        "script that may not see the answer gives a --request-id of its own and repeats the same "
        "call: it succeeds again while nobody has moved the watermark since. Positions compare as "
        "numbers, as moments (RFC 3339, with Z or an offset such as +02:00, which is converted to "
        "UTC) or byte by byte, as the first one does; one of another order is refused with status "
        "65. A position is stored as it was given.\n\n"
        "get prints the position alone. set is for operators: it goes anywhere, also back, and "
        "the reason is recorded.",
    .example = "  read -r value start < <(leasehold watermark begin orders)\n"
               "  next=$(handle-orders --since \"$value\") &&\n"
               "      leasehold watermark advance orders --to \"$next\" --expected \"$value\"",
    .options = watermark_options,
    .least_words = 2,
    .most_words = 2,
    .run = run_watermark,
};
