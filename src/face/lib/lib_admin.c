/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold_admin.h: the schemes that are built in, the names of keys, and collections; and the
 * reports of all calls of that header. Asks the driver through store.h and opens no client.
 */
#include "face/lib/admin_internal.h"

#include "wire/url_redact.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { RATE_DEFAULT = 600, RATE_MAX = 60000 };

/* ---- reports ---- */

enum lh_outcome admin_report(struct lh_report *report, enum lh_outcome outcome, const char *format,
                             ...)
{
    char message[LH_TEXT_SIZE];
    va_list arguments;
    int length = snprintf(message, sizeof message, "%s: ", lh_outcome_name(outcome));
    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it is begun one line above */
    (void)vsnprintf(message + length, sizeof message - (size_t)length, format, arguments);
    va_end(arguments);
    return report_set(report, outcome, message);
}

enum lh_outcome admin_report_scheme(const char *url, struct lh_report *report)
{
    char message[LH_TEXT_SIZE];
    struct text text;
    text_init(&text, message, sizeof message);
    store_describe_unknown(url, &text);
    return admin_report(report, store_is_planned(url) ? LH_UNAVAILABLE : LH_USAGE, "%s", message);
}

enum lh_outcome admin_report_url(struct lh_report *report, enum lh_outcome outcome, const char *url,
                                 const char *why)
{
    static const char blame[] = "usage: ";
    if (strncmp(why, blame, sizeof blame - 1) == 0) { /* as a driver begins, if the URL is wrong */
        outcome = LH_USAGE;
        why += sizeof blame - 1;
    }
    char shown[LH_TEXT_SIZE];
    struct text redacted;
    text_init(&redacted, shown, sizeof shown);
    url_redact(url, &redacted);
    return admin_report(report, outcome, "%s: %s", shown, why);
}

bool admin_is_key(const char *key)
{
    size_t length = key != NULL ? strlen(key) : 0;
    return length > 0 && length <= KEY_MAX && text_is_clean(key, length);
}

/* ---- stores ---- */

const char *lh_store_scheme(size_t index)
{
    return store_scheme(index);
}

enum lh_outcome lh_key_name(const char *url, const char *key, char *out, size_t size,
                            struct lh_report *report)
{
    char buffer[LH_NAME_SIZE], message[LH_TEXT_SIZE];
    struct text name, why;
    if (!sized_is_valid(report))
        return LH_USAGE;
    if (url == NULL || out == NULL || !admin_is_key(key))
        return admin_report(report, LH_USAGE,
                            "lh_key_name() needs a URL, a key and a buffer for the name");
    const struct store_driver *driver = store_find(url);
    if (driver == NULL)
        return admin_report_scheme(url, report);
    text_init(&name, buffer, sizeof buffer);
    text_init(&why, message, sizeof message);
    if (driver->name == NULL) /* the store keeps a key under itself */
        text_add(&name, key);
    else if (!driver->name(url, key, &name, &why))
        return admin_report_url(report, LH_USAGE, url, message);
    if (name.cut || name.length >= size)
        return admin_report(report, LH_USAGE, "the name does not fit into %zu bytes", size);
    memcpy(out, buffer, name.length + 1);
    return report_set(report, LH_OK, "");
}

/* ---- collection ---- */

static enum lh_outcome collect_from(const struct store_driver *driver, const char *url,
                                    const struct collect_options *options, struct lh_collected *out,
                                    struct lh_report *report)
{
    char message[LH_TEXT_SIZE];
    struct text why;
    struct collection found = {0};
    const char *broken = admin_broken_conditions(options);
    if (broken != NULL)
        return admin_report(report, LH_USAGE, "%s", broken);
    text_init(&why, message, sizeof message);
    if (!driver->collect(url, options, &found, &why))
        return admin_report_url(report, LH_UNAVAILABLE, url, message);
    const struct lh_collected collected = {.left = found.left,
                                           .removed = found.removed,
                                           .taken = found.taken,
                                           .partial = found.why[0] != '\0'};
    sized_write(out, &collected, sizeof collected);
    if (found.usage)
        return admin_report(report, LH_USAGE, "%s", found.why);
    return collected.partial ? admin_report(report, LH_UNAVAILABLE, "%s", found.why)
                             : report_set(report, LH_OK, "");
}

enum lh_outcome lh_collect(const char *url, const struct lh_collect_options *options,
                           struct lh_collected *out, struct lh_report *report)
{
    struct lh_collect_options known = LH_COLLECT_OPTIONS_INIT;
    const struct lh_collected none = LH_COLLECTED_INIT;
    if (!sized_is_valid(report))
        return LH_USAGE;
    if (url == NULL || out == NULL || !sized_is_valid(out) ||
        (options != NULL && !sized_read(&known, sizeof known, options)) || known.rate > RATE_MAX ||
        known.timeout_ms < 0 || known.timeout_ms > TTL_MAX_MS)
        return admin_report(report, LH_USAGE,
                            "lh_collect() needs a URL, a place for the counts, and options that "
                            "LH_COLLECT_OPTIONS_INIT sets, with a rate of at most %d",
                            RATE_MAX);
    const struct store_driver *driver = store_find(url);
    const struct collect_options asked = {.kind = known.kind,
                                          .done_when = known.done_when,
                                          .failed_when = known.failed_when,
                                          .ended_at = known.ended_at,
                                          .rate = known.rate > 0 ? known.rate : RATE_DEFAULT,
                                          .timeout_ms = known.timeout_ms > 0 ? known.timeout_ms
                                                                             : STORE_TIMEOUT_MS,
                                          .collect_objects = admin_collect_objects};
    if (driver == NULL)
        return admin_report_scheme(url, report);
    if (driver->collect != NULL)
        return collect_from(driver, url, &asked, out, report);
    sized_write(out, &none, sizeof none);
    return report_set(report, LH_OK, "");
}
