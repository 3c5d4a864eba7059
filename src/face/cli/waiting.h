/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a person at a terminal sees while a key is waited for: who holds it, since when, and our
 * place in line. In scripts nothing is shown, and nothing is looked at.
 */
#ifndef LEASEHOLD_FACE_CLI_WAITING_H
#define LEASEHOLD_FACE_CLI_WAITING_H

#include "face/cli/cli.h"

struct waiting {
    struct context *context;
    bool wanted; /* somebody looks */
    bool shown;  /* something stands in the terminal's line */
    char key[LH_KEY_SIZE];
    struct lh_view view;    /* as last heard … */
    int64_t received_at_ms; /* … and when; 0: never */
    struct lh_watcher *watcher;
};

void waiting_begin(struct waiting *waiting, struct context *context);
/* After how long waiting_show() wants to be called again; −1: never. */
int64_t waiting_pause_ms(const struct waiting *waiting);
/* The key is waited for at this time; shows it. */
void waiting_show(struct waiting *waiting, const char *key, int64_t at_ms);
void waiting_end(struct waiting *waiting);

/* One line of a terminal, over the one before it, as far as it fits; "" wipes it. */
void waiting_write_line(const char *line);

#endif
