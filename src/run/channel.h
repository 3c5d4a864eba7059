/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the two processes of a `run`: the front, which the user started and sees, and the
 * guardian, which holds the lease and is the command's parent. A socket carries what the other one
 * has to do something about and tells by its end that the other one is gone; a page that both see
 * carries what must be known when one of them says nothing any more.
 */
#ifndef LEASEHOLD_RUN_CHANNEL_H
#define LEASEHOLD_RUN_CHANNEL_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CHANNEL_NEVER INT64_MAX

enum { CHANNEL_TOKENS_MAX = 16 };

struct channel_page {
    /* When the front kills everything by itself; the guardian should have done so before. */
    _Atomic int64_t kill_deadline_ms;
    _Atomic int64_t lease_ends_ms; /* as last renewed: others may be let in then */
    _Atomic pid_t group;           /* of the command; 0: it has not been started */
    _Atomic int killed_by;         /* the signal that ended the command, or 0 */
    _Atomic bool paused;           /* the front was stopped before the command began */
    _Atomic uint64_t tokens[CHANNEL_TOKENS_MAX]; /* what is held; 0 beyond */
};

enum channel_kind {
    CHANNEL_SIGNAL,  /* to the guardian: pass it on */
    CHANNEL_STARTED, /* to the front, with the descriptor that keeps the lease alive, if any */
    CHANNEL_STOPPED, /* to the front: the command was stopped by this signal */
};

struct channel_message {
    enum channel_kind kind;
    int value;
};

struct channel {
    int file;
    struct channel_page *page;
};

/* 0 or −errno. */
int channel_open(struct channel *foreground, struct channel *supervisor);
void channel_close(struct channel *channel);
/* Another process has the other end; false when it is gone. `file` travels along; −1: none. */
bool channel_send(const struct channel *channel, enum channel_kind kind, int value, int file);
/* 1: a message; 0: the other one is gone; −1: nothing is there. */
int channel_receive(const struct channel *channel, struct channel_message *out, int *out_file);

#endif
