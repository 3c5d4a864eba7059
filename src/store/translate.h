/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts the core's action into a store request, and the store's reply into the core's event.
 * Conversions only; no rule, no retry, no clock.
 */
#ifndef LEASEHOLD_STORE_TRANSLATE_H
#define LEASEHOLD_STORE_TRANSLATE_H

#include "store/store.h"

/* These begin the request ids of grants that stand for locks of other programs: in Redis, with the
 * session and slot behind it, and in Kubernetes, with the UID of the Lease. */
#define FOREIGN_REQUEST "stranger "
#define FOREIGN_LEASE   "lease-"
enum { FOREIGN_LEASE_SESSION = 1 }; /* no process has this session */

/* True if the driver made this grant from another program's lock. */
bool is_foreign_grant(const struct grant *grant);

/* Summarizes a record that `session` writes, for drivers. The strings are the record's. */
void summarize_record(const struct record *record, uint64_t session, struct store_summary *out);

/* `bytes` must stay valid until the reply; `size` is at least RECORD_MAX. The strings of the
 * summary are the record's: a caller that changes the record before the reply must copy them. */
void translate_request(const struct lease *lease, const struct lease_output *output,
                       const struct record *record, char *bytes, size_t size,
                       struct store_request *out);

/*
 * Fills record and event from a reply. Bytes that are not a record of ours or cannot be decoded are
 * REPLY_TROUBLE: never free and never busy. `why` then says what is wrong with them.
 */
void translate_reply(const struct store_reply *reply, const char *key, struct record *record,
                     struct event *out, const char **why);

#endif
