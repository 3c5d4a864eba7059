/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects a nested run of a held key, at any depth. Each run exports, in LEASEHOLD_OUTER, what it
 * and the enclosing runs hold: a checksum of store and key, and the token. The store confirms each
 * match, because a process can outlive the lock and keep the variable.
 */
#include "face/cli/run_command.h"

#include "base/checksum.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUTER_SIZE = 8192 }; /* entries of enclosing runs are dropped if they do not fit */

static const char outer[] = "LEASEHOLD_OUTER";

static uint64_t nested_key_hash(const struct context *context, const char *key)
{
    uint64_t store = checksum(/* before= */ 0, context->url, strlen(context->url));
    return checksum(store, key, strlen(key));
}

/* Reads the next pair of "HASH:TOKEN HASH:TOKEN"; false at the end or at a malformed pair. */
static bool next_pair(const char **at, uint64_t *out_name, uint64_t *out_token)
{
    char *end;
    *out_name = strtoull(*at, &end, 16);
    if (*end != ':')
        return false;
    *at = end + 1;
    *out_token = strtoull(*at, &end, 10);
    bool good = end != *at;
    *at = end;
    return good;
}

static bool is_held_above(struct context *context, const char *key)
{
    const char *at = getenv(outer);
    uint64_t wanted = at != NULL ? nested_key_hash(context, key) : 0, name, token;
    while (at != NULL && next_pair(&at, &name, &token)) {
        struct lh_view view = LH_VIEW_INIT;
        if (name == wanted && lh_status(context->client, key, &view, NULL) == LH_OK &&
            view.state == LH_HELD && (view.token == token || view.limit > 0 || view.shared))
            return true;
    }
    return false;
}

int nested_check(struct context *context)
{
    for (size_t i = 0; i < context->arg_count; i++) {
        struct lh_report report = {
            .size = sizeof report, .outcome = LH_BUSY, .since_ms = -1, .ends_in_ms = -1};
        if (!is_held_above(context, context->args[i]))
            continue;
        (void)snprintf(
            report.text, sizeof report.text,
            "busy: %.120s is held by an enclosing run: a nested run would wait for itself",
            context->args[i]);
        return output_report(context, context->args[i], &report);
    }
    return EXIT_DONE;
}

bool nested_export(const struct context *context, const struct lh_lease *lease)
{
    char value[OUTER_SIZE];
    const char *before = getenv(outer);
    struct text text;
    text_init(&text, value, sizeof value);
    for (size_t i = 0; lh_key_at(lease, i) != NULL; i++) {
        text_add(&text, i > 0 ? " " : "");
        text_add_hex(&text, nested_key_hash(context, lh_key_at(lease, i)));
        text_add(&text, ":");
        text_add_u64(&text, lh_token_at(lease, i));
    }
    if (before != NULL && text.length + strlen(before) + 2 <= sizeof value) {
        text_add(&text, " ");
        text_add(&text, before);
    }
    return setenv(outer, value, /* overwrite= */ 1) == 0;
}
