/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows grants on the issues whose numbers are the keys: an assignee, a label, and one comment for
 * each grant, which is edited when the grant ends. The calls are sent behind all other requests,
 * and may be late or lost; failures are ignored. Nothing is read here to decide, and no rule
 * depends on it. A grant that ends before it was shown gets its comment only.
 */
#ifndef LEASEHOLD_STORE_ISSUES_ISSUE_BOARD_H
#define LEASEHOLD_STORE_ISSUES_ISSUE_BOARD_H

#include "http/github_api.h"
#include "store/store.h"

struct issue_board;

/* NULL when out of memory. */
struct issue_board *issue_board_new(struct github_api *api);
/* Waits a short time for what is in flight; may be NULL. */
void issue_board_free(struct issue_board **board);
/* A grant of ours begins, at this date of the server. */
void issue_board_add(struct issue_board *board, const char *number, const struct grant *grant,
                     int64_t since_ms);
/* It has ended; the last heartbeat was sent at alive_ms by host_boot_ms(), 0: unknown. */
void issue_board_end(struct issue_board *board, const char *number, int64_t alive_ms);
/* How the holder's work ended, for the comment. */
void issue_board_on_event(struct issue_board *board, const struct store_event *event);

#endif
