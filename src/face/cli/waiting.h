/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The display while the program waits for a key: its holder, since when, the end of the lease and
 * the queue position. A terminal has one line that is rewritten. A log gets a line after a second
 * and then every minute. With --quiet and --json nothing is shown and the store is not queried.
 */
#ifndef LEASEHOLD_FACE_CLI_WAITING_H
#define LEASEHOLD_FACE_CLI_WAITING_H

#include "face/cli/cli.h"

struct waiting {
    struct context *context;
    enum { WAITING_SILENT, WAITING_LOG, WAITING_LINE } mode;
    bool shown;         /* the line on the terminal is not empty */
    int64_t next_at_ms; /* of the next line or rewrite; 0: not known yet */
    char key[LH_KEY_SIZE];
    struct lh_view view;    /* as last received … */
    int64_t received_at_ms; /* … and when; 0: not yet */
    bool does_not_reply;    /* the store, to the last query */
    struct lh_watcher *watcher;
};

void waiting_begin(struct waiting *waiting, struct context *context);
/* The delay until the next call of waiting_show(); −1: none is needed. */
int64_t waiting_pause_ms(struct waiting *waiting);
/* Shows that the key is waited for, as of `at_ms`. */
void waiting_show(struct waiting *waiting, const char *key, int64_t at_ms);
void waiting_end(struct waiting *waiting);

/* Replaces the line on the terminal (stderr), cut to its width; "" clears it. */
void waiting_write_line(const char *line);

#endif
