/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold epoch: shows or raises the epoch of a store's tokens. It is raised after a restored
 * backup, before the store is used again, and above all that this host has seen of the store.
 */
#include "face/cli/cli.h"

#include "face/cli/observed.h"
#include "wire/json_text.h"

#include <stdio.h>
#include <string.h>

enum { EPOCH_SHIFT = 55 };

static int output_epoch(const struct context *context, const struct lh_epoch *found)
{
    char line[LINE_SIZE];
    struct text text;
    if (!context->settings.json) {
        printf("%u\n", (unsigned)found->epoch);
        return EXIT_DONE;
    }
    text_init(&text, line, sizeof line);
    json_begin(&text);
    json_add_string(&text, "outcome", lh_outcome_name(LH_OK));
    json_add_number(&text, "epoch", found->epoch);
    json_add_token(&text, "revision", found->revision);
    json_add_string(&text, "kept", found->kept);
    json_add_string(&text, "store", context->shown);
    json_end(&text);
    puts(line);
    return EXIT_DONE;
}

static int epoch_show(struct context *context)
{
    struct lh_epoch found = LH_EPOCH_INIT;
    struct lh_report report = LH_REPORT_INIT;
    int64_t timeout_ms = context->settings.store_timeout_ms;
    if (lh_epoch_read(context->url, timeout_ms, &found, &report) != LH_OK)
        return output_plain_report(context, &report);
    output_detail(context, "the epoch is kept in %s", found.kept);
    return output_epoch(context, &found);
}

/* A token of the epoch that this host has seen, if the store has forgotten it; or 0. */
static uint64_t epoch_forgotten(const struct context *context, const struct lh_epoch *found)
{
    struct observed seen;
    if (!observed_find(context, found, &seen) || seen.epoch <= found->epoch ||
        seen.epoch > UINT64_MAX >> EPOCH_SHIFT)
        return 0;
    output_detail(context, "this host has seen epoch %u", (unsigned)seen.epoch);
    return seen.epoch << EPOCH_SHIFT;
}

static int epoch_raise(struct context *context)
{
    struct lh_epoch found = LH_EPOCH_INIT;
    struct lh_report report = LH_REPORT_INIT;
    const struct settings *settings = &context->settings;
    uint64_t above = settings->above;
    if (lh_epoch_read(context->url, settings->store_timeout_ms, &found, &report) != LH_OK)
        return output_plain_report(context, &report);
    if (above == 0)
        above = epoch_forgotten(context, &found);
    if (lh_epoch_raise(context->url, above, settings->store_timeout_ms, &found, &report) != LH_OK)
        return output_plain_report(context, &report);
    observed_keep(context, &found);
    return output_epoch(context, &found);
}

static int cmd_epoch(struct context *context)
{
    const char *step = context->arg_count > 0 ? context->args[0] : "show";
    bool raises = strcmp(step, "raise") == 0;
    if (!raises && strcmp(step, "show") != 0)
        return usage_error(context, "epoch has no step '%s'; use show or raise", step);
    if (!raises && context->settings.above != 0)
        return usage_error(context, "--above is for raise");
    int status = raises ? context_prepare_store(context) : context_find_store(context);
    if (status != EXIT_DONE)
        return status;
    output_detail(context, "store %s", context->shown);
    return raises ? epoch_raise(context) : epoch_show(context);
}

static const struct option option_above = {
    .name = "above",
    .kind = VALUE_TOKEN,
    .at = offsetof(struct settings, above),
    .value = "TOKEN",
    .flag_only = true,
    .help = "raise: above the epoch of TOKEN, the highest that was ever seen; otherwise by one"};
static const struct option *const epoch_options[] = {&option_above, NULL};

const struct command command_epoch = {
    .name = "epoch",
    .args = "[show|raise]",
    .summary = "after a restored backup: let tokens go on above all earlier ones",
    .about =
        "A store that was restored from a backup grants tokens again that were granted since the "
        "backup, and a late writer from before passes every fence. The epoch is the highest part "
        "of a token: raise it once, after the restore and before the store is used again, and "
        "every new token is above all earlier ones. Locks that are held keep their tokens, and "
        "are renewed and released by them. A process that still runs continues with the new "
        "epoch: a write that it prepared before gets the new epoch, too, or is refused, and it "
        "reads again. The page of each store names its limits; end all users first.\n\n"
        "raise prints the new epoch. Without --above it raises by one, or above the highest epoch "
        "that this host has seen of the store, if the backup is older than an earlier raise. With "
        "--above it raises only if the epoch is not above that of TOKEN already, so the call can "
        "be repeated. Give --above when the backup may be older than an earlier raise: the "
        "highest token is in your fences. The highest epoch is 255.\n\n"
        "show, the default, prints the current epoch. doctor reports a store that looks restored.",
    .example = "  leasehold --store redis://db1 epoch raise\n"
               "  leasehold epoch raise --above \"$(sqlite3 app.db 'SELECT max(fence) FROM job')\"",
    .options = epoch_options,
    .max_args = 1,
    .run = cmd_epoch,
};
