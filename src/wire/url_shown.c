/* SPDX-License-Identifier: Apache-2.0 */
/* See url_shown.h. Rather hides too much than too little. */
#include "wire/url_shown.h"

#include <string.h>

static const char stars[] = "***";

/* The parameters of a query that are no secret; any other value is hidden. */
static const char *const open_parameters[] = {
    "auth",     "connect_timeout", "db",        "host",
    "key",      "listen",          "names",     "port",
    "prefix",   "sslmode",         "user",      "application_name",
    "dbname",   "dedup",           "watermark", "ca",
    "cert",     "tls-key",         "name",      "password-file",
    "sentinel", "scripts",         "protocol",  "skew",
    "context",  "events",          "collect",
};

static bool is_open(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof open_parameters / sizeof open_parameters[0]; i++) {
        const char *known = open_parameters[i];
        if (strlen(known) == length && memcmp(known, name, length) == 0)
            return true;
    }
    return false;
}

static void show_query(const char *at, struct text *out)
{
    while (*at != '\0') {
        size_t pair = strcspn(at, "&"), name = strcspn(at, "=&");
        text_add_bytes(out, at, name);
        if (name < pair && is_open(at, name))
            text_add_bytes(out, at + name, pair - name);
        else if (name < pair) {
            text_add(out, "=");
            text_add(out, stars);
        }
        at += pair;
        if (*at == '&') {
            text_add(out, "&");
            at++;
        }
    }
}

void url_show(const char *url, struct text *out)
{
    const char *slashes = strstr(url, "://");
    if (slashes == NULL) { /* a path, whatever stands in it */
        text_add(out, url);
        return;
    }
    const char *at = slashes + 3;
    text_add_bytes(out, url, (size_t)(at - url));
    size_t rest = strlen(at), query = strcspn(at, "?");
    /* The last @ counts, also behind a slash: passwords are often not encoded. */
    const char *host = memrchr(at, '@', rest);
    if (host != NULL) {
        size_t user = strcspn(at, ":@");
        text_add_bytes(out, at, user);
        if (at + user < host) {
            text_add(out, ":");
            text_add(out, stars);
        }
        at = host;
        query = strcspn(at, "?");
    }
    text_add_bytes(out, at, query);
    if (at[query] == '?') {
        text_add(out, "?");
        show_query(at + query + 1, out);
    }
}

static void hide(char *secret, const char *end)
{
    while (secret < end)
        *secret++ = stars[0];
}

void url_hide(char *url)
{
    char *at = strstr(url, "://");
    char *host = at != NULL ? strrchr(at, '@') : NULL;
    if (at == NULL)
        return;
    if (host != NULL) {
        char *secret = at + 3 + strcspn(at + 3, ":@");
        hide(secret < host ? secret + 1 : host, host);
        at = host;
    }
    for (at += strcspn(at, "?"); *at != '\0'; at += strcspn(at, "&")) {
        size_t name = strcspn(++at, "=&");
        char *value = at + name + (at[name] == '=' ? 1 : 0);
        if (!is_open(at, name))
            hide(value, value + strcspn(value, "&"));
    }
}
