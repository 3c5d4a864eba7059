/* SPDX-License-Identifier: Apache-2.0 */
/* leasehold break: an operator takes a key from its holder, and says why. */
#include "face/cli/cli.h"

static const struct option option_now = {
    .name = "now",
    .kind = VALUE_FLAG,
    .at = offsetof(struct settings, at_once),
    .flag_only = true,
    .help = "free it at once: only tokens keep the old holder out"};

static int cmd_break(struct context *context)
{
    const char *key = context->args[0];
    const struct settings *settings = &context->settings;
    struct lh_report report;
    if (settings->reason == NULL)
        return usage_error(context, "break needs a reason: leasehold break KEY --reason TEXT");
    int status = check_keys(context, context->args, 1);
    if (status == EXIT_DONE)
        status = context_open_store(context);
    if (status != EXIT_DONE)
        return status;
    if (lh_break(context->client, key, settings->reason, settings->at_once, &report) != LH_OK)
        return output_report(context, key, &report);
    const char *hint = "";
    if (report.effect == LH_EFFECT_ASKED)
        hint = "; --now frees it at once";
    else if (report.effect == LH_EFFECT_NONE && report.state == LH_COOLING_DOWN)
        hint = "; 'leasehold clear' ends the cooldown";
    return output_effect(context, key, &report, hint);
}

static const struct option *const break_options[] = {&option_reason, &option_now, NULL};

const struct command command_break = {
    .name = "break",
    .args = "KEY --reason TEXT",
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
    .min_args = 1,
    .max_args = 1,
    .run = cmd_break,
};
