/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold collect: removes from the store what nobody needs any more, where the store does not do
 * so by itself. Locks that are held, waited for or cooling are none of its business.
 */
#include "face/cli/cli.h"

#ifndef LH_WITHOUT_KUBERNETES
#include "store/k8s/k8s_probe.h"
#include "workload/workload_collect.h"
#endif
#include "wire/json_text.h"

#include <stdio.h>
#include <string.h>

enum { TIMEOUT_MS = 10000 };

struct collected {
    unsigned left, removed, taken;
    char why[512];
    bool usage; /* the call is wrong */
};

#ifndef LH_WITHOUT_KUBERNETES
static void collected_add(struct collected *sum, const struct k8s_collection *collection)
{
    sum->left += collection->left;
    sum->removed += collection->removed;
    sum->taken += collection->taken;
    sum->usage = collection->usage;
    (void)snprintf(sum->why, sizeof sum->why, "%s", collection->why);
}

/* Leases, then the objects of a kind. */
static int collect_k8s(const struct context *context, struct collected *sum)
{
    const struct settings *settings = &context->settings;
    const struct end_rules rules = {.done_when = settings->done_when,
                                    .failed_when = settings->failed_when,
                                    .ended_at = settings->ended_at};
    char message[LH_TEXT_SIZE];
    struct text why;
    struct k8s_collection collection;
    int64_t timeout_ms = settings->store_timeout_ms > 0 ? settings->store_timeout_ms : TIMEOUT_MS;
    const char *wrong = end_rules_broken(&rules);
    if (wrong != NULL)
        return usage_error(context, "%s", wrong);
    text_init(&why, message, sizeof message);
    struct k8s_probe *probe = k8s_probe_new(context->url, timeout_ms, &why);
    if (probe == NULL)
        return output_error(context, LH_UNAVAILABLE, "%s: %s", context->shown, message);
    k8s_probe_collect(probe, (unsigned)settings->rate, &collection);
    collected_add(sum, &collection);
    if (settings->kind != NULL && sum->why[0] == '\0') {
        workload_collect(probe, settings->kind, &rules, (unsigned)settings->rate, &collection);
        collected_add(sum, &collection);
    }
    k8s_probe_free(&probe);
    return EXIT_DONE;
}
#endif

static void output_collected_json(const struct context *context, const struct collected *collected)
{
    char line[LINE_SIZE];
    struct text text;
    text_init(&text, line, sizeof line);
    json_begin(&text);
    json_add_number(&text, "left", collected->left);
    json_add_number(&text, "removed", collected->removed);
    json_add_number(&text, "taken", collected->taken);
    json_add_string(&text, "store", context->shown);
    json_end(&text);
    puts(line);
}

static int output_collected(const struct context *context, const struct collected *collected)
{
    if (collected->usage)
        return usage_error(context, "%s", collected->why);
    if (context->settings.json)
        output_collected_json(context, collected);
    else if (!context->settings.quiet)
        printf("removed: %u of %u that nobody needed\n", collected->removed, collected->left);
    if (collected->why[0] != '\0')
        return output_error(context, LH_UNAVAILABLE, "%s", collected->why);
    return EXIT_DONE;
}

static int cmd_collect(struct context *context)
{
    struct collected collected = {0};
    int status = context_prepare_store(context);
    if (status != EXIT_DONE)
        return status;
#ifndef LH_WITHOUT_KUBERNETES
    if (strncmp(context->url, "k8s:", strlen("k8s:")) == 0)
        status = collect_k8s(context, &collected);
    if (status != EXIT_DONE)
        return status;
#endif
    return output_collected(context, &collected);
}

static const struct option option_rate = {.name = "rate",
                                          .kind = VALUE_COUNT,
                                          .at = offsetof(struct settings, rate),
                                          .value = "N",
                                          .min = 1,
                                          .max = 60000,
                                          .default_value = "600",
                                          .flag_only = true,
                                          .help = "remove at most N in a minute"};
static const struct option option_collected_kind = {
    .name = "kind",
    .kind = VALUE_TEXT,
    .at = offsetof(struct settings, kind),
    .value = "KIND",
    .flag_only = true,
    .help = "remove objects of k8s-run, too, of a kind as in jobs.batch"};
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
    .run = cmd_collect,
};
