/* SPDX-License-Identifier: Apache-2.0 */
/* leasehold name: under which name a store keeps a key. The store is not opened. */
#include "face/cli/cli.h"

#include "store/store.h"
#include "wire/json_text.h"

#include <stdio.h>

enum { NAME_SIZE = 1024 }; /* a key, and what a store puts around it */

static int output_unknown_store(const struct context *context)
{
    char message[LH_TEXT_SIZE];
    struct text text;
    text_init(&text, message, sizeof message);
    store_describe_unknown(context->url, &text);
    return output_error(context, store_is_planned(context->url) ? LH_UNAVAILABLE : LH_USAGE, "%s",
                        message);
}

static int cmd_name(struct context *context)
{
    const char *key = context->args[0];
    int status = check_keys(context, context->args, 1);
    if (status == EXIT_DONE)
        status = context_prepare_store(context);
    if (status != EXIT_DONE)
        return status;
    const struct store_driver *driver = store_find(context->url);
    if (driver == NULL)
        return output_unknown_store(context);
    char name[NAME_SIZE], message[LH_TEXT_SIZE];
    struct text found, why;
    text_init(&found, name, sizeof name);
    text_init(&why, message, sizeof message);
    if (driver->name == NULL) /* it keeps a key under itself */
        text_add(&found, key);
    else if (!driver->name(context->url, key, &found, &why))
        return output_error(context, LH_USAGE, "%s: %s", context->shown, message);
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
             "Lease. The stores file: and memory: keep a key under itself. Ids of once are asked "
             "for as once:ID, watermarks as watermark:NAME.",
    .example = "  redis-cli get \"$(leasehold name --store redis:// nightly)\"",
    .min_args = 1,
    .max_args = 1,
    .run = cmd_name,
};
