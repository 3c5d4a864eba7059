/* SPDX-License-Identifier: Apache-2.0 */
/* leasehold break: an operator takes a key from its holder, with a recorded reason. */
#include "face/cli/cli.h"

static const struct option option_now = {
    .name = "now",
    .kind = VALUE_FLAG,
    .at = offsetof(struct settings, at_once),
    .flag_only = true,
    .help = "free the key at once; only its token then excludes the old holder"};

static int cmd_break(struct context *context)
{
    const char *key = context->args[0];
    const struct settings *settings = &context->settings;
    struct lh_report report = LH_REPORT_INIT;
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
        "Asks the holder of KEY to stop. The holder is notified and can no longer renew; the key "
        "is free when the holder confirms, or when its lease ends. With --now the key is free at "
        "once, while the old holder may still work: the resource must then check tokens.\n\n"
        "break prints the state of the key, its holder and how long it may stay held. With --json "
        "effect is asked, freed (--now) or none (it was not held). The reason is recorded and "
        "shown by status and history. A key that is not held is not an error.",
    .example = "  leasehold break nightly --reason 'host is on fire'",
    .options = break_options,
    .min_args = 1,
    .max_args = 1,
    .run = cmd_break,
};
