/* SPDX-License-Identifier: Apache-2.0 */
/* leasehold break: an operator takes a key from its holder, and says why. */
#include "face/cli/cli.h"

static const struct option option_now = {
    .name = "now",
    .kind = VALUE_FLAG,
    .at = offsetof(struct settings, at_once),
    .flag_only = true,
    .does = "free it at once: only tokens keep the old holder out"};

static int run_break(struct visit *visit)
{
    const char *key = visit->words[0];
    const struct settings *settings = &visit->settings;
    struct lh_report report;
    if (settings->reason == NULL)
        return say_usage(visit, "break needs a reason: leasehold break KEY --reason TEXT");
    int status = take_check_keys(visit, visit->words, 1);
    if (status == EXIT_DONE)
        status = visit_open(visit);
    if (status != EXIT_DONE)
        return status;
    if (lh_break(visit->client, key, settings->reason, settings->at_once, &report) != LH_OK)
        return say_report(visit, key, &report);
    const char *hint = "";
    if (report.effect == LH_EFFECT_ASKED)
        hint = "; --now frees it at once";
    else if (report.effect == LH_EFFECT_NONE && report.state == LH_COOLING_DOWN)
        hint = "; 'leasehold clear' ends the cooldown";
    return say_effect(visit, key, &report, hint);
}

static const struct option *const break_options[] = {&option_reason, &option_now, NULL};

const struct command command_break = {
    .name = "break",
    .words = "KEY --reason TEXT",
    .summary = "take a key from its holder, for operators",
    .about =
        "Wants KEY back from whoever holds it. The holder is told and cannot renew any more; the "
        "key is free when it confirms, or when its lease ends. With --now it is free at once, and "
        "the old holder may still be at work: what the lock guards must then look at tokens.\n\n"
        "It prints the key's state, whom it asked to stop and until when the key may stay held; as "
        "JSON effect is asked, freed (--now) or none (nobody held it), beside the state. The "
        "reason is recorded and shown by status and history. A key that nobody holds is no error.",
    .example = "  leasehold break nightly --reason 'host is on fire'",
    .options = break_options,
    .least_words = 1,
    .most_words = 1,
    .run = run_break,
};
