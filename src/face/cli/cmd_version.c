/* SPDX-License-Identifier: Apache-2.0 */
/* leasehold version: prints the version and the stores that are built in. */
#include "face/cli/cli.h"

#include "leasehold_admin.h"
#include "wire/json_text.h"

#include <stdio.h>

static int cmd_version(struct context *context)
{
    char line[512];
    struct text text;
    text_init(&text, line, sizeof line);
    if (context->settings.json) {
        json_begin(&text);
        json_add_string(&text, "version", lh_version());
        json_add_list(&text, "stores");
        for (size_t i = 0; lh_store_scheme(i) != NULL; i++)
            json_item_string(&text, lh_store_scheme(i));
        json_end_list(&text);
        json_end(&text);
    } else {
        text_add(&text, "leasehold ");
        text_add(&text, lh_version());
        text_add(&text, "\nstores:");
        for (size_t i = 0; lh_store_scheme(i) != NULL; i++) {
            text_add(&text, " ");
            text_add(&text, lh_store_scheme(i));
        }
    }
    text_add(&text, "\n");
    (void)fputs(line, stdout);
    return EXIT_DONE;
}

const struct command command_version = {
    .name = "version",
    .summary = "print the version and what is built in",
    .about = "Prints the version and the stores that are built in.",
    .run = cmd_version,
};
