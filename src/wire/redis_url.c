/* SPDX-License-Identifier: Apache-2.0 */
/* See redis_url.h. */
#include "wire/redis_url.h"

#include <string.h>

/* Bytes of a name or an address. Errors show the host, so it must not be part of a password. */
#define HOST_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

enum { PORT_MAX = 65535, DB_MAX = 65535, NAME_MOST = 32, VALUE_MOST = REDIS_PASSWORD_MAX };

static int hex_of(char letter)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = letter != '\0' ? strchr(digits, letter | 0x20) : NULL;
    return found != NULL ? (int)(found - digits) : -1;
}

/* Decodes %41 and the like; any other % stays, as in lock:%s. False if the text is too long or has
 * control characters, NUL included. */
static bool unescape(const char *from, size_t length, char *to, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; i < length; i++) {
        char letter = from[i];
        if (letter == '%' && i + 2 < length && hex_of(from[i + 1]) >= 0 &&
            hex_of(from[i + 2]) >= 0) {
            letter = (char)(hex_of(from[i + 1]) * 16 + hex_of(from[i + 2]));
            i += 2;
        }
        if (at + 1 >= size)
            return false;
        to[at++] = letter;
    }
    to[at] = '\0';
    return text_is_clean(to, at);
}

static bool redis_url_read_number(const char *digits, size_t length, unsigned most, unsigned *out)
{
    unsigned number = 0;
    if (length == 0 || length > 5)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (digits[i] < '0' || digits[i] > '9')
            return false;
        number = number * 10 + (unsigned)(digits[i] - '0');
    }
    *out = number;
    return number <= most;
}

static bool redis_url_refuse(struct text *why, const char *text)
{
    text_add(why, text);
    return false;
}

/* host, host:port, [::1] or [::1]:port */
static bool read_host(const char *text, size_t length, struct redis_host *out)
{
    const char *close = text[0] == '[' ? memchr(text, ']', length) : NULL;
    const char *name = close != NULL ? text + 1 : text;
    const char *from = close != NULL ? close : text;
    const char *colon = memchr(from, ':', length - (size_t)(from - text));
    const char *end = close != NULL ? close : colon != NULL ? colon : text + length;
    unsigned port = REDIS_PORT;
    if (close != NULL && close + 1 != text + length && close + 1 != colon)
        return false;
    if (colon != NULL &&
        (!redis_url_read_number(colon + 1, (size_t)(text + length - colon) - 1, PORT_MAX, &port) ||
         port == 0))
        return false;
    out->port = colon != NULL ? (uint16_t)port : 0;
    return unescape(name, (size_t)(end - name), out->name, sizeof out->name) &&
           strspn(out->name, close != NULL ? HOST_BYTES ":%" : HOST_BYTES) == strlen(out->name);
}

static bool read_hosts(const char *text, size_t length, struct redis_url *out, struct text *why)
{
    for (const char *end = text + length; text < end || out->host_count == 0;) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        size_t count = (size_t)((comma != NULL ? comma : end) - text);
        if (out->host_count == REDIS_HOSTS_MAX)
            return redis_url_refuse(why, "there are more than 8 hosts in the URL");
        struct redis_host *host = &out->hosts[out->host_count++];
        if (!read_host(text, count, host))
            return redis_url_refuse(why, "a host is host, host:port or [address]:port; several are "
                                         "separated by commas");
        if (host->name[0] == '\0')
            text_copy(host->name, sizeof host->name, "localhost");
        text += count + (comma != NULL ? 1 : 0);
    }
    return true;
}

static bool read_user(const char *text, size_t length, struct redis_url *out)
{
    const char *colon = memchr(text, ':', length);
    size_t user = colon != NULL ? (size_t)(colon - text) : length;
    size_t rest = length - user - (colon != NULL ? 1 : 0);
    return unescape(text, user, out->user, sizeof out->user) &&
           unescape(text + length - rest, rest, out->password, sizeof out->password);
}

/* ---- options ---- */

static bool choose(const char *value, const char *first, const char *second, bool *out)
{
    *out = strcmp(value, second) == 0;
    return *out || strcmp(value, first) == 0;
}

static bool set_option(struct redis_url *url, const char *name, const char *value)
{
    struct {
        const char *name;
        char *to;
        size_t size;
    } text[] = {
        {"password-file", url->password_file, sizeof url->password_file},
        {"ca", url->ca, sizeof url->ca},
        {"cert", url->cert, sizeof url->cert},
        {"tls-key", url->tls_key, sizeof url->tls_key},
        {"name", url->tls_name, sizeof url->tls_name},
        {"sentinel", url->sentinel, sizeof url->sentinel},
        {"client-id", url->client_id, sizeof url->client_id},
    };
    static const char *const families[] = {
        [REDIS_ONCE] = "dedup", [REDIS_WATERMARK] = "watermark", [REDIS_LOCK] = "key"};
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) {
        if (strcmp(name, text[i].name) != 0)
            continue;
        if (value[0] == '\0' || strlen(value) >= text[i].size)
            return false;
        text_copy(text[i].to, text[i].size, value);
        return true;
    }
    for (enum redis_family family = REDIS_ONCE; family < REDIS_FAMILIES; family++)
        if (strcmp(name, families[family]) == 0)
            return redis_template_set(&url->templates, family, value);
    if (strcmp(name, "scripts") == 0)
        return choose(value, "yes", "no", &url->no_scripts);
    if (strcmp(name, "protocol") == 0)
        return redis_url_read_number(value, strlen(value), /* most= */ 3, &url->protocol) &&
               url->protocol >= 2;
    if (strcmp(name, "db") == 0)
        return redis_url_read_number(value, strlen(value), DB_MAX, &url->db);
    bool entra = strcmp(value, "entra") == 0 || strcmp(value, "entra-cli") == 0;
    if (strcmp(name, "auth") == 0 && entra) {
        text_copy(url->auth, sizeof url->auth, value);
        return true;
    }
    return false;
}

static bool read_options(const char *at, struct redis_url *out, struct text *why)
{
    char name[NAME_MOST + 1], value[VALUE_MOST + 1];
    while (*at != '\0') {
        size_t pair = strcspn(at, "&"), length = strcspn(at, "=&");
        bool fine = length < pair && unescape(at, length, name, sizeof name) &&
                    unescape(at + length + 1, pair - length - 1, value, sizeof value) &&
                    set_option(out, name, value);
        if (!fine) {
            bool named = length <= NAME_MOST && at[length] == '=' &&
                         strspn(at, "abcdefghijklmnopqrstuvwxyz-") == length;
            text_add(why, "the URL's option \"");
            text_add_bytes(why, at, named ? length : 0); /* else it may be part of a password */
            return redis_url_refuse(
                why, "\" is unknown, or its value is invalid; the options are key, dedup, "
                     "watermark (each with one %s), db, password-file, ca, cert, "
                     "tls-key, name, sentinel, scripts=no, protocol=2, auth=entra, "
                     "auth=entra-cli, client-id");
        }
        at += pair + (at[pair] == '&' ? 1 : 0);
    }
    return true;
}

static bool agrees(const struct redis_url *url, struct text *why)
{
    if (!url->tls && (url->ca[0] != '\0' || url->cert[0] != '\0' || url->tls_key[0] != '\0' ||
                      url->tls_name[0] != '\0'))
        return redis_url_refuse(why, "certificates need rediss://, not redis://");
    if (url->client_id[0] != '\0' && url->auth[0] == '\0')
        return redis_url_refuse(why, "client-id selects an identity of Entra ID; add auth=entra");
    if (url->password[0] != '\0' && (url->password_file[0] != '\0' || url->auth[0] != '\0'))
        return redis_url_refuse(
            why, "the URL has a password and also password-file or auth; use only one");
    return true;
}

bool redis_url_read(const char *url, struct redis_url *out, struct text *why)
{
    const char *at = strchr(url, ':');
    memset(out, 0, sizeof *out);
    redis_templates_init(&out->templates);
    if (at == NULL || strncmp(at, "://", 3) != 0)
        return redis_url_refuse(why, "the URL must be redis://host:port, or rediss:// for TLS");
    out->tls = at - url == (ptrdiff_t)(sizeof "rediss" - 1);
    at += 3;
    /* The last @ ends the password, since passwords are often not encoded. */
    const char *user_end = strrchr(at, '@'), *mark = strchr(at, '?');
    const char *sign = mark != NULL ? strchr(mark, '=') : NULL;
    if (user_end != NULL && sign != NULL && sign < user_end)
        return redis_url_refuse(
            why, "an @ or a ? of the password, or an @ in an option, must be written as "
                 "%40 or %3F");
    if (user_end != NULL && !read_user(at, (size_t)(user_end - at), out))
        return redis_url_refuse(
            why, "user or password of the URL are too long or have control characters");
    if (user_end != NULL)
        at = user_end + 1;
    size_t query = strcspn(at, "?");
    size_t hosts = strcspn(at, "/?");
    if (!read_hosts(at, hosts, out, why))
        return false;
    if (hosts + 1 < query &&
        !redis_url_read_number(at + hosts + 1, query - hosts - 1, DB_MAX, &out->db))
        return redis_url_refuse(why, "the path of the URL must be the number of a database");
    if (at[query] == '?' && !read_options(at + query + 1, out, why))
        return false;
    for (size_t i = 0; i < out->host_count; i++)
        if (out->hosts[i].port == 0)
            out->hosts[i].port = out->sentinel[0] != '\0' ? REDIS_SENTINEL_PORT : REDIS_PORT;
    return agrees(out, why);
}
