/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold acquire: acquires keys for their TTL and prints the tokens. The lease is not bound to
 * this process, which exits at once. If the tokens cannot be printed, the lease is abandoned. With
 * --pid the lease lives as long as another process: see acquire_pid.c.
 */
#include "face/cli/run_command.h"

static int cmd_acquire(struct context *context)
{
    struct lh_acquire_options options;
    struct lh_lease *lease = NULL;
    struct lh_report report = LH_REPORT_INIT;
    int status = check_keys(context, context->args, context->arg_count);
    if (status == EXIT_DONE && context->settings.pid != 0)
        return acquire_pid(context);
    if (status == EXIT_DONE)
        status = context_open_store_to_acquire(context);
    if (status != EXIT_DONE)
        return status;
    acquire_fill_options(context, &options);
    options.unbound = true;
    status = acquire_keys(context, context->args, context->arg_count, &options, &lease);
    if (status != EXIT_DONE)
        return status;
    status = output_grants(context, lease);
    if (status != EXIT_DONE) {
        (void)lh_abandon(&lease, NULL);
        return status;
    }
    if (lh_detach(&lease, &report) != LH_OK)
        return output_report(context, NULL, &report);
    return EXIT_DONE;
}

static const struct option option_pid = {
    .name = "pid",
    .kind = VALUE_COUNT,
    .at = offsetof(struct settings, pid),
    .value = "PID",
    .min = 1,
    .max = INT_MAX,
    .flag_only = true,
    .help = "renew in the background while process PID lives ($$: this shell), then release"};
static const struct option option_pid_on_lost = {
    .name = "on-lost",
    .kind = VALUE_CHOICE,
    .at = offsetof(struct settings, on_lost),
    .value = "HOW",
    .choices = run_lost_names,
    .default_value = "warn",
    .help = "with --pid, if the lock is lost: send PID a TERM or KILL signal, or only end (warn)"};

static const struct option *const acquire_options[] = {ACQUIRE_OPTIONS, &option_pid,
                                                       &option_pid_on_lost, NULL};

const struct command command_acquire = {
    .name = "acquire",
    .args = "KEY...",
    .summary = "acquire keys for their TTL and print their tokens",
    .about =
        "Acquires KEY and prints its fencing token on stdout. The lease is not bound to a process: "
        "it lasts for its TTL, unless it is renewed or released with the token.\n\n"
        "Several keys are acquired in sorted order, all or none; the tokens are printed in that "
        "order, one per line. While acquire waits, it shows the current holder on a terminal.\n\n"
        "With --pid a process in the background renews the lease while process PID lives, and "
        "releases it within a second after PID has ended, however it ended. acquire itself exits "
        "as soon as it has printed the token. 'release' with the token ends the lease earlier. The "
        "holder name is host:PID. If the lock is lost, nobody is notified: check with 'renew "
        "--token', read the --status-file, which then says lost, or let --on-lost send PID a "
        "signal. --on-lost sends none if the lock was released by its token or taken by 'break "
        "--now'.\n\n"
        "An expired lease, by the clock of the store, can be acquired by any client; the fencing "
        "token excludes the late holder. A lease that has not expired is never taken over. "
        "Therefore --on-conflict steal-stale is equivalent to fail. Only an operator takes a key "
        "from a live holder: see leasehold break.",
    .example = "  T=$(leasehold acquire nightly --ttl 10m -n) || exit\n"
               "  leasehold release nightly --token \"$T\"\n"
               "  leasehold acquire nightly -n --pid $$ >/dev/null || exit",
    .options = acquire_options,
    .min_args = 1,
    .max_args = LH_KEYS_MAX,
    .run = cmd_acquire,
};
