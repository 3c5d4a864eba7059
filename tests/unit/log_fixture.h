/* SPDX-License-Identifier: Apache-2.0 */
/* Two handles of one log on a fake disk, for the log's unit tests. Fails the test on any error. */
#ifndef LEASEHOLD_TESTS_LOG_FIXTURE_H
#define LEASEHOLD_TESTS_LOG_FIXTURE_H

#include "log_kit.h"

extern struct fake_disk fake;
extern const struct disk *const disk; /* of `fake` */
extern struct log *one, *two;
extern enum log_result result; /* of the last opening */

struct log *open_on(const struct disk *of, unsigned boot);
struct log *open_log(unsigned boot); /* on `disk` */
struct stamp put(struct log *log, const char *key, const char *value);
bool stands(struct log *log, const char *key, const char *value);

/* An empty disk at these times, without a handle. */
void begin_at(int64_t boot_ms, int64_t wall_ms);
/* Opens `one` and `two`. */
int begin(void **state);
/* Closes them; −1 if a file is left open. */
int end(void **state);

#endif
