/* SPDX-License-Identifier: Apache-2.0 */
/* leasehold release: releases a lease by its token. */
#include "face/cli/cli.h"

static int cmd_release(struct context *context)
{
    const char *key = context->args[0];
    const struct settings *settings = &context->settings;
    struct lh_report report = LH_REPORT_INIT;
    if (settings->token == 0)
        return usage_error(context, "release needs the token: leasehold release KEY --token N");
    int status = check_keys(context, context->args, 1);
    if (status == EXIT_DONE)
        status = context_open_store(context);
    if (status != EXIT_DONE)
        return status;
    enum lh_outcome outcome = (settings->if_held ? lh_release_token_if_held : lh_release_token)(
        context->client, key, settings->token, settings->cooldown_ms, &report);
    if (outcome != LH_OK)
        return output_report(context, key, &report);
    if (report.effect != LH_EFFECT_RELEASED)
        return output_effect(context, key, &report, /* hint= */ "");
    context->effect = "released";
    return output_done(context, "released", key);
}

static const struct option option_if_held = {
    .name = "if-held",
    .kind = VALUE_FLAG,
    .at = offsetof(struct settings, if_held),
    .flag_only = true,
    .help = "exit with 0 even if the token no longer holds the key"};

static const struct option *const release_options[] = {&option_token, &option_cooldown,
                                                       &option_if_held, NULL};

const struct command command_release = {
    .name = "release",
    .args = "KEY --token N",
    .summary = "release a lease by its token",
    .about =
        "Releases KEY, which the next waiter then acquires. With --cooldown the key is refused for "
        "that time: callers learn that the work was done recently. A token that no longer holds "
        "the key changes nothing and exits with status 78.\n\n"
        "With --if-held the status is 0 in that case, so that a release can be repeated. Still "
        "nothing is changed, no cooldown begins, and the output names the current holder, if any. "
        "With --json effect is released, gone or taken.",
    .example = "  leasehold release nightly --token \"$T\" --cooldown 5m\n"
               "  trap 'leasehold release nightly --token \"$T\" --if-held -q' EXIT",
    .options = release_options,
    .min_args = 1,
    .max_args = 1,
    .run = cmd_release,
};
