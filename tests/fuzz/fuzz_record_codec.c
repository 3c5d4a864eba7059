/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a record. The oracle: an accepted record keeps its invariants and its weight and
 * encodes to the same bytes again; a refusal has a position and a reason, and leaves the empty
 * record. Built with LH_FUZZ_PLANT the decoder has a bug that this must find.
 */
#include "base/check.h"
#include "core/record.h"
#include "wire/record_codec.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* NOLINTNEXTLINE(readability-identifier-naming): the name is libFuzzer's */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_accepted(const struct record *record, const char *bytes, size_t length)
{
    static char again[RECORD_MAX + 1];
    ASSERT(length <= record_size_bound(record));
    ASSERT(record_broken(record) == NULL);
    ASSERT(record_encode(record, again, sizeof again) == length);
    ASSERT(memcmp(bytes, again, length) == 0);
    ASSERT(record_encode(record, again, length) == 0);
}

static void check_refused(const struct record *record, const struct codec_error *error,
                          enum decode_result result, size_t length)
{
    ASSERT(error->offset <= length);
    ASSERT((error->expected == NULL) != (error->broken == NULL));
    ASSERT(result != DECODE_NEWER_VERSION || error->version > RECORD_VERSION);
    ASSERT(strcmp(record->key, "?") == 0 && !record_needed(record));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct record record;
    struct codec_error error;
    enum decode_result result = record_decode((const char *)data, size, &record, &error);
    if (result == DECODE_OK)
        check_accepted(&record, (const char *)data, size);
    else
        check_refused(&record, &error, result, size);
    return 0;
}
