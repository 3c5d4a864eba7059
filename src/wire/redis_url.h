/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis://[user[:password]@]host[:port][,host[:port]…][/db][?option=value&…], and rediss:// for
 * TLS. By convention the URL may contain a password; it is never shown (url_redact.h). Pure.
 */
#ifndef LEASEHOLD_WIRE_REDIS_URL_H
#define LEASEHOLD_WIRE_REDIS_URL_H

#include "wire/redis_names.h"
#include "wire/store_url.h"

enum {
    REDIS_USER_MAX = 255,
    REDIS_PASSWORD_MAX = 4096,
    REDIS_PATH_MAX = 1023,
    REDIS_PORT = 6379,
    REDIS_SENTINEL_PORT = 26379,
};

struct redis_url {
    bool tls;
    size_t host_count; /* several: Sentinels or nodes of a cluster */
    struct url_host hosts[URL_HOSTS_MAX];
    char user[REDIS_USER_MAX + 1];
    char password[REDIS_PASSWORD_MAX + 1];
    unsigned db;
    struct redis_templates templates;       /* ?key= ?dedup= ?watermark= */
    char password_file[REDIS_PATH_MAX + 1]; /* ?password-file= */
    char ca[REDIS_PATH_MAX + 1], cert[REDIS_PATH_MAX + 1], tls_key[REDIS_PATH_MAX + 1];
    char tls_name[URL_HOST_MAX + 1]; /* ?name=: required in the certificate */
    char auth[16];                   /* ?auth=entra, or entra-cli */
    char client_id[64];              /* ?client-id=: the identity, with ?auth= */
    char sentinel[URL_HOST_MAX + 1]; /* ?sentinel=: the master's name; the hosts are Sentinels */
    bool no_scripts;                 /* ?scripts=no */
    unsigned protocol;               /* ?protocol=: 2 or 3; 0: negotiated with the server */
};

/* False with a reason in `why`, which never contains a secret. */
bool redis_url_read(const char *url, struct redis_url *out, struct text *why);

#endif
