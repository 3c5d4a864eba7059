/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connects the two processes of a `run`: the foreground process, which the user started, and the
 * supervisor, which holds the lease and is the command's parent. A socket carries messages, and its
 * end of file means that the other process is gone. A shared page holds the state that one process
 * needs when the other no longer responds.
 */
#ifndef LEASEHOLD_RUN_CHANNEL_H
#define LEASEHOLD_RUN_CHANNEL_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CHANNEL_NEVER INT64_MAX

enum { CHANNEL_TOKENS_MAX = 16, CHANNEL_KEY_SIZE = 24 };

struct channel_page {
    /* When the foreground process kills everything, unless the supervisor did so before. */
    _Atomic int64_t kill_deadline_ms;
    _Atomic int64_t lease_ends_ms; /* as last renewed; then another client may acquire it */
    _Atomic pid_t group;           /* of the command; 0: not running */
    _Atomic int killed_by;         /* the signal that ended the command, or 0 */
    _Atomic bool paused;           /* the foreground process was stopped before the command began */
    char key[CHANNEL_KEY_SIZE];    /* that the supervisor has chosen, set before its token */
    _Atomic uint64_t tokens[CHANNEL_TOKENS_MAX]; /* of the leases held; 0 beyond */
};

enum channel_kind {
    CHANNEL_SIGNAL, /* to the supervisor: forward it to the command */
    /* To the foreground: before the command starts, with the descriptor that keeps the lease alive,
     * if any; it started; this signal stopped it; it ended, and another one may start. */
    CHANNEL_STARTING,
    CHANNEL_STARTED,
    CHANNEL_STOPPED,
    CHANNEL_ENDED,
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
/* False if the other process is gone. `file` is passed along; −1: none. */
bool channel_send(const struct channel *channel, enum channel_kind kind, int value, int file);
/* 1: a message; 0: the other process is gone; −1: no message yet. */
int channel_receive(const struct channel *channel, struct channel_message *out, int *out_file);

#endif
