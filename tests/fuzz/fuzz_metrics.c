/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a metrics file. The oracle: accepted text has values within their bounds, and is the
 * same after it was written and read once more; a refusal has a reason and changes nothing. Built
 * with LH_FUZZ_PLANT the reader has a bug that this must find.
 */
#include "base/check.h"
#include "wire/metrics.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* NOLINTNEXTLINE(readability-identifier-naming): the name is libFuzzer's */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char bytes[METRICS_TEXT_MAX];
    char message[512];
    struct metrics found, again;
    struct text why, text;
    memset(&found, 0x5a, sizeof found);
    again = found;
    text_init(&why, message, sizeof message);
    if (!metrics_read((const char *)data, size, "leasehold", &found, &why)) {
        ASSERT(why.length > 0 && !why.cut);
        ASSERT(memcmp(&found, &again, sizeof found) == 0);
        return 0;
    }
    for (size_t i = 0; i < METRIC_SLOTS; i++)
        ASSERT(found.values[i] <= METRIC_MOST);
    text_init(&text, bytes, sizeof bytes);
    metrics_write(&found, "leasehold", /* gauges= */ true, &text);
    ASSERT(metrics_read(bytes, text.length, "leasehold", &again, &why));
    ASSERT(memcmp(&found, &again, sizeof found) == 0);
    return 0;
}
