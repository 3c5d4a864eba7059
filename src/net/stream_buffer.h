/* SPDX-License-Identifier: Apache-2.0 */
/* A buffer of a stream. It may contain a password, so freed memory is wiped. */
#ifndef LEASEHOLD_NET_STREAM_BUFFER_H
#define LEASEHOLD_NET_STREAM_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

/* Initially all zero. The bytes before `start` are consumed. */
struct stream_buffer {
    char *bytes;
    size_t size, start, length;
};

/* Makes room for `more` bytes behind the others, in at least `first` bytes of memory. The caller
 * enforces the limit. False when out of memory. */
bool stream_buffer_reserve(struct stream_buffer *buffer, size_t more, size_t first);
/* Frees the memory if the buffer is empty then and larger than `keep`. */
void stream_buffer_consume(struct stream_buffer *buffer, size_t length, size_t keep);
void stream_buffer_free(struct stream_buffer *buffer);

#endif
