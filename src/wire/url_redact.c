/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See url_redact.h. An allowlist: in a URL that does not parse, the password can be anywhere, so
 * each part is shown only if it has its expected form.
 */
#include "wire/url_redact.h"

#include "wire/store_url.h"

#include <string.h>

enum { SCHEME_MOST = 16, NAME_MOST = 32, PORT_DIGITS = 5 };

static const char stars[] = "***";

#define LOWER   "abcdefghijklmnopqrstuvwxyz"
#define LETTERS LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS  "0123456789"

/* The bytes between two parts. */
#define SEPARATORS ":/@,?&="

/* Receives the parts of a URL in order. */
struct redactor {
    void (*emit)(struct redactor *redactor, const char *part, size_t length, bool secret);
    const char *at;   /* the end of what was emitted */
    struct text *out; /* of url_redact() */
    char *url;        /* of url_redact_in_place() */
};

/* True if every byte is one of `bytes`. */
static bool is_made_of(struct url_part part, const char *bytes)
{
    for (size_t i = 0; part.at != NULL && i < part.length; i++)
        if (part.at[i] == '\0' || strchr(bytes, part.at[i]) == NULL)
            return false;
    return true;
}

/* Emits the part, and what precedes it: separators only, so that no byte is shown unchecked. */
static void url_emit(struct redactor *redactor, struct url_part part, bool harmless)
{
    if (part.at == NULL)
        return;
    struct url_part gap = {.at = redactor->at, .length = (size_t)(part.at - redactor->at)};
    if (gap.length > 0)
        redactor->emit(redactor, gap.at, gap.length, !is_made_of(gap, SEPARATORS));
    if (part.length > 0)
        redactor->emit(redactor, part.at, part.length, !harmless);
    redactor->at = part.at + part.length;
}

static bool is_listed(const char *words, struct url_part part)
{
    uint64_t index;
    return url_find_word(words, part, &index);
}

/* ---- the query ---- */

/* The parameters whose values are not secret. */
static const char public_parameters[] =
    "auth|connect_timeout|db|host|key|listen|names|port|prefix|sslmode|user|application_name|"
    "dbname|dedup|watermark|ca|cert|tls-key|name|password-file|sentinel|scripts|protocol|skew|"
    "context|events|collect|client-id|show|heartbeat|stale|poll|pace|writes|budget|token-file|app|"
    "app-key-file";

static void redact_query(struct redactor *redactor, struct url_part query)
{
    struct url_part name, value;
    while (url_next_option(&query, &name, &value)) {
        bool named = value.at != NULL && name.length <= NAME_MOST && is_made_of(name, LOWER "_-");
        url_emit(redactor, name, named);
        url_emit(redactor, value,
                 is_listed(public_parameters, name) &&
                     is_made_of(value, LETTERS DIGITS "._~%:/+-,[]{}"));
    }
}

/* ---- scheme, user, hosts, path ---- */

size_t url_scheme(const char *url)
{
    struct url_part scheme = {.at = url, .length = strcspn(url, ":")};
    bool harmless = scheme.length <= SCHEME_MOST &&
                    (is_made_of(scheme, LETTERS "+") || is_listed("k8s", scheme));
    return url[scheme.length] == ':' && harmless ? scheme.length : 0;
}

static bool has(struct url_part part, const char *text)
{
    return part.length > 0 && memmem(part.at, part.length, text, strlen(text)) != NULL;
}

/* A user without a password is shown only if the URL names another source of the password: many
 * people write their password in its place. */
static void redact_user(struct redactor *redactor, const struct url_parts *parts)
{
    bool elsewhere = has(parts->query, "password-file=") || has(parts->query, "auth=") ||
                     has(parts->query, "cert=");
    url_emit(redactor, parts->user,
             (parts->password.at != NULL || elsewhere) &&
                 is_made_of(parts->user, LETTERS DIGITS "._-"));
    url_emit(redactor, parts->password, /* harmless= */ false);
}

static void redact_hosts(struct redactor *redactor, struct url_part hosts)
{
    struct url_part name, port;
    while (url_next_host(&hosts, &name, &port)) {
        bool bracket = name.length > 0 && name.at[0] == '[' && memchr(name.at, ']', name.length);
        url_emit(redactor, name,
                 is_made_of(name, bracket ? LETTERS DIGITS ".:%[]" : LETTERS DIGITS "._-"));
        url_emit(redactor, port, port.length <= PORT_DIGITS && is_made_of(port, DIGITS));
    }
}

/* A database number or, in some schemes, a name. */
static void redact_path(struct redactor *redactor, const char *url, struct url_part path)
{
    struct url_part scheme = {.at = url, .length = url_scheme(url)};
    bool names = is_listed("postgres|postgresql|github", scheme);
    url_emit(redactor, path, is_made_of(path, names ? LETTERS DIGITS "._/-" : DIGITS));
}

static bool is_file(const char *url)
{
    return strncmp(url, "file:", 5) == 0 || url[0] == '/' || strncmp(url, "./", 2) == 0;
}

/* A path is shown unless it contains another URL. */
static bool is_path(const char *path)
{
    const char *colon = strchr(path, ':');
    return colon == NULL || strchr(colon, '@') == NULL;
}

static void redact_parts(struct redactor *redactor, const char *url)
{
    bool file = is_file(url);
    size_t scheme = url_scheme(url);
    const char *at = url + scheme + (scheme > 0 ? 1 : 0);
    struct url_parts parts;
    redactor->at = url;
    url_emit(redactor, (struct url_part){.at = url, .length = (size_t)(at - url)},
             /* harmless= */ true);
    url_split(at + strspn(at, "/"), /* users= */ true, &parts);
    if (file || scheme == 0 || parts.ambiguous) {
        url_emit(redactor, (struct url_part){.at = at, .length = strlen(at)}, file && is_path(at));
        return;
    }
    redact_user(redactor, &parts);
    redact_hosts(redactor, parts.hosts);
    redact_path(redactor, url, parts.path);
    redact_query(redactor, parts.query);
    url_emit(redactor, (struct url_part){.at = url + strlen(url)}, /* harmless= */ true);
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
