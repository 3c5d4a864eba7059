/* SPDX-License-Identifier: Apache-2.0 */
/* Ids in words for people and in JSON, and what is to be remembered of them. Decides nothing. */
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
                                   .least = 1,
                                   .most = (int64_t)366 * 24 * 3600 * 1000,
                                   .usual = "24h",
                                   .does = "how long it is remembered that it was done"};
const struct option option_watermark = {
    .name = "watermark",
    .kind = VALUE_TEXT,
    .at = offsetof(struct settings, watermark),
    .value = "NAME",
    .flag_only = true,
    .does = "remember it also until this watermark has passed --until"};
const struct option option_until = {.name = "until",
                                    .kind = VALUE_TEXT,
                                    .at = offsetof(struct settings, until),
                                    .value = "VALUE",
                                    .flag_only = true,
                                    .does = "the position that --watermark must have passed"};

int ids_done(const struct visit *visit, struct lh_done *out)
{
    static const struct lh_done usual = LH_DONE_INIT;
    const struct settings *settings = &visit->settings;
    if ((settings->watermark == NULL) != (settings->until == NULL))
        return say_usage(visit, "--watermark and --until go together");
    *out = usual;
    out->keep_ms = settings->keep_ms;
    out->result = settings->result;
    out->watermark = settings->watermark;
    out->until = settings->until;
    return EXIT_DONE;
}

int ids_payload(const struct visit *visit, char hash[IDS_HASH_SIZE], const char **out_payload)
{
    const char *given = visit->settings.payload_hash;
    size_t length = given != NULL ? strlen(given) : 0;
    if (length >= IDS_HASH_SIZE ||
        (given != NULL && strspn(given, "0123456789abcdefABCDEF") != length))
        return say_usage(visit, "--payload-hash: give at most %d hexadecimal digits",
                         IDS_HASH_SIZE - 1);
    for (size_t i = 0; given != NULL && i <= length; i++)
        hash[i] = (char)tolower((unsigned char)given[i]);
    *out_payload = given != NULL ? hash : NULL;
    return EXIT_DONE;
}

bool ids_is_state(enum lh_outcome outcome)
{
    return outcome == LH_OK || outcome == LH_BUSY || outcome == LH_COOLING;
}

const char *ids_state(const struct lh_once *once, const struct lh_report *report)
{
    if (report->outcome == LH_BUSY)
        return "running";
    if (report->outcome != LH_COOLING)
        return "new";
    return once != NULL && once->status != 0 ? "failed" : "done";
}

void ids_add(struct text *json, const char *id, const struct lh_once *once,
             const struct lh_report *report)
{
    bool running = report->outcome == LH_BUSY, done = report->outcome == LH_COOLING;
    char since[32];
    json_add_words(json, "id", id);
    json_add_words(json, "state", ids_state(once, report));
    json_add_token(json, "token", once != NULL ? once->token : 0);
    json_add_words(json, "holder", report->holder[0] != '\0' ? report->holder : NULL);
    (void)say_time(running || done ? report->since_ms : -1, since);
    json_add_words(json, "since", since[0] != '\0' ? since : NULL);
    json_add_length(json, "expires_in_ms", running ? report->ends_in_ms : -1);
    json_add_length(json, "kept_for_ms", done ? report->ends_in_ms : -1);
    json_add_length(json, "exit_status", done && once != NULL ? once->status : -1);
    json_add_words(json, "result", done && once != NULL ? once->result : NULL);
}

static void put_json(const struct visit *visit, const char *id, const struct lh_once *once,
                     const struct lh_report *report, bool decided)
{
    char line[LINE_SIZE];
    struct text text;
    text_init(&text, line, sizeof line);
    json_begin(&text);
    if (decided)
        json_add_words(&text, "outcome", lh_outcome_name(report->outcome));
    if (decided && report->outcome != LH_OK)
        json_add_words(&text, "refusal", say_refusal_word(report));
    ids_add(&text, id, once, report);
    json_add_words(&text, "store", visit->shown);
    json_end(&text);
    puts(line);
}

void ids_say(const struct visit *visit, const char *id, const struct lh_once *once,
             const struct lh_report *report, bool decided)
{
    if (visit->settings.json)
        put_json(visit, id, once, report, decided);
    else if (report->outcome == LH_BUSY)
        printf("running %s\n", report->holder);
    else if (report->outcome == LH_COOLING)
        printf("%s%s%s\n", ids_state(once, report),
               once != NULL && once->result[0] != '\0' ? " " : "",
               once != NULL ? once->result : "");
    else if (once != NULL && once->token != 0)
        printf("new %" PRIu64 "\n", once->token);
    else
        puts("new");
}

int ids_say_done(const struct visit *visit, const char *what, const char *id, const char *state)
{
    char line[LINE_SIZE];
    struct text text;
    if (!visit->settings.json) {
        if (!visit->settings.quiet)
            printf("%s: %s\n", what, id);
        return EXIT_DONE;
    }
    text_init(&text, line, sizeof line);
    json_begin(&text);
    json_add_words(&text, "outcome", lh_outcome_name(LH_OK));
    json_add_words(&text, "id", id);
    json_add_words(&text, "state", state);
    json_add_words(&text, "store", visit->shown);
    json_end(&text);
    puts(line);
    return EXIT_DONE;
}
