/* SPDX-License-Identifier: Apache-2.0 */
/* See k8s_url.h. */
#include "wire/k8s_url.h"

#include "base/sha256.h"
#include "wire/store_url.h"

#include <string.h>

enum { HASH_SHORT = 16, HASH_LONG = 40, SKEW_USUAL_MS = 5000 };
enum { COLLECT_USUAL = 30, COLLECT_MAX = 60000 };

#define HASH_PREFIX "wfe-"
#define HASH_MARK   "lh-"

static bool is_name_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '-';
}

/* True if a name may contain the bytes; `begins`, `ends`: also at its start or end. */
static bool is_part(const char *bytes, size_t length, bool begins, bool ends)
{
    for (size_t i = 0; i < length; i++) {
        if (!is_name_byte(bytes[i]))
            return false;
    }
    return (!begins || length == 0 || bytes[0] != '-') &&
           (!ends || length == 0 || bytes[length - 1] != '-');
}

static bool is_prefix(const char *text)
{
    return is_part(text, strlen(text), /* begins= */ true, /* ends= */ false);
}

enum { OPTION_PREFIX, OPTION_SKEW };

#define K8S_OPTION(field, ...) URL_OPTION(struct k8s_url, field, __VA_ARGS__)

/* The words of `names` are in the order of enum k8s_names. */
static const struct url_option options[] = {
    [OPTION_PREFIX] =
        K8S_OPTION(prefix, "prefix", .is_valid = is_prefix,
                   .rule = "a prefix has at most 40 lower-case letters, digits and hyphens"),
    [OPTION_SKEW] = K8S_OPTION(skew_ms, "skew", .kind = URL_DURATION, .most = K8S_SKEW_MAX_MS,
                               .rule = "skew is a duration of at most 1h"),
    K8S_OPTION(names, "names", .kind = URL_CHOICE, .words = "auto|hash|plain",
               .rule = "names is auto, hash or plain"),
    K8S_OPTION(events, "events", .kind = URL_CHOICE, .words = "off|on",
               .rule = "events is on or off"),
    K8S_OPTION(collect, "collect", .kind = URL_NUMBER, .least = 1, .most = COLLECT_MAX,
               .words = "off", .rule = "collect is off or a number a minute, at most 60000"),
    K8S_OPTION(context, "context", .rule = "the context's name is too long"),
};

static const struct url_form form = {
    .schemes = "k8s",
    .rule = "the URL must begin with k8s://, as in k8s://default",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
};

bool k8s_url_parse(const char *url, struct k8s_url *out, struct text *why)
{
    struct k8s_url parsed = {.skew_ms = SKEW_USUAL_MS, .collect = COLLECT_USUAL};
    struct url_parts parts;
    if (!url_read(url, &form, &parts, &parsed, why))
        return false;
    if (!is_part(parts.hosts.at, parts.hosts.length, /* begins= */ true, /* ends= */ true) ||
        !url_decode(parts.hosts, parsed.namespace, sizeof parsed.namespace))
        return url_refuse(why, "a namespace has at most 63 lower-case letters, digits and hyphens");
    if (parts.path.length > 0)
        return url_refuse(why,
                          "only options may follow the namespace, as in k8s://default?prefix=a-");
    parsed.skew_given = (parts.given & 1U << OPTION_SKEW) != 0;
    if (parsed.names == K8S_NAMES_HASH && (parts.given & 1U << OPTION_PREFIX) == 0)
        text_copy(parsed.prefix, sizeof parsed.prefix, HASH_PREFIX);
    *out = parsed;
    return true;
}

static bool is_object_name(const struct k8s_url *url, const char *key)
{
    size_t length = strlen(key), before = strlen(url->prefix);
    bool reserved = strncmp(K8S_EPOCH_LEASE, url->prefix, before) == 0 &&
                    strcmp(&K8S_EPOCH_LEASE[before], key) == 0;
    return length > 0 && before + length <= K8S_NAME_MAX && !reserved &&
           is_part(key, length, /* begins= */ before == 0, /* ends= */ true);
}

bool k8s_name_of(const struct k8s_url *url, const char *key, char out[K8S_NAME_MAX + 1])
{
    bool marked = strncmp(key, HASH_MARK, sizeof HASH_MARK - 1) == 0;
    bool plain = url->names != K8S_NAMES_HASH && is_object_name(url, key);
    char digits[SHA256_HEX + 1];
    struct text name;
    if (url->names == K8S_NAMES_PLAIN && !plain)
        return false;
    text_init(&name, out, K8S_NAME_MAX + 1);
    text_add(&name, url->prefix);
    if (plain && (url->names == K8S_NAMES_PLAIN || !marked)) {
        text_add(&name, key);
        return true;
    }
    sha256_hex(key, strlen(key), digits);
    if (url->names == K8S_NAMES_AUTO)
        text_add(&name, HASH_MARK);
    size_t room = K8S_NAME_MAX - name.length, wanted = HASH_LONG;
    if (url->names == K8S_NAMES_HASH)
        wanted = HASH_SHORT;
    text_add_bytes(&name, digits, room < wanted ? room : wanted);
    return true;
}

bool k8s_scheme_of(const char *name, const char *key, struct k8s_url *out)
{
    static const enum k8s_names ways[] = {K8S_NAMES_AUTO, K8S_NAMES_HASH, K8S_NAMES_PLAIN};
    size_t length = strlen(name);
    for (size_t prefix = 0; prefix <= K8S_PREFIX_MAX && prefix < length; prefix++) {
        for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
            struct k8s_url tried = {.names = ways[i]};
            char made[K8S_NAME_MAX + 1];
            memcpy(tried.prefix, name, prefix);
            if (is_part(name, prefix, /* begins= */ true, /* ends= */ false) &&
                k8s_name_of(&tried, key, made) && strcmp(made, name) == 0) {
                text_copy(out->prefix, sizeof out->prefix, tried.prefix);
                out->names = ways[i];
                return true;
            }
        }
    }
    return false;
}
