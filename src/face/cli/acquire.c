/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold acquire: takes a key for its TTL and prints the token. The lease is not bound to this
 * process, which ends at once; a token that nobody could read is given back.
 */
#include "face/cli/cli.h"

#include <stdio.h>

/* What the store says of the grant, as JSON lines. */
struct telling {
    const struct visit *visit;
    struct text *text;
};

static bool tell(void *user, const struct lh_view *view)
{
    const struct telling *telling = user;
    say_view_json(telling->visit, view, "ok", /* past= */ false, telling->text);
    text_add(telling->text, "\n");
    return false;
}

/* Token lines on stdout, objects with --json and in the status file. */
static int answer(struct visit *visit, const struct lh_lease *lease)
{
    static char lines[LH_KEYS_MAX * LINE_SIZE];
    struct text text;
    struct telling telling = {visit, &text};
    struct lh_report report;
    bool json = visit->settings.json || visit->settings.status_file != NULL;
    text_init(&text, lines, sizeof lines);
    for (size_t i = 0; json && lh_key_at(lease, i) != NULL; i++) {
        const char *key = lh_key_at(lease, i);
        if (lh_look(visit->client, key, tell, &telling, &report) != LH_OK)
            return say_report(visit, key, &report);
    }
    int status = say_to_status_file(visit, lines);
    if (status != EXIT_DONE)
        return status;
    for (size_t i = 0; !visit->settings.json && lh_key_at(lease, i) != NULL; i++)
        printf("%llu\n", (unsigned long long)lh_token_at(lease, i));
    if (visit->settings.json)
        (void)fputs(lines, stdout);
    if (fflush(stdout) != 0 || ferror(stdout))
        return say_trouble(visit, LH_FAILED, "the token could not be written; nothing is held");
    return EXIT_DONE;
}

static int run_acquire(struct visit *visit)
{
    struct lh_acquire_options options;
    struct lh_lease *lease = NULL;
    struct lh_report report;
    int status = take_check_keys(visit, visit->words, visit->word_count);
    if (status == EXIT_DONE)
        status = visit_open(visit);
    if (status != EXIT_DONE)
        return status;
    take_options(visit, &options);
    options.unbound = true;
    status = take_keys(visit, visit->words, visit->word_count, &options, &lease);
    if (status != EXIT_DONE)
        return status;
    status = answer(visit, lease);
    if (status != EXIT_DONE) {
        (void)lh_abandon(&lease, NULL);
        return status;
    }
    if (lh_detach(&lease, &report) != LH_OK)
        return say_report(visit, NULL, &report);
    return EXIT_DONE;
}

static const struct option *const acquire_options[] = {TAKING_OPTIONS, NULL};

const struct command command_acquire = {
    .name = "acquire",
    .words = "KEY...",
    .summary = "take a key and print its token; it lives until its TTL unless renewed",
    .about =
        "Takes KEY and prints its fencing token alone on stdout. The lease belongs to nobody's "
        "process: it lasts for its TTL, unless it is renewed or released with the token.\n\n"
        "Several keys are taken in sorted order, all or none; there is one token in each line, in "
        "that order. While it waits for its turn, a terminal shows who holds the key.\n\n"
        "A lease that has run out is anybody's to take, by the store's clock, and its late holder "
        "is kept out by its token: there is nothing to steal from the dead, and nothing is ever "
        "stolen from the living. So --on-conflict steal-stale is fail in other words; to take a "
        "key from a living holder is an operator's decision: leasehold break.",
    .example = "  T=$(leasehold acquire nightly --ttl 10m -n) || exit\n"
               "  leasehold release nightly --token \"$T\"",
    .options = acquire_options,
    .least_words = 1,
    .most_words = LH_KEYS_MAX,
    .run = run_acquire,
};
