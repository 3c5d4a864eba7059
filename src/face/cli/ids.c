/* SPDX-License-Identifier: Apache-2.0 */
/* Options and output of the commands on ids. It makes no decisions about ids. */
#include "face/cli/ids.h"

#include "wire/json_text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const struct option option_keep = {.name = "keep",
                                   .kind = VALUE_DURATION,
                                   .at = offsetof(struct settings, keep_ms),
                                   .value = "DUR",
                                   .min = 1,
                                   .max = (int64_t)366 * 24 * 3600 * 1000,
                                   .default_value = "24h",
                                   .help = "how long ID stays done"};
const struct option option_watermark = {.name = "watermark",
                                        .kind = VALUE_TEXT,
                                        .at = offsetof(struct settings, watermark),
                                        .value = "NAME",
                                        .flag_only = true,
                                        .help =
                                            "keep ID also until this watermark has passed --until"};
const struct option option_until = {.name = "until",
                                    .kind = VALUE_TEXT,
                                    .at = offsetof(struct settings, until),
                                    .value = "VALUE",
                                    .flag_only = true,
                                    .help = "position that --watermark must have passed"};

int ids_read_done(const struct context *context, struct lh_completion *out)
{
    static const struct lh_completion default_value = LH_COMPLETION_INIT;
    const struct settings *settings = &context->settings;
    if ((settings->watermark == NULL) != (settings->until == NULL))
        return usage_error(context, "--watermark and --until must be given together");
    *out = default_value;
    out->keep_ms = settings->keep_ms;
    out->result = settings->result;
    out->watermark = settings->watermark;
    out->until = settings->until;
    return EXIT_DONE;
}

int ids_read_payload(const struct context *context, char hash[IDS_HASH_SIZE],
                     const char **out_payload)
{
    const char *given = context->settings.payload_hash;
    size_t length = given != NULL ? strlen(given) : 0;
    if (length >= IDS_HASH_SIZE ||
        (given != NULL && strspn(given, "0123456789abcdefABCDEF") != length))
        return usage_error(context, "--payload-hash: give at most %d hexadecimal digits",
                           IDS_HASH_SIZE - 1);
    for (size_t i = 0; given != NULL && i <= length; i++)
        hash[i] = (char)tolower((unsigned char)given[i]);
    *out_payload = given != NULL ? hash : NULL;
    return EXIT_DONE;
}

bool ids_is_state(enum lh_outcome outcome)
{
    return outcome == LH_OK || outcome == LH_BUSY || outcome == LH_DONE;
}

const char *ids_state_name(const struct lh_once *once, const struct lh_report *report)
{
    if (report->outcome == LH_BUSY)
        return "running";
    if (report->outcome != LH_DONE)
        return "new";
    return once != NULL && once->status != 0 ? "failed" : "done";
}

void ids_to_json(struct text *json, const char *id, const struct lh_once *once,
                 const struct lh_report *report)
{
    bool running = report->outcome == LH_BUSY, done = report->outcome == LH_DONE;
    char since[32];
    json_add_string(json, "id", id);
    json_add_string(json, "state", ids_state_name(once, report));
    json_add_token(json, "token", once != NULL ? once->token : 0);
    json_add_string(json, "holder", report->holder[0] != '\0' ? report->holder : NULL);
    (void)format_time_ago(running || done ? report->since_ms : -1, since);
    json_add_string(json, "since", since[0] != '\0' ? since : NULL);
    json_add_length(json, "expires_in_ms", running ? report->ends_in_ms : -1);
    json_add_length(json, "kept_for_ms", done ? report->ends_in_ms : -1);
    json_add_length(json, "exit_status", done && once != NULL ? once->status : -1);
    json_add_string(json, "result", done && once != NULL ? once->result : NULL);
}

static void ids_output_json(const struct context *context, const char *id,
                            const struct lh_once *once, const struct lh_report *report,
                            bool decided)
{
    char line[LINE_SIZE];
    struct text text;
    text_init(&text, line, sizeof line);
    json_begin(&text);
    if (decided)
        json_add_string(&text, "outcome", lh_outcome_name(report->outcome));
    if (decided && report->outcome != LH_OK)
        json_add_string(&text, "refusal", report_refusal_word(report));
    ids_to_json(&text, id, once, report);
    json_add_string(&text, "store", context->shown);
    json_end(&text);
    puts(line);
}

void ids_output(const struct context *context, const char *id, const struct lh_once *once,
                const struct lh_report *report, bool decided)
{
    if (context->settings.json)
        ids_output_json(context, id, once, report, decided);
    else if (report->outcome == LH_BUSY)
        printf("running %s\n", report->holder);
    else if (report->outcome == LH_DONE)
        printf("%s%s%s\n", ids_state_name(once, report),
               once != NULL && once->result[0] != '\0' ? " " : "",
               once != NULL ? once->result : "");
    else if (once != NULL && once->token != 0)
        printf("new %" PRIu64 "\n", once->token);
    else
        puts("new");
}

int ids_output_done(const struct context *context, const char *what, const char *id,
                    const char *state)
{
    char line[LINE_SIZE];
    struct text text;
    if (!context->settings.json) {
        if (!context->settings.quiet)
            printf("%s: %s\n", what, id);
        return EXIT_DONE;
    }
    text_init(&text, line, sizeof line);
    json_begin(&text);
    json_add_string(&text, "outcome", lh_outcome_name(LH_OK));
    json_add_string(&text, "id", id);
    json_add_string(&text, "state", state);
    json_add_string(&text, "store", context->shown);
    json_end(&text);
    puts(line);
    return EXIT_DONE;
}
