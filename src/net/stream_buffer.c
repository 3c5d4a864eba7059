/* SPDX-License-Identifier: Apache-2.0 */
/* See stream_buffer.h. */
#include "net/stream_buffer.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

/* Not by realloc(): the old buffer must be wiped. */
static bool stream_buffer_resize(struct stream_buffer *buffer, size_t size)
{
    char *bytes = size > 0 ? malloc(size) : NULL;
    ASSERT(size >= buffer->length);
    if (size > 0 && bytes == NULL)
        return false;
    if (buffer->length > 0)
        memcpy(bytes, buffer->bytes + buffer->start, buffer->length);
    if (buffer->bytes != NULL)
        explicit_bzero(buffer->bytes, buffer->size);
    free(buffer->bytes);
    *buffer = (struct stream_buffer){.bytes = bytes, .size = size, .length = buffer->length};
    return true;
}

bool stream_buffer_reserve(struct stream_buffer *buffer, size_t more, size_t first)
{
    if (buffer->size - buffer->start - buffer->length >= more)
        return true;
    if (buffer->size - buffer->length >= more) {
        memmove(buffer->bytes, buffer->bytes + buffer->start, buffer->length);
        buffer->start = 0;
        return true;
    }
    size_t size = buffer->size > 0 ? buffer->size : first;
    while (size - buffer->length < more)
        size *= 2;
    return stream_buffer_resize(buffer, size);
}

void stream_buffer_consume(struct stream_buffer *buffer, size_t length, size_t keep)
{
    ASSERT(length <= buffer->length);
    buffer->start += length;
    buffer->length -= length;
    if (buffer->length > 0)
        return;
    buffer->start = 0;
    if (buffer->size > keep)
        stream_buffer_free(buffer);
}

void stream_buffer_free(struct stream_buffer *buffer)
{
    buffer->length = 0;
    (void)stream_buffer_resize(buffer, 0);
}
