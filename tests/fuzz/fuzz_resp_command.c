/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as commands of a RESP client. The oracle: a command, encoded again, is the bytes that
 * were read (an empty line is a command without words); a prefix of the bytes is incomplete or
 * gives the same result, and more bytes change none. Built with LH_FUZZ_PLANT the reader has a bug
 * that this must find.
 */
#include "base/check.h"
#include "wire/resp_command.h"
#include "wire/resp_reply.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { BULK_MOST = 300, TOTAL_MOST = 2000 };

static const struct resp_command_limits limits = {.bulk_max = BULK_MOST, .total_max = TOTAL_MOST};

struct command_result {
    enum resp_result result;
    size_t length;
    const char *wrong;
};

static struct command_result parse_command(const char *bytes, size_t length,
                                           struct resp_command *out)
{
    struct command_result result = {0};
    result.result = resp_command_feed(bytes, length, &limits, out, &result.length, &result.wrong);
    ASSERT((result.result == RESP_BROKEN) == (result.wrong != NULL));
    ASSERT((result.result == RESP_WHOLE) == (result.length > 0));
    return result;
}

static void check_encoded(const char *bytes, size_t length, const struct resp_command *command)
{
    char again[TOTAL_MOST + RESP_HEAD_MAX];
    struct resp_reply reply;
    ASSERT(length <= TOTAL_MOST && command->count <= RESP_ARGS_MAX);
    if (command->count == 0 && bytes[0] == '\r') {
        ASSERT(length == 2 && bytes[1] == '\n');
        return;
    }
    resp_reply_init(&reply, again, sizeof again, 2);
    resp_reply_array(&reply, command->count);
    for (size_t i = 0; i < command->count; i++) {
        const struct resp_argument *argument = &command->args[i];
        ASSERT(argument->length <= BULK_MOST && argument->text > bytes &&
               argument->text + argument->length < bytes + length);
        resp_reply_bytes(&reply, argument->text, argument->length);
    }
    ASSERT(!reply.overflow && reply.length == length && memcmp(again, bytes, length) == 0);
}

/* NOLINTNEXTLINE(readability-identifier-naming): the name is libFuzzer's */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data;
    struct resp_command command, other;
    while (size > 0) {
        struct command_result whole = parse_command(bytes, size, &command);
        bool decided = false;
        for (size_t cut = 0; cut < size; cut++) {
            struct command_result part = parse_command(bytes, cut, &other);
            ASSERT(!decided || part.result != RESP_MORE);
            if (part.result == RESP_MORE)
                continue;
            decided = true;
            ASSERT(part.result == whole.result && part.length == whole.length &&
                   part.wrong == whole.wrong);
        }
        if (whole.result == RESP_MORE)
            ASSERT(size < TOTAL_MOST + RESP_HEAD_MAX);
        if (whole.result != RESP_WHOLE)
            return 0;
        check_encoded(bytes, whole.length, &command);
        bytes += whole.length;
        size -= whole.length;
    }
    return 0;
}
