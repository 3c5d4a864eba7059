/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the two processes of a `run`: the front, which the user started and sees, and the
 * guardian, which holds the lease and is the command's parent. A socket carries what the other one
 * has to do something about and tells by its end that the other one is gone; a page that both see
 * carries what must be known when one of them says nothing any more.
 */
#ifndef LEASEHOLD_RUNTIME_LINK_H
#define LEASEHOLD_RUNTIME_LINK_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define LINK_NEVER INT64_MAX

enum { LINK_TOKENS_MOST = 16 };

struct link_page {
    /* When the front kills everything by itself; the guardian should have done so before. */
    _Atomic int64_t last_moment_ms;
    _Atomic int64_t lease_ends_ms;             /* as last renewed: others may be let in then */
    _Atomic pid_t group;                       /* of the command; 0: it has not been started */
    _Atomic int killed_by;                     /* the signal that ended the command, or 0 */
    _Atomic bool on_hold;                      /* the front was stopped before the command began */
    _Atomic uint64_t tokens[LINK_TOKENS_MOST]; /* what is held; 0 beyond */
};

enum link_kind {
    LINK_SIGNAL,  /* to the guardian: pass it on */
    LINK_STARTED, /* to the front, with the descriptor that keeps the lease alive, if any */
    LINK_STOPPED, /* to the front: the command was stopped by this signal */
};

struct link_message {
    enum link_kind kind;
    int value;
};

struct link {
    int file;
    struct link_page *page;
};

/* 0 or −errno. */
int link_open(struct link *front, struct link *guardian);
void link_close(struct link *link);
/* Another process has the other end; false when it is gone. `file` travels along; −1: none. */
bool link_send(const struct link *link, enum link_kind kind, int value, int file);
/* 1: a message; 0: the other one is gone; −1: nothing is there. */
int link_receive(const struct link *link, struct link_message *out, int *out_file);

#endif
