/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As whom the driver signs on: user and password of the URL, a file that others replace while we
 * run, or tokens of Entra ID that are renewed. Whatever gives credentials another way stands here,
 * so that connections need not know it.
 */
#ifndef LEASEHOLD_STORE_REDIS_REDIS_CREDENTIALS_H
#define LEASEHOLD_STORE_REDIS_REDIS_CREDENTIALS_H

#include "http/entra_token.h"
#include "disk/secret.h"
#include "wire/redis_url.h"

/* Who wants to know when there are others, or when a try to get some came to nothing. */
struct credentials_user {
    struct credentials_user *next;
    void (*changed)(struct credentials_user *user);
};

struct credentials {
    const struct redis_url *url;
    struct secret *file; /* NULL: what the URL says … */
    struct entra *entra; /* … unless it asks for tokens */
    struct credentials_user *users;
};

enum credentials_result {
    CREDENTIALS_OK,
    CREDENTIALS_PENDING, /* the users will be told */
    CREDENTIALS_WRONG,   /* the file, with words */
    CREDENTIALS_TROUBLE, /* none can be had now, with words */
};

/* False, with words, when there cannot be any. */
bool credentials_init(struct credentials *credentials, const struct redis_url *url,
                      struct poller *poller, struct text *why);
void credentials_done(struct credentials *credentials);
void credentials_add_user(struct credentials *credentials, struct credentials_user *user);
void credentials_remove_user(struct credentials *credentials, struct credentials_user *user);
/* For a connection that opens now; an empty password: nothing to sign on with. Both stay until the
 * next call. */
enum credentials_result credentials_now(struct credentials *credentials, int64_t now_ms,
                                        const char **out_user, const char **out_password,
                                        struct text *why);
/* The server did not take them. */
void credentials_refused(struct credentials *credentials);

#endif
