/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The credentials of the daemon, from the file of --tokens. A line is NAME SECRET VERBS PREFIX...:
 * SECRET is sha256:HEX, the digest of a secret; uid:N, a peer of the unix socket; or cert, a client
 * certificate with that name. Lines of the same name and secret add up. The file contains no
 * secret, but its text is never shown: it may be one by mistake.
 */
#ifndef LEASEHOLD_FACE_DAEMON_CREDENTIALS_H
#define LEASEHOLD_FACE_DAEMON_CREDENTIALS_H

#include "base/list.h"
#include "base/text.h"
#include "face/daemon/may.h"
#include "runtime/table.h"

enum {
    CREDENTIALS_NAME_MAX = 64,
    CREDENTIALS_LINE_MAX = 1024,
    CREDENTIALS_LINES_MAX = 1000, /* without comments and empty lines */
    CREDENTIALS_PREFIXES_MAX = 64,
    CREDENTIALS_FILE_MAX = 1 << 20,
    CREDENTIALS_ID_SIZE = 80,
};

struct credentials;

/* One name with one secret, and what it may do. */
struct login {
    struct table_node by_id;
    struct list_node node; /* of all */
    struct may_identity identity;
    char name[CREDENTIALS_NAME_MAX + 1];
    char id[CREDENTIALS_ID_SIZE]; /* "sha256:HEX", "uid:N" or "cert:NAME" */
    struct may_right rights[CREDENTIALS_PREFIXES_MAX];
    char *prefixes[CREDENTIALS_PREFIXES_MAX]; /* memory of those of the rights */
};

/* NULL with the reason, which begins with `path` and the number of the line. Pure but for memory.
 */
struct credentials *credentials_parse(const char *path, const char *text, size_t length,
                                      struct text *why);
/* Reads the file. It must belong to this user, with mode 0600 or less, or to root, with 0640 or
 * less. NULL with the reason. */
struct credentials *credentials_load(const char *path, struct text *why);
void credentials_free(struct credentials **credentials); /* accepts NULL */
size_t credentials_count(const struct credentials *credentials);

/* All return NULL if there is none. The login is valid as long as the credentials are. */

/* `name` NULL: any. An unknown name and a wrong secret take the same time. */
const struct login *credentials_by_secret(const struct credentials *credentials, const char *name,
                                          const char *secret);
const struct login *credentials_by_uid(const struct credentials *credentials, unsigned uid);
/* The name is that of a certificate that was verified. */
const struct login *credentials_by_certificate(const struct credentials *credentials,
                                               const char *name);
/* The login with the name and the secret of one of other credentials: after a reload. */
const struct login *credentials_find_again(const struct credentials *credentials,
                                           const struct login *login);

#endif
