/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold hold: a lock for programs in any language. Acquires keys, prints their tokens, and
 * renews until stdin ends or a signal arrives; then releases them. One process and no command: the
 * caller stops its work when this process ends. The end of stdin also ends a wait in the queue.
 */
#include "face/cli/run_command.h"
#include "face/cli/signals.h"

#include "run/input_end.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct hold {
    struct context *context;
    struct lh_lease *lease;
    int64_t began_ms;
    bool lost;
    struct lh_report loss;
};

static void hold_on_lost(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct hold *hold = user;
    (void)lease;
    hold->lost = true;
    hold->loss = *report;
    hold->loss.size = sizeof hold->loss;
}

/* EXIT_DONE, or another exit status after printing the error. */
static int hold_watch_input(struct context *context)
{
    const struct settings *settings = &context->settings;
    if (settings->until_signal)
        return EXIT_DONE;
    if (input_is_null(STDIN_FILENO) && !settings->quiet && !settings->json)
        fprintf(stderr, "leasehold: stdin is closed or /dev/null, so the lock is released at once; "
                        "give a pipe as stdin, or --until-signal\n");
    int end = input_end_watch(STDIN_FILENO);
    if (end < 0)
        return output_error(context, LH_FAILED, "cannot read stdin: %s", strerror(-end));
    context->cancel_fd = end;
    (void)snprintf(context->cancel_cause, sizeof context->cancel_cause, "stdin was closed");
    return EXIT_DONE;
}

/* Renews until the end. The signal that ended it; 0: the input, or the lock is lost. */
static int hold_wait(struct hold *hold, const struct signals *signals)
{
    struct lh_client *client = hold->context->client;
    int input_end = hold->context->cancel_fd > 0 ? hold->context->cancel_fd : -1;
    for (;;) {
        bool ended = signals_wait_also(signals, client, input_end, /* length_ms= */ -1);
        int number = signals_consume();
        (void)lh_step(client); /* a lock that was lost meanwhile is lost, whatever else arrived */
        if (hold->lost || ended || number != 0)
            return number;
    }
}

/* Releases the keys. The exit status, after printing why it is not EXIT_DONE. */
static int hold_finish(struct hold *hold, int number)
{
    struct context *context = hold->context;
    struct lh_report report = LH_REPORT_INIT;
    static char keys[LIST_SIZE];
    char key[LH_KEY_SIZE];
    struct text list;
    (void)snprintf(key, sizeof key, "%s", lh_key_at(hold->lease, 0));
    text_init(&list, keys, sizeof keys);
    for (size_t i = 0; lh_key_at(hold->lease, i) != NULL; i++) {
        text_add(&list, i > 0 ? " " : "");
        text_add(&list, lh_key_at(hold->lease, i));
    }
    if (hold->lost) {
        (void)lh_abandon(&hold->lease, NULL);
        return output_report(context, hold->loss.key[0] != '\0' ? hold->loss.key : key,
                             &hold->loss);
    }
    bool interrupted = number != 0 && !context->settings.until_signal;
    if (interrupted)
        (void)lh_abandon(&hold->lease, &report); /* no cooldown: the work may not be done */
    else
        (void)lh_release(&hold->lease, &report);
    if (report.outcome != LH_OK)
        return output_report(context, key, &report);
    output_released(context, keys, supervisor_now_ms() - hold->began_ms);
    return interrupted ? EXIT_SIGNAL + number : EXIT_DONE;
}

static int hold_keys(struct hold *hold, const struct signals *signals)
{
    struct context *context = hold->context;
    struct lh_acquire_options options;
    acquire_fill_options(context, &options);
    options.on_lost = hold_on_lost;
    options.user = hold;
    int status = acquire_keys(context, context->args, context->arg_count, &options, &hold->lease);
    if (status == EXIT_DONE)
        status = output_grants(context, hold->lease);
    hold->began_ms = supervisor_now_ms();
    if (status == EXIT_DONE)
        return hold_finish(hold, hold_wait(hold, signals));
    if (hold->lease != NULL)
        (void)lh_abandon(&hold->lease, NULL);
    return status;
}

static int cmd_hold(struct context *context)
{
    static struct hold hold;
    struct signals signals;
    int status = check_keys(context, context->args, context->arg_count);
    if (status == EXIT_DONE)
        status = hold_watch_input(context);
    if (status == EXIT_DONE)
        status = context_open_store_to_acquire(context);
    if (status == EXIT_DONE)
        status = nested_check(context);
    if (status != EXIT_DONE)
        return status;
    hold.context = context;
    /* From here on a signal gives the keys back first. No signals_end(): a second signal must not
     * end the process before main() has closed the store. */
    signals_begin(&signals);
    return hold_keys(&hold, &signals);
}

static const struct option option_until_signal = {
    .name = "until-signal",
    .kind = VALUE_FLAG,
    .at = offsetof(struct settings, until_signal),
    .flag_only = true,
    .help = "ignore stdin; release on HUP, INT or TERM, with exit status 0"};

static const struct option *const hold_options[] = {ACQUIRE_OPTIONS, &option_until_signal, NULL};

const struct command command_hold = {
    .name = "hold",
    .args = "KEY...",
    .summary = "hold keys until stdin is closed: a lock for every language",
    .about =
        "Acquires KEY, prints its fencing token on stdout, and renews the lease until stdin is "
        "closed. Then it releases KEY and exits with 0. A program starts hold with a pipe as "
        "stdin, reads one line for each key, works, and closes the pipe. If the program dies, the "
        "kernel closes the pipe. Data on stdin is discarded.\n\n"
        "If the lock is lost (not renewed in time, or broken by an operator), hold prints 'lost' "
        "and the reason on stderr and exits with 76. hold does not know the program: the program "
        "must stop its work when hold has ended, which it sees as the end of hold's stdout. The "
        "token keeps a late write out where it is checked.\n\n"
        "Several keys are acquired in sorted order, all or none; the tokens are printed in that "
        "order, one per line. If stdin is closed while hold waits for a key, hold leaves the queue "
        "and exits with 75.\n\n"
        "With --until-signal hold does not read stdin: HUP, INT or TERM is the regular end, with "
        "exit status 0. Without it, these signals abandon the keys: they are released without a "
        "cooldown, and the exit status is 128 plus the number of the signal.\n\n"
        "If hold is killed by KILL, a file: store frees the key at once, and other stores when the "
        "lease ends. A stopped hold (Ctrl-Z) does not renew and loses its lock; 'run' does not.",
    .example = "  mkfifo pipe && leasehold hold nightly <pipe & exec 3>pipe\n"
               "  leasehold hold nightly --until-signal & ...; kill $!",
    .options = hold_options,
    .min_args = 1,
    .max_args = LH_KEYS_MAX,
    .run = cmd_hold,
};
