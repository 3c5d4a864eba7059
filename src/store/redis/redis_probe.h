/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks a Redis server about itself, for `leasehold doctor`: waits for each answer, and changes
 * nothing. Of several hosts the first is asked.
 */
#ifndef LEASEHOLD_STORE_REDIS_REDIS_PROBE_H
#define LEASEHOLD_STORE_REDIS_REDIS_PROBE_H

#include "base/text.h"

#include <stdint.h>

enum { REDIS_PROBE_REPLY_MAX = 32 * 1024 };

struct redis_probe;

/* Connects and signs on; NULL, with words, when that fails or lasts too long. */
struct redis_probe *redis_probe_new(const char *url, int64_t timeout_ms, struct text *why);
void redis_probe_free(struct redis_probe **probe); /* NULL is fine */
/* One command of at most three words, the last of which may be NULL. What the server said, texts
 * of a list behind each other in lines; NULL, with words, when it refuses or is gone. */
const char *redis_probe_query(struct redis_probe *probe, const char *first, const char *second,
                              const char *third, struct text *why);
/* Of "name:value" in lines, as INFO has them; false when it is not there. */
bool redis_probe_value(const char *reply, const char *name, char *out, size_t size);

#endif
