/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The credentials of the driver: user and password from the URL, a file that may be replaced while
 * we run, or Entra ID tokens, which are renewed. Every source of credentials belongs here, so that
 * connections stay independent of it.
 */
#ifndef LEASEHOLD_STORE_REDIS_REDIS_CREDENTIALS_H
#define LEASEHOLD_STORE_REDIS_REDIS_CREDENTIALS_H

#include "base/list.h"
#include "http/entra_token.h"
#include "net/credential.h"
#include "wire/redis_url.h"

/* Notified when the credentials change, or when an attempt to get some failed. */
struct credentials_user {
    struct list_node node;
    void (*changed)(struct credentials_user *user);
};

struct credentials {
    const struct redis_url *url;
    struct credential password; /* from a file or the URL … */
    struct entra *entra;        /* … unless the URL requests tokens */
    struct list users;          /* the connections that are notified */
};

enum credentials_result {
    CREDENTIALS_OK,
    CREDENTIALS_PENDING, /* the users will be notified */
    CREDENTIALS_WRONG,   /* the file is invalid; see `why` */
    CREDENTIALS_TROUBLE, /* none available now; see `why` */
};

/* False, with `why`, if there cannot be any. */
bool credentials_init(struct credentials *credentials, const struct redis_url *url,
                      struct poller *poller, struct text *why);
void credentials_done(struct credentials *credentials);
/* The credentials for a new connection; an empty password: do not authenticate. Both are valid
 * until the next call. */
enum credentials_result credentials_now(struct credentials *credentials, const char **out_user,
                                        const char **out_password, struct text *why);
/* Reports that the server rejected them. */
void credentials_refused(struct credentials *credentials);

#endif
