/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a duration. The oracle: an accepted one is within its bounds, a leading minus is
 * distinguished, a trailing letter is refused, and a refusal changes nothing. Built with
 * LH_FUZZ_PLANT the reader has a bug that this must find.
 */
#include "base/check.h"
#include "wire/duration.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { TEXT_MAX = 256 };

/* NOLINTNEXTLINE(readability-identifier-naming): the name is libFuzzer's */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[TEXT_MAX + 2];
    int64_t length_ms = -1, other_ms = -1;
    if (size > TEXT_MAX)
        return 0;
    text[0] = '-';
    if (size > 0)
        memcpy(text + 1, data, size);
    text[size + 1] = 'x';
    enum duration_result result = duration_read(text + 1, size, &length_ms);
    enum duration_result negative = duration_read(text, size + 1, &other_ms);
    if (result == DURATION_OK) {
        char shown[DURATION_SHOWN];
        ASSERT(length_ms >= 0 && length_ms <= DURATION_MAX_MS);
        ASSERT(strlen(duration_show(length_ms, shown)) < DURATION_SHOWN - 1);
    } else {
        ASSERT(length_ms == -1);
    }
    bool good = result == DURATION_OK || result == DURATION_TOO_LONG;
    ASSERT((negative == DURATION_NEGATIVE) == good);
    ASSERT(duration_read(text + 1, size + 1, &other_ms) == DURATION_BROKEN ||
           result == DURATION_NEGATIVE);
    ASSERT(other_ms == -1);
    return 0;
}
