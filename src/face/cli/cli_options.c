/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options that commands share, and the parsing of their values. Command line, environment,
 * config file and defaults all use the same text form and the same parser.
 */
#include "face/cli/cli.h"

#include "base/check.h"
#include "wire/duration.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { META_NAME_SIZE = 1024 };

#define SECOND ((int64_t)1000)
#define HOUR   (3600 * SECOND)
#define DAY    (24 * HOUR)

/* name, kind and field of struct settings */
#define OPTION(text, what, field) \
    .name = (text), .kind = (what), .at = offsetof(struct settings, field)

const struct option option_store = {OPTION("store", VALUE_TEXT, store), .value = "URL",
                                    .environment = "LEASEHOLD_STORE",
                                    .help = "URL of the store: file:/path/to.log, memory:, "
                                            "redis://host, k8s://, github://owner/repo, ... "
                                            "(see man leasehold)"};
const struct option option_store_timeout = {
    OPTION("store-timeout", VALUE_DURATION, store_timeout_ms),
    .value = "DUR",
    .min = 10,
    .max = DAY,
    .default_value = "10s",
    .help = "give up on a store that does not reply within this time"};
const struct option option_config = {OPTION("config", VALUE_TEXT, config), .value = "FILE",
                                     .environment = "LEASEHOLD_CONFIG", .flag_only = true,
                                     .help = "read defaults from this file (YAML)"};
const struct option option_json = {OPTION("json", VALUE_FLAG, json),
                                   .help = "print JSON objects, one per line"};
const struct option option_quiet = {OPTION("quiet", VALUE_FLAG, quiet), .letter = 'q',
                                    .help = "print only results and errors; nothing for a busy "
                                            "or cooling key but the exit status"};
const struct option option_verbose = {
    OPTION("verbose", VALUE_FLAG, verbose), .letter = 'v',
    .help = "print details: the store, config file, waiting, acquired, released"};
const struct option option_help = {OPTION("help", VALUE_FLAG, help), .letter = 'h',
                                   .flag_only = true, .help = "print help for the command"};

const struct option *const global_options[] = {
    &option_store, &option_store_timeout, &option_config, &option_json,
    &option_quiet, &option_verbose,       &option_help,   NULL};

const struct option option_ttl = {OPTION("ttl", VALUE_DURATION, ttl_ms),
                                  .value = "DUR",
                                  .min = 1,
                                  .max = DAY,
                                  .environment = "LEASEHOLD_TTL",
                                  .help = "lifetime of the lease unless renewed; from the minimum "
                                          "of the store (10ms to 10s) to 24h; by default "
                                          "that of the store, 30s, on GitHub 5m"};
const struct option option_wait = {OPTION("wait", VALUE_DURATION, wait_ms),
                                   .letter = 'w',
                                   .aliases = "--timeout",
                                   .value = "DUR",
                                   .max = 366 * DAY,
                                   .word = "forever",
                                   .word_value = LH_WAIT_FOREVER,
                                   .default_value = "forever",
                                   .help = "wait in the queue for at most this time"};
const struct option option_no_wait = {OPTION("no-wait", VALUE_FIXED, wait_ms), .letter = 'n',
                                      .aliases = "--nb --nonblock", .flag_only = true,
                                      .help = "do not wait; same as --wait 0"};
const struct option option_shared = {OPTION("shared", VALUE_FLAG, shared), .letter = 's',
                                     .help = "share the key with other shared holders"};
const struct option option_exclusive = {OPTION("exclusive", VALUE_CLEAR, shared), .letter = 'x',
                                        .aliases = "-e", .flag_only = true,
                                        .help = "hold the key alone: the default"};
const struct option option_command = {OPTION("command", VALUE_TEXT, shell), .letter = 'c',
                                      .value = "STRING", .flag_only = true,
                                      .help = "run STRING by /bin/sh -c, in place of -- CMD"};
const struct option option_max_hold = {
    OPTION("max-hold", VALUE_DURATION, max_hold_ms), .value = "DUR", .min = 1, .max = 366 * DAY,
    .help = "end CMD by TERM, then KILL, if it takes longer: exit status 124, a failure"};
const struct option option_limit = {OPTION("limit", VALUE_COUNT, limit), .value = "N", .min = 1,
                                    .max = 64, .help = "semaphore with at most N holders"};
const struct option option_priority = {OPTION("priority", VALUE_COUNT, priority),
                                       .value = "N",
                                       .min = -100,
                                       .max = 100,
                                       .default_value = "0",
                                       .help = "queue priority, -100 to 100; higher goes first"};
const struct option option_cooldown = {
    OPTION("cooldown", VALUE_DURATION, cooldown_ms),
    .value = "DUR|default",
    .max = 366 * DAY,
    .word = "default",
    .word_value = 300 * SECOND,
    .default_value = "0",
    .help = "refuse the key for this time after a clean release; default: 5m"};
static const char *const conflict_names[] = {
    [CONFLICT_WAIT] = "wait",
    [CONFLICT_RETRY] = "retry",
    [CONFLICT_FAIL] = "fail",
    [CONFLICT_STEAL_STALE] = "steal-stale",
    NULL,
};
const struct option option_on_conflict = {
    OPTION("on-conflict", VALUE_CHOICE, on_conflict), .value = "HOW", .choices = conflict_names,
    .default_value = "wait",
    .help = "if the key is held: wait in the queue, retry with backoff, fail, or steal-stale: fail "
            "unless the lease has expired"};
const struct option option_retries = {OPTION("retries", VALUE_COUNT, retries), .value = "N",
                                      .max = 1000, .default_value = "5",
                                      .help = "attempts after the first, with --on-conflict retry"};
const struct option option_backoff = {
    OPTION("backoff", VALUE_RANGE, backoff_first_ms),
    .value = "FIRST:MAX",
    .min = 1,
    .max = DAY,
    .default_value = "1s:16s",
    .help = "delays between these attempts: FIRST, doubled up to MAX, with jitter"};
const struct option option_holder = {
    OPTION("holder", VALUE_TEXT, holder), .value = "NAME", .environment = "LEASEHOLD_HOLDER",
    .help = "name of this holder, as shown to others; otherwise the name of the pod, or host:pid"};
const struct option option_meta = {OPTION("meta", VALUE_PAIR, meta), .value = "K=V",
                                   .help = "metadata, as shown to others; can be repeated"};
const struct option option_lock_delay = {
    OPTION("lock-delay", VALUE_DURATION, lock_delay_ms), .value = "DUR", .max = DAY,
    .default_value = "0", .help = "refuse the key for this time after the holder crashed"};
const struct option option_conflict_status = {
    OPTION("conflict-exit-code", VALUE_COUNT, conflict_status),
    .letter = 'E',
    .value = "N",
    .max = 255,
    .default_value = "75",
    .help = "exit status if the key is busy"};
const struct option option_request_id = {
    OPTION("request-id", VALUE_TEXT, request_id), .value = "ID", .flag_only = true,
    .help = "make the call idempotent: the same ID returns the same grant"};
const struct option option_cached = {
    OPTION("cached", VALUE_FLAG, cached),
    .help = "allow a watched copy to answer, if one exists; a single command queries the store"};
const struct option option_status_file = {OPTION("status-file", VALUE_TEXT, status_file),
                                          .value = "PATH", .flag_only = true,
                                          .help = "write the outcome to this file, as JSON"};
const struct option option_metrics_file = {
    OPTION("metrics-file", VALUE_TEXT, metrics_file), .value = "PATH",
    .help = "add counters to this file, in the text format of Prometheus"};
const struct option option_token = {OPTION("token", VALUE_TOKEN, token), .value = "N",
                                    .flag_only = true, .help = "token of the grant"};
const struct option option_reason = {OPTION("reason", VALUE_TEXT, reason), .value = "TEXT",
                                     .flag_only = true,
                                     .help = "reason, which is recorded; at most 256 bytes"};

bool option_takes_value(const struct option *option)
{
    return option->kind != VALUE_FLAG && option->kind != VALUE_CLEAR && option->kind != VALUE_FIXED;
}

bool option_next_alias(const char **at, char out[ALIAS_SIZE])
{
    if (*at == NULL || **at == '\0')
        return false;
    size_t length = strcspn(*at, " ");
    ASSERT(length < ALIAS_SIZE);
    memcpy(out, *at, length);
    out[length] = '\0';
    *at += length + ((*at)[length] == ' ' ? 1 : 0);
    return true;
}

void option_describe(const struct option *option, struct text *out)
{
    char alias[ALIAS_SIZE];
    const char *before = "; also ";
    text_add(out, option->help);
    for (const char *at = option->aliases; option_next_alias(&at, alias); before = ", ") {
        text_add(out, before);
        text_add(out, alias);
    }
}

/* ---- parsing ---- */

static void *option_field(const struct option *option, struct settings *settings)
{
    return (char *)settings + option->at;
}

static bool option_refuse(struct text *why, const char *value, const char *what)
{
    text_add(why, "'");
    text_add(why, value);
    text_add(why, "' ");
    text_add(why, what);
    return false;
}

static void add_duration(struct text *why, int64_t length_ms)
{
    char text[DURATION_SHOWN];
    if (length_ms % SECOND != 0) {
        text_add_i64(why, length_ms);
        text_add(why, "ms");
    } else if (length_ms > DAY && length_ms % DAY == 0) {
        text_add_i64(why, length_ms / DAY);
        text_add(why, " days");
    } else if (length_ms >= HOUR && length_ms % HOUR == 0) {
        text_add_i64(why, length_ms / HOUR);
        text_add(why, "h");
    } else {
        text_add(why, duration_show(length_ms, text));
    }
}

static bool option_refuse_duration(const struct option *option, const char *value, struct text *why)
{
    (void)option_refuse(why, value, "is out of range: from ");
    if (option->min <= 1)
        text_add(why, option->min == 0 ? "0" : "above 0");
    else
        add_duration(why, option->min);
    text_add(why, " to ");
    add_duration(why, option->max);
    return false;
}

static bool read_duration(const struct option *option, const char *value, size_t length,
                          struct text *why, int64_t *out_ms)
{
    int64_t length_ms = 0;
    switch (duration_read(value, length, &length_ms)) {
    case DURATION_BROKEN:
        return option_refuse(why, value, "is not a duration; write 500ms, 1.5s, 30s, 5m or 24h");
    case DURATION_NEGATIVE:
    case DURATION_TOO_LONG:
        return option_refuse_duration(option, value, why);
    case DURATION_OK:
        break;
    }
    if (length_ms < option->min || length_ms > option->max)
        return option_refuse_duration(option, value, why);
    *out_ms = length_ms;
    return true;
}

static bool set_duration(const struct option *option, const char *value, int64_t *out,
                         struct text *why)
{
    if (option->word != NULL && strcmp(value, option->word) == 0) {
        *out = option->word_value;
        return true;
    }
    return read_duration(option, value, strlen(value), why, out);
}

static bool set_range(const struct option *option, const char *value, int64_t *out,
                      struct text *why)
{
    const char *colon = strchr(value, ':');
    int64_t first_ms, max_ms;
    if (colon == NULL)
        return option_refuse(why, value, "is not a range; write FIRST:MAX, as in 1s:16s");
    if (!read_duration(option, value, (size_t)(colon - value), why, &first_ms) ||
        !read_duration(option, colon + 1, strlen(colon + 1), why, &max_ms))
        return false;
    if (first_ms > max_ms)
        return option_refuse(why, value, "is not a range: FIRST is longer than MAX");
    out[0] = first_ms;
    out[1] = max_ms;
    return true;
}

static bool set_count(const struct option *option, const char *value, int64_t *out,
                      struct text *why)
{
    char *end = NULL;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    bool number_only = end != value && *end == '\0' && strchr(" \t\n+", value[0]) == NULL;
    if (number_only && errno == 0 && number >= option->min && number <= option->max) {
        *out = number;
        return true;
    }
    (void)option_refuse(why, value, "is not a number from ");
    text_add_i64(why, option->min);
    text_add(why, " to ");
    text_add_i64(why, option->max);
    return false;
}

static bool set_token(const char *value, uint64_t *out, struct text *why)
{
    char *end = NULL;
    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 || number == 0)
        return option_refuse(why, value, "is not a token: a number above 0 printed by acquire");
    *out = number;
    return true;
}

static bool set_choice(const struct option *option, const char *value, int64_t *out,
                       struct text *why)
{
    for (int64_t i = 0; option->choices[i] != NULL; i++) {
        if (strcmp(option->choices[i], value) == 0) {
            *out = i;
            return true;
        }
    }
    (void)option_refuse(why, value, "is not one of:");
    for (size_t i = 0; option->choices[i] != NULL; i++) {
        text_add(why, " ");
        text_add(why, option->choices[i]);
    }
    return false;
}

static bool option_add_pair(const char *value, struct settings *settings, struct text *why)
{
    static char names[META_PAIRS][META_NAME_SIZE]; /* settings->meta refers to them */
    const char *equals = strchr(value, '=');
    if (equals == NULL || equals == value)
        return option_refuse(why, value, "is not a pair; write NAME=VALUE");
    if (settings->meta_count == META_PAIRS)
        return option_refuse(why, value, "exceeds the maximum of 16 pairs");
    size_t length = (size_t)(equals - value);
    if (length >= META_NAME_SIZE)
        return option_refuse(why, value, "is not a pair: the name is too long");
    char *name = names[settings->meta_count];
    memcpy(name, value, length);
    name[length] = '\0';
    settings->meta[settings->meta_count++] = (struct lh_meta){name, equals + 1};
    return true;
}

bool option_set(const struct option *option, const char *value, struct settings *settings,
                struct text *why)
{
    void *field = option_field(option, settings);
    switch (option->kind) {
    case VALUE_FLAG:
        *(bool *)field = value == NULL || strcmp(value, "true") == 0;
        return true;
    case VALUE_CLEAR:
        *(bool *)field = false;
        return true;
    case VALUE_FIXED:
        *(int64_t *)field = option->min;
        return true;
    case VALUE_TEXT:
        if (value[0] == '\0')
            return option_refuse(why, value, "is empty");
        *(const char **)field = value;
        return true;
    case VALUE_DURATION:
        return set_duration(option, value, field, why);
    case VALUE_COUNT:
        return set_count(option, value, field, why);
    case VALUE_CHOICE:
        return set_choice(option, value, field, why);
    case VALUE_TOKEN:
        return set_token(value, field, why);
    case VALUE_RANGE:
        return set_range(option, value, field, why);
    case VALUE_PAIR:
        return option_add_pair(value, settings, why);
    }
    UNREACHABLE("every kind is listed");
}
