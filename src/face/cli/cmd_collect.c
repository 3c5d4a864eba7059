/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold collect: removes from the store what nobody needs any more, where the store does not do
 * so by itself. It leaves locks alone that are held, waited for or cooling.
 */
#include "face/cli/cli.h"

#include "leasehold_admin.h"
#include "wire/json_text.h"

#include <stdio.h>

static void output_collected(const struct context *context, const struct lh_collected *collected)
{
    char line[LINE_SIZE];
    struct text text;
    if (!context->settings.json) {
        if (!context->settings.quiet)
            printf("removed: %u of %u that nobody needed\n", collected->removed, collected->left);
        return;
    }
    text_init(&text, line, sizeof line);
    json_begin(&text);
    json_add_number(&text, "left", collected->left);
    json_add_number(&text, "removed", collected->removed);
    json_add_number(&text, "taken", collected->taken);
    json_add_string(&text, "store", context->shown);
    json_end(&text);
    puts(line);
}

static int cmd_collect(struct context *context)
{
    const struct settings *settings = &context->settings;
    struct lh_collect_options options = LH_COLLECT_OPTIONS_INIT;
    struct lh_collected collected = LH_COLLECTED_INIT;
    struct lh_report report = LH_REPORT_INIT;
    int status = context_prepare_store(context);
    if (status != EXIT_DONE)
        return status;
    options.kind = settings->kind;
    options.done_when = settings->done_when;
    options.failed_when = settings->failed_when;
    options.ended_at = settings->ended_at;
    options.rate = (uint32_t)settings->rate;
    options.timeout_ms = settings->store_timeout_ms;
    enum lh_outcome outcome = lh_collect(context->url, &options, &collected, &report);
    if (outcome == LH_OK || collected.partial)
        output_collected(context, &collected);
    return outcome == LH_OK ? EXIT_DONE : output_plain_report(context, &report);
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
