/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As whom the driver signs on: user and password of the URL, or a file that others replace while we
 * run. Whatever gives credentials another way stands here, so that connections need not know it.
 */
#ifndef LEASEHOLD_STORE_REDIS_CREDENTIALS_H
#define LEASEHOLD_STORE_REDIS_CREDENTIALS_H

#include "io/secret.h"
#include "wire/redis_url.h"

struct credentials {
    const struct redis_url *url;
    struct secret *file; /* NULL: what the URL says */
};

/* False, with words, when there cannot be any. */
bool credentials_init(struct credentials *credentials, const struct redis_url *url,
                      struct text *why);
void credentials_done(struct credentials *credentials);
/* For a connection that opens now; no password, nothing to sign on with. False, with words, when
 * they cannot be had. Both stay until the next call. */
bool credentials_now(struct credentials *credentials, int64_t now_ms, const char **out_user,
                     const char **out_password, struct text *why);
/* The server did not take them. */
void credentials_refused(struct credentials *credentials);

#endif
