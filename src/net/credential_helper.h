/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that prints a credential: runs it on a poller, without a shell, terminal or input, and
 * kills it with its process group after a timeout. One run at a time. Wipes the output and never
 * prints it.
 */
#ifndef LEASEHOLD_NET_CREDENTIAL_HELPER_H
#define LEASEHOLD_NET_CREDENTIAL_HELPER_H

#include "net/poller.h"

#include <stddef.h>
#include <sys/types.h>

struct credential_helper {
    struct poller *poller;
    /* Its output, or NULL with the reason of the failure. */
    void (*done)(void *owner, const char *output, size_t length, const char *failure);
    void *owner;
    pid_t child; /* 0: none runs */
    struct poller_watch pipe;
    struct poller_timer timeout, reap;
    char *output; /* NULL: none runs */
    size_t length;
};

void credential_helper_init(struct credential_helper *helper, struct poller *poller,
                            void (*done)(void *owner, const char *output, size_t length,
                                         const char *failure),
                            void *owner);
void credential_helper_done(struct credential_helper *helper); /* kills a running program */
/* Searches PATH for argv[0]. 0, or an errno: then `done` is not called. */
int credential_helper_start(struct credential_helper *helper, const char *const *argv,
                            char *const *environment);

#endif
