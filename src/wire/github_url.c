/* SPDX-License-Identifier: Apache-2.0 */
/* See github_url.h. */
#include "wire/github_url.h"

#include "base/sha256.h"
#include "wire/store_url.h"

#include <string.h>

enum {
    HASH_DIGITS = 40,
    SECOND_MS = 1000,
    MINUTE_MS = 60 * SECOND_MS,
    HOUR_MS = 60 * MINUTE_MS,
    STALE_SHORTEST_MS = 3 * SECOND_MS,
    STALE_MAX_MS = 24 * HOUR_MS,
    STALE_USUAL_MS = 5 * MINUTE_MS,
    POLL_USUAL_MS = MINUTE_MS,
    PACE_USUAL_MS = SECOND_MS,
    WRITES_USUAL = 400,
    REQUESTS_MAX = 1000000,
};

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define DIGITS  "0123456789"

/* The least values of github.com; those of the options are for a server on this host. */
enum { STALE_LEAST_MS = 30000, HEARTBEAT_LEAST_MS = 10000, POLL_LEAST_MS = 10000 };

#define STALE_RULE     "stale is a duration of at least 30s and at most 24h"
#define HEARTBEAT_RULE "heartbeat is a duration of at least 10s and at most a third of stale"
#define POLL_RULE      "poll is a duration of at least 10s and at most 1h"
#define PACE_RULE      "pace is a duration of at least 1s and at most 1m"

#define GITHUB_OPTION(field, ...) URL_OPTION(struct github_url, field, __VA_ARGS__)

static const struct url_option options[] = {
    GITHUB_OPTION(heartbeat_ms, "heartbeat", .kind = URL_DURATION, .least = SECOND_MS,
                  .most = STALE_MAX_MS, .rule = HEARTBEAT_RULE),
    GITHUB_OPTION(stale_ms, "stale", .kind = URL_DURATION, .least = STALE_SHORTEST_MS,
                  .most = STALE_MAX_MS, .rule = STALE_RULE),
    GITHUB_OPTION(poll_ms, "poll", .kind = URL_DURATION, .least = SECOND_MS, .most = HOUR_MS,
                  .rule = POLL_RULE),
    GITHUB_OPTION(pace_ms, "pace", .kind = URL_DURATION, .most = MINUTE_MS, .rule = PACE_RULE),
    GITHUB_OPTION(show, "show", .kind = URL_CHOICE, .words = "off|on", .rule = "show is on or off"),
    GITHUB_OPTION(writes, "writes", .kind = URL_NUMBER, .least = 1, .most = REQUESTS_MAX,
                  .rule = "writes is a number an hour, from 1 to 1000000"),
    GITHUB_OPTION(budget, "budget", .kind = URL_NUMBER, .least = 1, .most = REQUESTS_MAX,
                  .rule = "budget is a number of requests an hour, from 1 to 1000000"),
    GITHUB_OPTION(token_file, "token-file", .least = 1),
    GITHUB_OPTION(app, "app", .kind = URL_NUMBER, .least = 1, .most = INT64_MAX,
                  .rule = "app is the id of a GitHub App, a number"),
    GITHUB_OPTION(app_key_file, "app-key-file", .least = 1),
};

static const struct url_form form = {
    .schemes = "github",
    .rule = "the URL must begin with github://, as in github://owner/repository",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
};

/* ---- URL ---- */

static bool github_read_name(struct url_part part, const char *bytes, char *out, size_t size)
{
    return url_decode(part, out, size) && out[0] != '\0' && strspn(out, bytes) == strlen(out);
}

/* Both become parts of a path: "." and ".." would leave it. */
static bool github_read_place(const struct url_parts *parts, struct github_url *out,
                              struct text *why)
{
    if (!github_read_name(parts->hosts, LETTERS DIGITS "-_", out->owner, sizeof out->owner) ||
        out->owner[0] == '-')
        return url_refuse(why, "an owner has at most 39 letters, digits and hyphens, as in "
                               "github://owner/repository");
    if (!github_read_name(parts->path, LETTERS DIGITS "-_.", out->repo, sizeof out->repo) ||
        strcmp(out->repo, ".") == 0 || strcmp(out->repo, "..") == 0)
        return url_refuse(why, "a repository has at most 100 letters, digits, hyphens, dots and "
                               "underscores, as in github://owner/repository");
    size_t length = strlen(out->repo);
    if (length >= 4 && strcmp(&out->repo[length - 4], ".git") == 0)
        return url_refuse(why, "the name of a repository does not end in .git; leave it out");
    return true;
}

static bool github_check_times(struct github_url *url, bool loopback, struct text *why)
{
    if (!loopback && url->stale_ms < STALE_LEAST_MS)
        return url_refuse(why, STALE_RULE);
    if (url->heartbeat_ms == 0)
        url->heartbeat_ms = url->stale_ms / 3;
    if ((!loopback && url->heartbeat_ms < HEARTBEAT_LEAST_MS) ||
        url->heartbeat_ms > url->stale_ms / 3)
        return url_refuse(why, HEARTBEAT_RULE);
    if (!loopback && url->poll_ms < POLL_LEAST_MS)
        return url_refuse(why, POLL_RULE);
    if (!loopback && url->pace_ms < SECOND_MS)
        return url_refuse(why, PACE_RULE);
    return true;
}

bool github_url_parse(const char *url, bool loopback, struct github_url *out, struct text *why)
{
    struct github_url parsed = {.show = true,
                                .stale_ms = STALE_USUAL_MS,
                                .poll_ms = POLL_USUAL_MS,
                                .pace_ms = PACE_USUAL_MS,
                                .writes = WRITES_USUAL};
    struct url_parts parts;
    if (!url_read(url, &form, &parts, &parsed, why) || !github_read_place(&parts, &parsed, why) ||
        !github_check_times(&parsed, loopback, why))
        return false;
    if ((parsed.app != 0) != (parsed.app_key_file[0] != '\0'))
        return url_refuse(why, "app and app-key-file belong together; give both or neither");
    if (parsed.app != 0 && parsed.token_file[0] != '\0')
        return url_refuse(why, "the URL has token-file and also app; use only one");
    *out = parsed;
    return true;
}

/* ---- names ---- */

/* True if all of it fits. An escape is added whole or not at all. */
static bool github_escape(const char *bytes, char out[GITHUB_NAME_MAX + 1])
{
    static const char hex[] = "0123456789ABCDEF";
    struct text name;
    text_init(&name, out, GITHUB_NAME_MAX + 1);
    for (; *bytes != '\0'; bytes++) {
        unsigned char byte = (unsigned char)*bytes;
        char escape[] = {'%', hex[byte >> 4], hex[byte & 15]};
        bool stays = strchr(LETTERS DIGITS "-_", *bytes) != NULL;
        size_t length = stays ? 1 : sizeof escape;
        if (name.length + length > GITHUB_NAME_MAX)
            return false;
        text_add_bytes(&name, stays ? bytes : escape, length);
    }
    return true;
}

void github_ref_name(const char *key, char out[GITHUB_NAME_MAX + 1])
{
    char digits[SHA256_HEX + 1];
    struct text name;
    if (github_escape(key, out))
        return;
    sha256_hex(key, strlen(key), digits);
    text_init(&name, out, GITHUB_NAME_MAX + 1);
    text_add(&name, GITHUB_HASH_MARK);
    text_add_bytes(&name, digits, HASH_DIGITS);
}

bool github_ref_key(const char *name, char *key, size_t size)
{
    char again[GITHUB_NAME_MAX + 1];
    struct url_part part = {.at = name, .length = strlen(name)};
    if (!url_decode(part, key, size))
        return false;
    github_ref_name(key, again);
    return strcmp(again, name) == 0;
}

void github_ref_prefix(const char *prefix, char out[GITHUB_NAME_MAX + 1])
{
    (void)github_escape(prefix, out);
}

void github_path_name(const char *name, char out[GITHUB_PATH_NAME_MAX + 1])
{
    struct text path;
    text_init(&path, out, GITHUB_PATH_NAME_MAX + 1);
    for (; *name != '\0'; name++)
        text_add_bytes(&path, *name == '%' ? "%25" : name, *name == '%' ? 3 : 1);
}
