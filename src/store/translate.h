/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between a lease and a store: the core's action as a store request, the store's answer as the
 * core's event. Conversions only; no rule, no retry, no clock.
 */
#ifndef LEASEHOLD_STORE_TRANSLATE_H
#define LEASEHOLD_STORE_TRANSLATE_H

#include "store/store.h"

/* The bytes must stay until the store has answered; `size` is RECORD_MAX or more. */
void translate_request(const struct lease *lease, const struct lease_output *output,
                       const struct record *record, char *bytes, size_t size,
                       struct store_request *out);

/*
 * Fills record and event from an answer. Bytes that are no record of ours, or that nobody can read,
 * are trouble: never free and never busy. `why` then says what is wrong with them.
 */
void translate_reply(const struct store_reply *reply, const char *key, struct record *record,
                     struct event *out, const char **why);

#endif
