/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold collect: removes from the store what nobody needs any more, where the store does not do
 * so by itself. Locks that are held, waited for or cooling are none of its business.
 */
#include "face/cli/cli.h"

#ifndef LH_WITHOUT_KUBERNETES
#include "store/k8s/survey.h"
#endif
#include "wire/json_text.h"

#include <stdio.h>
#include <string.h>

enum { PATIENCE_MS = 10000 };

struct collected {
    unsigned left, removed, taken;
    char why[512];
    bool usage; /* the call is wrong */
};

#ifndef LH_WITHOUT_KUBERNETES
static void add(struct collected *sum, const struct k8s_collection *collection)
{
    sum->left += collection->left;
    sum->removed += collection->removed;
    sum->taken += collection->taken;
    sum->usage = collection->usage;
    (void)snprintf(sum->why, sizeof sum->why, "%s", collection->why);
}

/* Leases, then the objects of a kind. */
static int collect_k8s(const struct visit *visit, struct collected *sum)
{
    const struct settings *settings = &visit->settings;
    const struct end_rules rules = {.done_when = settings->done_when,
                                    .failed_when = settings->failed_when,
                                    .ended_at = settings->ended_at};
    char words[LH_TEXT_SIZE];
    struct text why;
    struct k8s_collection collection;
    int64_t patience_ms = settings->store_timeout_ms > 0 ? settings->store_timeout_ms : PATIENCE_MS;
    const char *wrong = end_rules_broken(&rules);
    if (wrong != NULL)
        return say_usage(visit, "%s", wrong);
    text_init(&why, words, sizeof words);
    struct k8s_survey *survey = k8s_survey_new(visit->url, patience_ms, &why);
    if (survey == NULL)
        return say_trouble(visit, LH_UNAVAILABLE, "%s: %s", visit->shown, words);
    k8s_survey_collect(survey, (unsigned)settings->rate, &collection);
    add(sum, &collection);
    if (settings->kind != NULL && sum->why[0] == '\0') {
        k8s_survey_collect_kind(survey, settings->kind, &rules, (unsigned)settings->rate,
                                &collection);
        add(sum, &collection);
    }
    k8s_survey_free(&survey);
    return EXIT_DONE;
}
#endif

static void say_json(const struct visit *visit, const struct collected *collected)
{
    char line[LINE_SIZE];
    struct text text;
    text_init(&text, line, sizeof line);
    json_begin(&text);
    json_add_number(&text, "left", collected->left);
    json_add_number(&text, "removed", collected->removed);
    json_add_number(&text, "taken", collected->taken);
    json_add_words(&text, "store", visit->shown);
    json_end(&text);
    puts(line);
}

static int say_collected(const struct visit *visit, const struct collected *collected)
{
    if (collected->usage)
        return say_usage(visit, "%s", collected->why);
    if (visit->settings.json)
        say_json(visit, collected);
    else if (!visit->settings.quiet)
        printf("removed: %u of %u that nobody needed\n", collected->removed, collected->left);
    if (collected->why[0] != '\0')
        return say_trouble(visit, LH_UNAVAILABLE, "%s", collected->why);
    return EXIT_DONE;
}

static int run_collect(struct visit *visit)
{
    struct collected collected = {0};
    int status = visit_url(visit);
    if (status != EXIT_DONE)
        return status;
#ifndef LH_WITHOUT_KUBERNETES
    if (strncmp(visit->url, "k8s:", strlen("k8s:")) == 0)
        status = collect_k8s(visit, &collected);
    if (status != EXIT_DONE)
        return status;
#endif
    return say_collected(visit, &collected);
}

static const struct option option_rate = {.name = "rate",
                                          .kind = VALUE_COUNT,
                                          .at = offsetof(struct settings, rate),
                                          .value = "N",
                                          .least = 1,
                                          .most = 60000,
                                          .usual = "600",
                                          .flag_only = true,
                                          .does = "remove at most N in a minute"};
static const struct option option_collected_kind = {
    .name = "kind",
    .kind = VALUE_TEXT,
    .at = offsetof(struct settings, kind),
    .value = "KIND",
    .flag_only = true,
    .does = "remove objects of k8s-run, too, of a kind as in jobs.batch"};
static const struct option *const collect_options[] = {&option_rate,      &option_collected_kind,
                                                       &option_done_when, &option_failed_when,
                                                       &option_ended_at,  NULL};

const struct command command_collect = {
    .name = "collect",
    .summary = "remove what nobody needs any more from the store",
    .about =
        "Removes locks whose holders died long enough ago and for which nobody waits, "
        "cooldowns that are over, and ids that may be done again, from a store that does not "
        "do so by itself: in Kubernetes these are Leases, of every ?prefix= and ?names=. Those of "
        "another prefix are kept an hour longer unless the URL states a ?skew= for all. "
        "With --kind, objects of k8s-run as well: those past their cooldown or time limit, and "
        "those that somebody deleted and only our finalizer keeps. Programs that live for some "
        "minutes "
        "remove them, too, a few at a time; this is for those who do not want to wait, and "
        "for namespaces where only short commands lock. It can be called at any time, by "
        "several at once: what is taken in between is kept.\n\n"
        "The stores file: and redis:// forget by themselves; there it finds nothing.",
    .example = "  leasehold --store k8s://workflows collect --kind jobs.batch",
    .options = collect_options,
    .run = run_collect,
};
