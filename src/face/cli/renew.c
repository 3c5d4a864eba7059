/* SPDX-License-Identifier: Apache-2.0 */
/* leasehold renew: extends a lease by its token, from wherever. */
#include "face/cli/cli.h"

static int run_renew(struct visit *visit)
{
    const char *key = visit->words[0];
    struct lh_report report;
    if (visit->settings.token == 0)
        return say_usage(visit, "renew needs the token: leasehold renew KEY --token N");
    int status = take_check_keys(visit, visit->words, 1);
    if (status == EXIT_DONE)
        status = visit_open(visit);
    if (status != EXIT_DONE)
        return status;
    if (lh_renew(visit->client, key, visit->settings.token, visit->settings.renewal_ms, &report) !=
        LH_OK)
        return say_report(visit, key, &report);
    return say_done(visit, "renewed", key);
}

/* Apart from that of other commands: a default from the environment or a file is for new leases. */
static const struct option option_renewal = {
    .name = "ttl",
    .kind = VALUE_DURATION,
    .at = offsetof(struct settings, renewal_ms),
    .value = "DUR",
    .least = 1,
    .most = (int64_t)24 * 3600 * 1000,
    .flag_only = true,
    .does = "the new TTL, if it is longer; without it the lease keeps its own"};

static const struct option *const renew_options[] = {&option_token, &option_renewal, NULL};

const struct command command_renew = {
    .name = "renew",
    .words = "KEY --token N",
    .summary = "extend a lease by its token",
    .about = "Lets the lease of KEY last for another TTL from now on: its own, or a longer one. A "
             "token that does not hold "
             "the key any more changes nothing and ends with status 78.",
    .example = "  leasehold renew nightly --token \"$T\" --ttl 10m",
    .options = renew_options,
    .least_words = 1,
    .most_words = 1,
    .run = run_renew,
};
