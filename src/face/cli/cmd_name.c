/* SPDX-License-Identifier: Apache-2.0 */
/* leasehold name: prints the name that a key has in the store, without opening the store. */
#include "face/cli/cli.h"

#include "leasehold_admin.h"
#include "wire/json_text.h"

#include <stdio.h>

static int cmd_name(struct context *context)
{
    const char *key = context->args[0];
    char name[LH_NAME_SIZE];
    struct lh_report report = LH_REPORT_INIT;
    int status = check_keys(context, context->args, 1);
    if (status == EXIT_DONE)
        status = context_prepare_store(context);
    if (status != EXIT_DONE)
        return status;
    if (lh_key_name(context->url, key, name, sizeof name, &report) != LH_OK)
        return output_plain_report(context, &report);
    if (!context->settings.json) {
        puts(name);
        return EXIT_DONE;
    }
    char line[LINE_SIZE];
    struct text text;
    text_init(&text, line, sizeof line);
    json_begin(&text);
    json_add_string(&text, "key", key);
    json_add_string(&text, "name", name);
    json_add_string(&text, "store", context->shown);
    json_end(&text);
    puts(line);
    return EXIT_DONE;
}

const struct command command_name = {
    .name = "name",
    .args = "KEY",
    .summary = "print the name that a key has in the store",
    .about = "Prints the name under which the store keeps KEY, to look for it with the store's own "
             "tools: in Redis lock:KEY, unless the URL says otherwise; in Kubernetes the name of a "
             "Lease; in GitHub a ref. The stores file: and memory: keep a key under itself. Ids of "
             "once are asked "
             "for as once:ID, watermarks as watermark:NAME.",
    .example = "  redis-cli get \"$(leasehold name --store redis:// nightly)\"",
    .min_args = 1,
    .max_args = 1,
    .run = cmd_name,
};
