/* SPDX-License-Identifier: Apache-2.0 */
/* What all drivers share; see store.h. */
#include "store/store.h"

#include <string.h>

/* One line registers a driver. */
static const struct store_driver *const drivers[] = {
    &file_driver,
    &memory_driver,
};

enum { DRIVERS = sizeof drivers / sizeof drivers[0] };

const struct store_driver *store_find(const char *url)
{
    for (size_t i = 0; i < DRIVERS; i++) {
        size_t length = strlen(drivers[i]->scheme);
        if (strncmp(url, drivers[i]->scheme, length) == 0 && url[length] == ':')
            return drivers[i];
    }
    return NULL;
}

void store_describe_unknown(const char *url, struct text *out)
{
    text_add(out, "no store goes by \"");
    text_add_bytes(out, url, strcspn(url, ":"));
    text_add(out, "\"; a URL begins with one of:");
    for (size_t i = 0; i < DRIVERS; i++) {
        text_add(out, " ");
        text_add(out, drivers[i]->scheme);
        text_add(out, ":");
    }
}

struct store_facts store_facts_of(const struct store_driver *driver)
{
    unsigned bits = driver->capabilities;
    enum judge judge = (bits & STORE_TIME) != 0       ? JUDGE_STORE_TIME
                       : (bits & STORE_SESSIONS) != 0 ? JUDGE_SESSION
                                                      : JUDGE_OBSERVED;
    return (struct store_facts){.judge = judge,
                                .one_clock = (bits & STORE_ONE_CLOCK) != 0,
                                .tests_grant = (bits & STORE_TESTS_GRANT) != 0,
                                .answer_ms = 1000};
}
