/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structs of the public headers that may grow. Each begins with its size, which its _INIT macro
 * sets, so a program and a library of different releases agree on the members that both know. A new
 * member is appended behind the old size, never in its padding, which callers do not clear.
 */
#include "face/lib/lib_internal.h"

#include <string.h>

enum { SIZED_MIN = 2 * sizeof(size_t), SIZED_MAX = 65536 };

static size_t sized_size(const void *sized)
{
    size_t size;
    memcpy(&size, sized, sizeof size);
    return size;
}

bool sized_is_valid(const void *sized)
{
    return sized == NULL || (sized_size(sized) >= SIZED_MIN && sized_size(sized) <= SIZED_MAX);
}

bool sized_read(void *to, size_t size, const void *from)
{
    if (!sized_is_valid(from))
        return false;
    size_t given = sized_size(from);
    for (size_t i = size; i < given; i++)
        if (((const unsigned char *)from)[i] != 0)
            return false;
    memset(to, 0, size);
    memcpy(to, from, given < size ? given : size);
    memcpy(to, &size, sizeof size);
    return true;
}

void sized_write(void *to, const void *from, size_t size)
{
    const size_t head = sizeof size;
    if (to == NULL || !sized_is_valid(to))
        return;
    size_t given = sized_size(to);
    memcpy((char *)to + head, (const char *)from + head, (given < size ? given : size) - head);
}
