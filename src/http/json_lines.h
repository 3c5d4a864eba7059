/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON from a server that is not trusted: one value, or an endless stream with one value per line,
 * as the watches of Kubernetes and of etcd's gateway send it. Limits the memory of a value. Reads
 * no connection: the caller keeps the bytes of an incomplete line, and limits them.
 */
#ifndef LEASEHOLD_HTTP_JSON_LINES_H
#define LEASEHOLD_HTTP_JSON_LINES_H

#include <jansson.h>
#include <stdbool.h>

/* `size`: the approximate memory of the value. NULL: not JSON, or it would take too much memory. */
json_t *json_parse(const char *bytes, size_t length, size_t *out_size);

/* One line; the value is NULL as above, and released afterwards. False: no more lines. */
typedef bool json_line(void *owner, json_t *value, size_t size);

/* Passes on each complete line that is not empty. Returns the bytes consumed: all up to the
 * incomplete line, or all once `line` has returned false. */
size_t json_lines_read(const char *bytes, size_t length, json_line *line, void *owner);

#endif
