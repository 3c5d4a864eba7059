/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as RESP. The oracle: the same messages are found whether the bytes arrive at once or
 * one by one; every message can be walked to its end, item by item, and every text ends where its
 * line does. Built with LH_FUZZ_PLANT the reader has a bug that this must find.
 */
#include "base/check.h"
#include "wire/resp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { BULK_MAX = 512, ITEMS_MAX = 64 };

static const struct resp fresh = {.bulk_max = BULK_MAX, .items_max = ITEMS_MAX};

static void walk_through(const char *bytes, size_t length)
{
    struct resp_walk walk = {.bytes = bytes, .length = length}, skip = walk;
    struct resp_item item;
    size_t items = 0;
    for (; resp_next(&walk, &item); items++) {
        ASSERT(walk.at <= length && item.count <= ITEMS_MAX);
        bool has_text = item.kind == RESP_TEXT || item.kind == RESP_ERROR;
        if (!has_text)
            continue;
        ASSERT(item.text >= bytes && item.text + item.length + 2 == bytes + walk.at);
        ASSERT(memcmp(item.text + item.length, "\r\n", 2) == 0);
    }
    ASSERT(items >= 1 && items <= ITEMS_MAX && walk.at == length);
    ASSERT(resp_next(&skip, &item));
    resp_skip(&skip, &item);
    ASSERT(skip.at == length);
}

/* NOLINTNEXTLINE(readability-identifier-naming): the name is libFuzzer's */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data;
    struct resp whole = fresh;
    while (size > 0) {
        struct resp slow = fresh;
        size_t length = 0, found = 0;
        enum resp_result result = resp_feed(&whole, bytes, size, &length), again = RESP_MORE;
        size_t up_to = result == RESP_WHOLE ? length : size;
        for (size_t cut = 0; cut <= up_to && again == RESP_MORE; cut++)
            again = resp_feed(&slow, bytes, cut, &found);
        ASSERT(again == result);
        ASSERT((result == RESP_BROKEN) == (slow.wrong != NULL));
        if (result != RESP_WHOLE)
            return 0;
        ASSERT(found == length && length > 0 && length <= size);
        walk_through(bytes, length);
        bytes += length;
        size -= length;
    }
    return 0;
}
