/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries a Redis server about itself, for `leasehold doctor`. Waits for each reply, and must not
 * change anything. With several hosts, queries the first.
 */
#ifndef LEASEHOLD_STORE_REDIS_REDIS_PROBE_H
#define LEASEHOLD_STORE_REDIS_REDIS_PROBE_H

#include "base/text.h"

#include <stdint.h>

enum { REDIS_PROBE_REPLY_MAX = 32 * 1024 };

struct redis_probe;

/* Connects and authenticates. NULL, with `why`, on failure or timeout. */
struct redis_probe *redis_probe_new(const char *url, int64_t timeout_ms, struct text *why);
void redis_probe_free(struct redis_probe **probe); /* accepts NULL */
/* Sends a command of at most three arguments, the last of which may be NULL. Returns the reply, the
 * elements of a list in lines; NULL, with `why`, if the server refuses or is gone. */
const char *redis_probe_query(struct redis_probe *probe, const char *first, const char *second,
                              const char *third, struct text *why);
/* The value of a "name:value" line, as in INFO; false if it is missing. */
bool redis_probe_value(const char *reply, const char *name, char *out, size_t size);

#endif
