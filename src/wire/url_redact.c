/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See url_redact.h. An allowlist: in a URL that does not parse, the password can be anywhere, so
 * each part is shown only if it has its expected form.
 */
#include "wire/url_redact.h"

#include <string.h>

enum { SCHEME_MOST = 16, NAME_MOST = 32, PORT_DIGITS = 5 };

static const char stars[] = "***";

#define LOWER   "abcdefghijklmnopqrstuvwxyz"
#define LETTERS LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS  "0123456789"

/* Receives the parts of a URL in order. */
struct redactor {
    void (*emit)(struct redactor *redactor, const char *part, size_t length, bool secret);
    struct text *out; /* of url_redact() */
    char *url;        /* of url_redact_in_place() */
};

static void url_emit(struct redactor *redactor, const char *part, size_t length)
{
    if (length > 0)
        redactor->emit(redactor, part, length, /* secret= */ false);
}

static void url_mask(struct redactor *redactor, const char *part, size_t length)
{
    if (length > 0)
        redactor->emit(redactor, part, length, /* secret= */ true);
}

static void url_emit_if(struct redactor *redactor, bool harmless, const char *part, size_t length)
{
    if (harmless)
        url_emit(redactor, part, length);
    else
        url_mask(redactor, part, length);
}

/* True if every byte is one of `bytes`. */
static bool is_made_of(const char *part, size_t length, const char *bytes)
{
    for (size_t i = 0; i < length; i++)
        if (part[i] == '\0' || strchr(bytes, part[i]) == NULL)
            return false;
    return true;
}

static bool is_listed(const char *part, size_t length, const char *const *text, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(text[i]) == length && memcmp(text[i], part, length) == 0)
            return true;
    return false;
}

/* ---- the query ---- */

/* The parameters whose values are not secret. */
static const char *const public_parameters[] = {
    "auth",     "connect_timeout", "db",        "host",
    "key",      "listen",          "names",     "port",
    "prefix",   "sslmode",         "user",      "application_name",
    "dbname",   "dedup",           "watermark", "ca",
    "cert",     "tls-key",         "name",      "password-file",
    "sentinel", "scripts",         "protocol",  "skew",
    "context",  "events",          "collect",   "client-id",
};

static bool is_public(const char *name, size_t length)
{
    return is_listed(name, length, public_parameters,
                     sizeof public_parameters / sizeof public_parameters[0]);
}

static void redact_pair(struct redactor *redactor, const char *pair, size_t length)
{
    const char *sign = memchr(pair, '=', length);
    size_t name = sign != NULL ? (size_t)(sign - pair) : length;
    if (sign == NULL) { /* not a parameter */
        url_mask(redactor, pair, length);
        return;
    }
    url_emit_if(redactor, name <= NAME_MOST && is_made_of(pair, name, LOWER "_-"), pair, name);
    url_emit(redactor, sign, 1);
    const char *value = sign + 1;
    size_t rest = length - name - 1;
    bool harmless =
        is_public(pair, name) && is_made_of(value, rest, LETTERS DIGITS "._~%:/+-,[]{}");
    url_emit_if(redactor, harmless, value, rest);
}

static void redact_query(struct redactor *redactor, const char *at)
{
    while (*at != '\0') {
        size_t pair = strcspn(at, "&");
        redact_pair(redactor, at, pair);
        at += pair;
        if (*at == '&')
            url_emit(redactor, at++, 1);
    }
}

/* ---- scheme, user, hosts, path ---- */

size_t url_scheme(const char *url)
{
    static const char *const others[] = {"k8s"};
    size_t length = strcspn(url, ":");
    bool harmless = length <= SCHEME_MOST &&
                    (is_made_of(url, length, LETTERS "+") || is_listed(url, length, others, 1));
    return url[length] == ':' && harmless ? length : 0;
}

static bool has(const char *part, size_t length, const char *text)
{
    return memmem(part, length, text, strlen(text)) != NULL;
}

/* A user without a password is shown only if the URL names another source of the password: many
 * people write their password in its place. */
static void redact_user(struct redactor *redactor, const char *at, size_t length, const char *query)
{
    const char *colon = memchr(at, ':', length);
    size_t user = colon != NULL ? (size_t)(colon - at) : length;
    bool elsewhere = has(query, strlen(query), "password-file=") ||
                     has(query, strlen(query), "auth=") || has(query, strlen(query), "cert=");
    url_emit_if(redactor,
                (colon != NULL || elsewhere) && is_made_of(at, user, LETTERS DIGITS "._-"), at,
                user);
    if (colon != NULL) {
        url_emit(redactor, colon, 1);
        url_mask(redactor, colon + 1, length - user - 1);
    }
}

/* host, host:port, [::1] or [::1]:port */
static void redact_host(struct redactor *redactor, const char *at, size_t length)
{
    const char *close = at[0] == '[' ? memchr(at, ']', length) : NULL;
    const char *from = close != NULL ? close : at;
    const char *colon = memchr(from, ':', length - (size_t)(from - at));
    size_t name = colon != NULL ? (size_t)(colon - at) : length;
    size_t port = length - name - (colon != NULL ? 1 : 0);
    url_emit_if(redactor,
                is_made_of(at, name, close != NULL ? LETTERS DIGITS ".:%[]" : LETTERS DIGITS "._-"),
                at, name);
    if (colon == NULL)
        return;
    url_emit(redactor, colon, 1);
    url_emit_if(redactor, port <= PORT_DIGITS && is_made_of(colon + 1, port, DIGITS), colon + 1,
                port);
}

static void redact_hosts(struct redactor *redactor, const char *at, size_t length)
{
    for (const char *end = at + length; at < end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        size_t host = (size_t)((comma != NULL ? comma : end) - at);
        redact_host(redactor, at, host);
        at += host;
        if (comma != NULL)
            url_emit(redactor, at++, 1);
    }
}

/* A database number or, in some schemes, a name. */
static void redact_path(struct redactor *redactor, const char *url, const char *at, size_t length)
{
    static const char *const named[] = {"postgres", "postgresql", "github"};
    bool names = is_listed(url, url_scheme(url), named, sizeof named / sizeof named[0]);
    if (length > 0)
        url_emit(redactor, at, 1);
    url_emit_if(redactor,
                length < 2 ||
                    is_made_of(at + 1, length - 1, names ? LETTERS DIGITS "._/-" : DIGITS),
                at + 1, length > 0 ? length - 1 : 0);
}

static bool is_file(const char *url)
{
    return strncmp(url, "file:", 5) == 0 || url[0] == '/' || strncmp(url, "./", 2) == 0;
}

/* A path is shown unless it contains another URL. */
static void redact_file(struct redactor *redactor, const char *url)
{
    size_t scheme = url[0] == 'f' ? 5 : 0;
    const char *path = url + scheme, *colon = strchr(path, ':');
    url_emit(redactor, url, scheme);
    url_emit_if(redactor, colon == NULL || strchr(colon, '@') == NULL, path, strlen(path));
}

static void redact_parts(struct redactor *redactor, const char *url)
{
    size_t scheme = url_scheme(url);
    const char *at = url + scheme + 1, *last = strrchr(url, '@');
    if (is_file(url)) {
        redact_file(redactor, url);
        return;
    }
    /* The last @ may be in the password or in a parameter. */
    const char *mark = strchr(url, '?'), *sign = mark != NULL ? strchr(mark, '=') : NULL;
    bool unclear = last != NULL && sign != NULL && sign < last;
    if (scheme == 0 || unclear) {
        size_t shown = scheme > 0 ? scheme + 1 : 0;
        url_emit(redactor, url, shown);
        url_mask(redactor, url + shown, strlen(url + shown));
        return;
    }
    url_emit(redactor, url, scheme + 1);
    size_t slashes = strspn(at, "/");
    url_emit(redactor, at, slashes);
    at += slashes;
    if (last != NULL && last >= at) {
        const char *query = last + strcspn(last, "?");
        redact_user(redactor, at, (size_t)(last - at), query);
        url_emit(redactor, last, 1);
        at = last + 1;
    }
    size_t hosts = strcspn(at, "/?"), path = strcspn(at + hosts, "?");
    redact_hosts(redactor, at, hosts);
    redact_path(redactor, url, at + hosts, path);
    at += hosts + path;
    if (*at == '?') {
        url_emit(redactor, at, 1);
        redact_query(redactor, at + 1);
    }
}

/* ---- output ---- */

static void emit_redacted(struct redactor *redactor, const char *part, size_t length, bool secret)
{
    if (secret)
        text_add(redactor->out, stars);
    else
        text_add_clean(redactor->out, part, length);
}

void url_redact(const char *url, struct text *out)
{
    struct redactor redactor = {.emit = emit_redacted, .out = out};
    redact_parts(&redactor, url);
}

/* The parts point into the URL, which url_redact_in_place() may change; earlier parts are not read
 * again. */
static void mask_in_place(struct redactor *redactor, const char *part, size_t length, bool secret)
{
    if (secret)
        memset(redactor->url + (part - redactor->url), stars[0], length);
}

void url_redact_in_place(char *url)
{
    struct redactor redactor = {.emit = mask_in_place, .url = url};
    redact_parts(&redactor, url);
}
