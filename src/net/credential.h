/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A password or token and its renewal, for any driver: a program that prints it, a file, an
 * environment variable, or a fixed text. The program runs again before its credential expires. The
 * file is read again when it changes. Both also after a server refused the credential. It must not
 * be printed, and is wiped when it is replaced or freed.
 */
#ifndef LEASEHOLD_NET_CREDENTIAL_H
#define LEASEHOLD_NET_CREDENTIAL_H

#include "base/text.h"
#include "disk/secret.h"
#include "net/credential_helper.h"

#define CREDENTIAL_NEVER POLLER_NEVER

/* A program that prints credentials. */
struct credential_program {
    const char *name; /* in error texts: "the credential plugin aws" */
    /* Calls credential_helper_start(); false if that fails. */
    bool (*start)(void *owner, struct credential_helper *helper);
    /* Reads the output. The caller owns `out_value`, which stays NULL if the output contains
     * another proof, such as a certificate. `out_expires_ms` is a wall time, or CREDENTIAL_NEVER.
     * False if the output contains no credential. */
    bool (*read)(void *owner, const char *output, size_t length, char **out_value,
                 int64_t *out_expires_ms);
    void (*ready)(void *owner); /* the program has returned */
    void *owner;
};

/* The first source that is set counts; without any, no credential is needed. The strings must
 * outlive the credential. */
struct credential_source {
    const struct credential_program *program;
    const char *file;     /* its first line */
    const char *variable; /* the name of an environment variable */
    const char *fixed;
};

struct credential {
    struct credential_source source;
    struct secret *file;
    struct credential_helper helper;
    char *value;           /* of the program */
    bool known;            /* the program has returned … */
    int64_t good_until_ms; /* … and its result is valid until then */
    char error[160];       /* of the last run; empty: none */
};

/* The poller runs the program; NULL if there is none. False when out of memory. */
bool credential_init(struct credential *credential, struct poller *poller,
                     const struct credential_source *source);
void credential_done(struct credential *credential); /* also of a zeroed struct */
/* False while the program runs; starts the program if necessary. */
bool credential_ready(struct credential *credential);
/* Valid until the next call; NULL if none is needed. False with a reason if it is missing. */
bool credential_now(struct credential *credential, const char **out, struct text *why);
/* The server refused it. */
void credential_refused(struct credential *credential);

#endif
