/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of drivers; see store.h. Must not depend on any one driver. */
#include "store/store.h"

#include "wire/url_redact.h"

#include <string.h>

/* A driver is registered by one line. */
static const struct store_driver *const drivers[] = {
    &file_driver,
#ifndef LH_WITHOUT_GITHUB
    &github_driver,
#endif
#ifndef LH_WITHOUT_KUBERNETES
    &k8s_driver,
#endif
    &memory_driver,
#ifndef LH_WITHOUT_REDIS
    &redis_driver,  &rediss_driver,
#endif
};

enum { DRIVERS = sizeof drivers / sizeof drivers[0] };

/* Schemes of the interface without a driver in this build. */
static const char *const planned[] = {
#ifdef LH_WITHOUT_REDIS
    "redis",  "rediss",
#endif
#ifdef LH_WITHOUT_KUBERNETES
    "k8s",
#endif
#ifdef LH_WITHOUT_GITHUB
    "github",
#endif
    "etcd",   "etcds",  "postgres", "postgresql", "leasehold", "leasehold+unix",
};

enum { PLANNED = sizeof planned / sizeof planned[0] };

static bool url_has_scheme(const char *url, const char *scheme)
{
    size_t length = strlen(scheme);
    return strncmp(url, scheme, length) == 0 && url[length] == ':';
}

const struct store_driver *store_find(const char *url)
{
    for (size_t i = 0; i < DRIVERS; i++) {
        if (url_has_scheme(url, drivers[i]->scheme))
            return drivers[i];
    }
    return NULL;
}

bool store_is_planned(const char *url)
{
    for (size_t i = 0; i < PLANNED; i++) {
        if (url_has_scheme(url, planned[i]))
            return true;
    }
    return false;
}

const char *store_scheme(size_t index)
{
    return index < DRIVERS ? drivers[index]->scheme : NULL;
}

void store_describe_unknown(const char *url, struct text *out)
{
    text_add(out, store_is_planned(url) ? "not built in: \"" : "unknown store scheme \"");
    /* Only the scheme is printed: the rest of the URL may contain a secret. */
    text_add_bytes(out, url, url_scheme(url));
    text_add(out, "\"; a URL begins with one of:");
    for (size_t i = 0; i < DRIVERS; i++) {
        TEXT_JOIN(out, " ", drivers[i]->scheme, ":");
    }
}

struct store_facts store_facts_at(const struct store_driver *driver, const char *url)
{
    struct store_facts facts = driver->facts;
    unsigned bits = driver->capabilities;
    facts.judge = (bits & STORE_TIME) != 0       ? JUDGE_STORE_TIME
                  : (bits & STORE_SESSIONS) != 0 ? JUDGE_SESSION
                                                 : JUDGE_OBSERVED;
    facts.one_clock = (bits & STORE_ONE_CLOCK) != 0;
    facts.tests_grant = (bits & STORE_TESTS_GRANT) != 0;
    facts.renews_by_revision = (bits & STORE_RENEWS_GRANT) == 0;
    facts.renews_by_session = (bits & STORE_RENEWS_SESSION) != 0;
    facts.wakes_with_record = (bits & STORE_TELLS) != 0;
    if (driver->facts_at != NULL)
        driver->facts_at(url, &facts);
    return facts;
}
