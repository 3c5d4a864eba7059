/* SPDX-License-Identifier: Apache-2.0 */
/* leasehold list: prints the keys that are held, cooling or waited for, and the watermarks. */
#include "face/cli/cli.h"

#include <stdio.h>

static const struct option option_names = {.name = "names",
                                           .kind = VALUE_FLAG,
                                           .at = offsetof(struct settings, names),
                                           .flag_only = true,
                                           .help = "print only the keys"};

static bool output_list_view(void *user, const struct lh_view *view)
{
    const struct context *context = user;
    if (view->state == LH_FREE && view->waiters == 0 && view->kind != LH_WATERMARK)
        return true; /* an expired lease without waiters */
    if (context->settings.names)
        puts(view->key);
    else
        output_view(context, view);
    return !ferror(stdout);
}

static int cmd_list(struct context *context)
{
    const char *prefix = context->arg_count > 0 ? context->args[0] : "";
    struct lh_report report = LH_REPORT_INIT;
    int status = context_open_store(context);
    if (status != EXIT_DONE)
        return status;
    if (lh_list(context->client, prefix, output_list_view, context, &report) != LH_OK)
        return output_report(context, NULL, &report);
    return EXIT_DONE;
}

static const struct option *const list_options[] = {&option_names, NULL};

const struct command command_list = {
    .name = "list",
    .args = "[PREFIX]",
    .summary = "list the keys that are held, cooling or waited for",
    .about =
        "Prints one line for each key that begins with PREFIX and is held, cooling, delayed, "
        "offered or waited for, and for each watermark. The order is not specified. Ids of once "
        "are listed as running, done or failed. Free keys occupy no space in the store and are "
        "not listed. A record that cannot be read, because it is damaged or a newer version wrote "
        "it, is listed as unreadable, with the cause; leasehold status exits with 69 for its key.",
    .example = "  leasehold list production/",
    .options = list_options,
    .max_args = 1,
    .run = cmd_list,
};
