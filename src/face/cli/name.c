/* SPDX-License-Identifier: Apache-2.0 */
/* leasehold name: under which name a store keeps a key. The store is not opened. */
#include "face/cli/cli.h"

#include "store/store.h"
#include "wire/json_text.h"

#include <stdio.h>

enum { NAME_SIZE = 1024 }; /* a key, and what a store puts around it */

static int refuse_store(const struct visit *visit)
{
    char words[LH_TEXT_SIZE];
    struct text text;
    text_init(&text, words, sizeof words);
    store_describe_unknown(visit->url, &text);
    return say_trouble(visit, store_is_planned(visit->url) ? LH_UNAVAILABLE : LH_USAGE, "%s",
                       words);
}

static int run_name(struct visit *visit)
{
    const char *key = visit->words[0];
    int status = take_check_keys(visit, visit->words, 1);
    if (status == EXIT_DONE)
        status = visit_url(visit);
    if (status != EXIT_DONE)
        return status;
    const struct store_driver *driver = store_find(visit->url);
    if (driver == NULL)
        return refuse_store(visit);
    char name[NAME_SIZE], words[LH_TEXT_SIZE];
    struct text found, why;
    text_init(&found, name, sizeof name);
    text_init(&why, words, sizeof words);
    if (driver->name == NULL) /* it keeps a key under itself */
        text_add(&found, key);
    else if (!driver->name(visit->url, key, &found, &why))
        return say_trouble(visit, LH_USAGE, "%s: %s", visit->shown, words);
    if (!visit->settings.json) {
        puts(name);
        return EXIT_DONE;
    }
    char line[LINE_SIZE];
    struct text text;
    text_init(&text, line, sizeof line);
    json_begin(&text);
    json_add_words(&text, "key", key);
    json_add_words(&text, "name", name);
    json_add_words(&text, "store", visit->shown);
    json_end(&text);
    puts(line);
    return EXIT_DONE;
}

const struct command command_name = {
    .name = "name",
    .words = "KEY",
    .summary = "print the name that a key has in the store",
    .about = "Prints the name under which the store keeps KEY, to look for it with the store's own "
             "tools: in Redis lock:KEY, unless the URL says otherwise; in Kubernetes the name of a "
             "Lease. The stores file: and memory: keep a key under itself. Ids of once are asked "
             "for as once:ID, watermarks as watermark:NAME.",
    .example = "  redis-cli get \"$(leasehold name --store redis:// nightly)\"",
    .least_words = 1,
    .most_words = 1,
    .run = run_name,
};
