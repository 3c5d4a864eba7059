/* SPDX-License-Identifier: Apache-2.0 */
/* See redis_url.h. */
#include "wire/redis_url.h"

#include <string.h>

enum { OPTION_DB, DB_MAX = 65535 };

#define REDIS_OPTION(field, ...) URL_OPTION(struct redis_url, field, __VA_ARGS__)
#define REDIS_TEMPLATE(family, option)                                              \
    REDIS_OPTION(templates.of[family], option, .is_valid = redis_template_is_valid, \
                 .rule = option " is at most 128 bytes with exactly one %s, as in lock:%s")

static const struct url_option options[] = {
    [OPTION_DB] = REDIS_OPTION(db, "db", .kind = URL_NUMBER, .most = DB_MAX,
                               .rule = "db is the number of a database, at most 65535"),
    REDIS_TEMPLATE(REDIS_LOCK, "key"),
    REDIS_TEMPLATE(REDIS_ONCE, "dedup"),
    REDIS_TEMPLATE(REDIS_WATERMARK, "watermark"),
    REDIS_OPTION(password_file, "password-file", .least = 1),
    REDIS_OPTION(ca, "ca", .least = 1),
    REDIS_OPTION(cert, "cert", .least = 1),
    REDIS_OPTION(tls_key, "tls-key", .least = 1),
    REDIS_OPTION(tls_name, "name", .least = 1),
    REDIS_OPTION(sentinel, "sentinel", .least = 1),
    REDIS_OPTION(client_id, "client-id", .least = 1),
    REDIS_OPTION(auth, "auth", .words = "entra|entra-cli", .rule = "auth is entra or entra-cli"),
    REDIS_OPTION(no_scripts, "scripts", .kind = URL_CHOICE, .words = "yes|no",
                 .rule = "scripts is yes or no"),
    REDIS_OPTION(protocol, "protocol", .kind = URL_NUMBER, .least = 2, .most = 3,
                 .rule = "protocol is 2 or 3"),
};

static const struct url_form form = {
    .schemes = "redis|rediss",
    .rule = "the URL must be redis://host:port, or rediss:// for TLS",
    .users = true,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
};

static bool agrees(const struct redis_url *url, struct text *why)
{
    if (!url->tls && (url->ca[0] != '\0' || url->cert[0] != '\0' || url->tls_key[0] != '\0' ||
                      url->tls_name[0] != '\0'))
        return url_refuse(why, "certificates need rediss://, not redis://");
    if (url->client_id[0] != '\0' && url->auth[0] == '\0')
        return url_refuse(why, "client-id selects an identity of Entra ID; add auth=entra");
    if (url->password[0] != '\0' && (url->password_file[0] != '\0' || url->auth[0] != '\0'))
        return url_refuse(why,
                          "the URL has a password and also password-file or auth; use only one");
    return true;
}

bool redis_url_read(const char *url, struct redis_url *out, struct text *why)
{
    struct url_parts parts;
    uint64_t db = 0;
    memset(out, 0, sizeof *out);
    redis_templates_init(&out->templates);
    if (!url_read(url, &form, &parts, out, why) ||
        !url_read_hosts(parts.hosts, out->hosts, &out->host_count, why))
        return false;
    if (!url_decode(parts.user, out->user, sizeof out->user) ||
        !url_decode(parts.password, out->password, sizeof out->password))
        return url_refuse(why,
                          "user or password of the URL are too long or have control characters");
    if (parts.path.length > 0 && !url_read_number(parts.path, DB_MAX, &db))
        return url_refuse(why, "the path of the URL must be the number of a database");
    if (parts.path.length > 0 && (parts.given & 1U << OPTION_DB) == 0)
        out->db = (unsigned)db;
    out->tls = parts.scheme == 1;
    for (size_t i = 0; i < out->host_count; i++)
        if (out->hosts[i].port == 0)
            out->hosts[i].port = out->sentinel[0] != '\0' ? REDIS_SENTINEL_PORT : REDIS_PORT;
    return agrees(out, why);
}
