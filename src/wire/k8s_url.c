/* SPDX-License-Identifier: Apache-2.0 */
/* See k8s_url.h. */
#include "wire/k8s_url.h"

#include "base/sha256.h"
#include "wire/duration.h"

#include <string.h>

enum { HASH_SHORT = 16, HASH_LONG = 40, SKEW_USUAL_MS = 5000 };
enum { COLLECT_USUAL = 30, COLLECT_MAX = 60000 };

#define SCHEME      "k8s://"
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

static bool k8s_url_refuse(struct text *why, const char *text)
{
    text_add(why, text);
    return false;
}

static bool copy_bounded(char *to, size_t size, const char *value, size_t length)
{
    if (length >= size)
        return false;
    memcpy(to, value, length);
    to[length] = '\0';
    return true;
}

static bool value_is(const char *value, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(value, word, length) == 0;
}

static bool read_names(struct k8s_url *out, const char *value, size_t length)
{
    static const char *const text[] = {
        [K8S_NAMES_AUTO] = "auto", [K8S_NAMES_HASH] = "hash", [K8S_NAMES_PLAIN] = "plain"};
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) {
        if (value_is(value, length, text[i])) {
            out->names = (enum k8s_names)i;
            return true;
        }
    }
    return false;
}

static bool read_skew(struct k8s_url *out, const char *value, size_t length)
{
    out->skew_given = true;
    return duration_read(value, length, &out->skew_ms) == DURATION_OK &&
           out->skew_ms <= K8S_SKEW_MAX_MS;
}

static bool read_switch(bool *out, const char *value, size_t length)
{
    *out = value_is(value, length, "on");
    return *out || value_is(value, length, "off");
}

static bool read_collect(struct k8s_url *out, const char *value, size_t length)
{
    uint32_t number = 0;
    if (value_is(value, length, "off")) {
        out->collect = 0;
        return true;
    }
    for (size_t i = 0; i < length; i++) {
        if (value[i] < '0' || value[i] > '9' || number > COLLECT_MAX)
            return false;
        number = number * 10 + (uint32_t)(value[i] - '0');
    }
    out->collect = number;
    return number > 0 && number <= COLLECT_MAX;
}

static bool read_option(struct k8s_url *out, const char *option, size_t length, bool *prefixed,
                        struct text *why)
{
    size_t name = 0;
    while (name < length && option[name] != '=')
        name++;
    if (name == length)
        return k8s_url_refuse(why, "options are written as ?name=value");
    const char *value = option + name + 1;
    size_t size = length - name - 1;
    if (value_is(option, name, "names"))
        return read_names(out, value, size) || k8s_url_refuse(why, "names is auto, hash or plain");
    if (value_is(option, name, "skew"))
        return read_skew(out, value, size) ||
               k8s_url_refuse(why, "skew is a duration of at most 1h");
    if (value_is(option, name, "events"))
        return read_switch(&out->events, value, size) || k8s_url_refuse(why, "events is on or off");
    if (value_is(option, name, "collect"))
        return read_collect(out, value, size) ||
               k8s_url_refuse(why, "collect is off or a number a minute, at most 60000");
    if (value_is(option, name, "context"))
        return copy_bounded(out->context, sizeof out->context, value, size) ||
               k8s_url_refuse(why, "the context's name is too long");
    if (!value_is(option, name, "prefix"))
        return k8s_url_refuse(why,
                              "the options are prefix, names, skew, events, collect and context");
    *prefixed = true;
    return (is_part(value, size, /* begins= */ true, /* ends= */ false) &&
            copy_bounded(out->prefix, sizeof out->prefix, value, size)) ||
           k8s_url_refuse(why, "a prefix has at most 40 lower-case letters, digits and hyphens");
}

bool k8s_url_parse(const char *url, struct k8s_url *out, struct text *why)
{
    struct k8s_url parsed = {.skew_ms = SKEW_USUAL_MS, .collect = COLLECT_USUAL};
    bool prefixed = false;
    if (strncmp(url, SCHEME, sizeof SCHEME - 1) != 0)
        return k8s_url_refuse(why, "the URL must begin with k8s://, as in k8s://default");
    const char *at = url + sizeof SCHEME - 1;
    size_t length = strcspn(at, "/?");
    if (!is_part(at, length, /* begins= */ true, /* ends= */ true) ||
        !copy_bounded(parsed.namespace, sizeof parsed.namespace, at, length))
        return k8s_url_refuse(why,
                              "a namespace has at most 63 lower-case letters, digits and hyphens");
    at += length;
    at += *at == '/' ? 1 : 0;
    if (*at != '?' && *at != '\0')
        return k8s_url_refuse(
            why, "only options may follow the namespace, as in k8s://default?prefix=a-");
    while (*at != '\0') {
        length = strcspn(++at, "&");
        if (!read_option(&parsed, at, length, &prefixed, why))
            return false;
        at += length;
    }
    if (parsed.names == K8S_NAMES_HASH && !prefixed)
        text_copy(parsed.prefix, sizeof parsed.prefix, HASH_PREFIX);
    *out = parsed;
    return true;
}

static bool is_object_name(const struct k8s_url *url, const char *key)
{
    size_t length = strlen(key);
    return length > 0 && strlen(url->prefix) + length <= K8S_NAME_MAX &&
           is_part(key, length, /* begins= */ url->prefix[0] == '\0', /* ends= */ true);
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
