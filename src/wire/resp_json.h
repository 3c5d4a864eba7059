/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translates a reply of RESP3 into JSON: maps become objects, errors an object with the outcome
 * "usage" or "denied". So every face of the daemon says the same. Pure.
 */
#ifndef LEASEHOLD_WIRE_RESP_JSON_H
#define LEASEHOLD_WIRE_RESP_JSON_H

#include "base/text.h"

enum { RESP_JSON_WORD = 24 };

/* Facts of a reply that a face needs beside its text. */
struct resp_json_summary {
    char outcome[RESP_JSON_WORD]; /* of the outermost map; "" if it has none */
    char error[RESP_JSON_WORD];   /* the code of an error, as "NOPERM"; "" if it is none */
    int64_t retry_after_ms;       /* -1: not given */
};

/* One whole reply, made by resp_reply.h. Sets `cut` of `out` if there is no room. False if it is
 * not a whole reply. */
bool resp_json(const char *bytes, size_t length, struct text *out,
               struct resp_json_summary *out_summary);

#endif
