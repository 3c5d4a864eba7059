/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See url_shown.h. A list of what is known to be harmless, not of what looks like a secret: a URL
 * that does not parse has its password anywhere. So each part is shown only in the form that it
 * must have.
 */
#include "wire/url_shown.h"

#include <string.h>

enum { SCHEME_MOST = 16, NAME_MOST = 32, PORT_DIGITS = 5 };

static const char stars[] = "***";

#define LOWER   "abcdefghijklmnopqrstuvwxyz"
#define LETTERS LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS  "0123456789"

/* Takes the parts of a URL in their order. */
struct shower {
    void (*take)(struct shower *shower, const char *part, size_t length, bool secret);
    struct text *out; /* of url_show() */
    char *url;        /* of url_hide() */
};

static void show(struct shower *shower, const char *part, size_t length)
{
    if (length > 0)
        shower->take(shower, part, length, /* secret= */ false);
}

static void hide(struct shower *shower, const char *part, size_t length)
{
    if (length > 0)
        shower->take(shower, part, length, /* secret= */ true);
}

static void show_if(struct shower *shower, bool harmless, const char *part, size_t length)
{
    if (harmless)
        show(shower, part, length);
    else
        hide(shower, part, length);
}

/* Is every byte one of these? */
static bool is_made_of(const char *part, size_t length, const char *bytes)
{
    for (size_t i = 0; i < length; i++)
        if (part[i] == '\0' || strchr(bytes, part[i]) == NULL)
            return false;
    return true;
}

static bool is_word(const char *part, size_t length, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(words[i]) == length && memcmp(words[i], part, length) == 0)
            return true;
    return false;
}

/* ---- the query ---- */

/* The parameters whose values are no secret. */
static const char *const open_parameters[] = {
    "auth",     "connect_timeout", "db",        "host",
    "key",      "listen",          "names",     "port",
    "prefix",   "sslmode",         "user",      "application_name",
    "dbname",   "dedup",           "watermark", "ca",
    "cert",     "tls-key",         "name",      "password-file",
    "sentinel", "scripts",         "protocol",  "skew",
    "context",  "events",          "collect",   "client-id",
};

static bool is_open(const char *name, size_t length)
{
    return is_word(name, length, open_parameters,
                   sizeof open_parameters / sizeof open_parameters[0]);
}

static void show_pair(struct shower *shower, const char *pair, size_t length)
{
    const char *sign = memchr(pair, '=', length);
    size_t name = sign != NULL ? (size_t)(sign - pair) : length;
    if (sign == NULL) { /* no parameter at all */
        hide(shower, pair, length);
        return;
    }
    show_if(shower, name <= NAME_MOST && is_made_of(pair, name, LOWER "_-"), pair, name);
    show(shower, sign, 1);
    const char *value = sign + 1;
    size_t rest = length - name - 1;
    bool harmless = is_open(pair, name) && is_made_of(value, rest, LETTERS DIGITS "._~%:/+-,[]{}");
    show_if(shower, harmless, value, rest);
}

static void show_query(struct shower *shower, const char *at)
{
    while (*at != '\0') {
        size_t pair = strcspn(at, "&");
        show_pair(shower, at, pair);
        at += pair;
        if (*at == '&')
            show(shower, at++, 1);
    }
}

/* ---- before it ---- */

size_t url_scheme(const char *url)
{
    static const char *const others[] = {"k8s"};
    size_t length = strcspn(url, ":");
    bool harmless = length <= SCHEME_MOST &&
                    (is_made_of(url, length, LETTERS "+") || is_word(url, length, others, 1));
    return url[length] == ':' && harmless ? length : 0;
}

static bool has(const char *part, size_t length, const char *words)
{
    return memmem(part, length, words, strlen(words)) != NULL;
}

/* A user without a password is shown only where the URL says that the password is elsewhere: many
 * write their password in its place. */
static void show_user(struct shower *shower, const char *at, size_t length, const char *query)
{
    const char *colon = memchr(at, ':', length);
    size_t user = colon != NULL ? (size_t)(colon - at) : length;
    bool elsewhere = has(query, strlen(query), "password-file=") ||
                     has(query, strlen(query), "auth=") || has(query, strlen(query), "cert=");
    show_if(shower, (colon != NULL || elsewhere) && is_made_of(at, user, LETTERS DIGITS "._-"), at,
            user);
    if (colon != NULL) {
        show(shower, colon, 1);
        hide(shower, colon + 1, length - user - 1);
    }
}

/* host, host:port, [::1] or [::1]:port */
static void show_host(struct shower *shower, const char *at, size_t length)
{
    const char *close = at[0] == '[' ? memchr(at, ']', length) : NULL;
    const char *from = close != NULL ? close : at;
    const char *colon = memchr(from, ':', length - (size_t)(from - at));
    size_t name = colon != NULL ? (size_t)(colon - at) : length;
    size_t port = length - name - (colon != NULL ? 1 : 0);
    show_if(shower,
            is_made_of(at, name, close != NULL ? LETTERS DIGITS ".:%[]" : LETTERS DIGITS "._-"), at,
            name);
    if (colon == NULL)
        return;
    show(shower, colon, 1);
    show_if(shower, port <= PORT_DIGITS && is_made_of(colon + 1, port, DIGITS), colon + 1, port);
}

static void show_hosts(struct shower *shower, const char *at, size_t length)
{
    for (const char *end = at + length; at < end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        size_t host = (size_t)((comma != NULL ? comma : end) - at);
        show_host(shower, at, host);
        at += host;
        if (comma != NULL)
            show(shower, at++, 1);
    }
}

/* A number, as of a database, or in some schemes a name. */
static void show_path(struct shower *shower, const char *url, const char *at, size_t length)
{
    static const char *const named[] = {"postgres", "postgresql", "github"};
    bool names = is_word(url, url_scheme(url), named, sizeof named / sizeof named[0]);
    if (length > 0)
        show(shower, at, 1);
    show_if(shower,
            length < 2 || is_made_of(at + 1, length - 1, names ? LETTERS DIGITS "._/-" : DIGITS),
            at + 1, length > 0 ? length - 1 : 0);
}

static bool is_file(const char *url)
{
    return strncmp(url, "file:", 5) == 0 || url[0] == '/' || strncmp(url, "./", 2) == 0;
}

/* A path is shown, whatever stands in it, unless it is another URL. */
static void show_file(struct shower *shower, const char *url)
{
    size_t scheme = url[0] == 'f' ? 5 : 0;
    const char *path = url + scheme, *colon = strchr(path, ':');
    show(shower, url, scheme);
    show_if(shower, colon == NULL || strchr(colon, '@') == NULL, path, strlen(path));
}

static void show_parts(struct shower *shower, const char *url)
{
    size_t scheme = url_scheme(url);
    const char *at = url + scheme + 1, *last = strrchr(url, '@');
    if (is_file(url)) {
        show_file(shower, url);
        return;
    }
    /* Is that @ in the password, or in a parameter? */
    const char *mark = strchr(url, '?'), *sign = mark != NULL ? strchr(mark, '=') : NULL;
    bool unclear = last != NULL && sign != NULL && sign < last;
    if (scheme == 0 || unclear) {
        size_t shown = scheme > 0 ? scheme + 1 : 0;
        show(shower, url, shown);
        hide(shower, url + shown, strlen(url + shown));
        return;
    }
    show(shower, url, scheme + 1);
    size_t slashes = strspn(at, "/");
    show(shower, at, slashes);
    at += slashes;
    if (last != NULL && last >= at) {
        const char *query = last + strcspn(last, "?");
        show_user(shower, at, (size_t)(last - at), query);
        show(shower, last, 1);
        at = last + 1;
    }
    size_t hosts = strcspn(at, "/?"), path = strcspn(at + hosts, "?");
    show_hosts(shower, at, hosts);
    show_path(shower, url, at + hosts, path);
    at += hosts + path;
    if (*at == '?') {
        show(shower, at, 1);
        show_query(shower, at + 1);
    }
}

/* ---- two forms ---- */

static void add_part(struct shower *shower, const char *part, size_t length, bool secret)
{
    if (secret)
        text_add(shower->out, stars);
    else
        text_add_clean(shower->out, part, length);
}

void url_show(const char *url, struct text *out)
{
    struct shower shower = {.take = add_part, .out = out};
    show_parts(&shower, url);
}

/* The parts are the URL's own bytes, which url_hide() may change; those before are done with. */
static void star_part(struct shower *shower, const char *part, size_t length, bool secret)
{
    if (secret)
        memset(shower->url + (part - shower->url), stars[0], length);
}

void url_hide(char *url)
{
    struct shower shower = {.take = star_part, .url = url};
    show_parts(&shower, url);
}
