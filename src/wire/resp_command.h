/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands of a RESP client, as a server reads them: arrays of bulk strings and nothing else. Pure,
 * without state and without copies. Refuses malformed input at its first wrong byte, before the
 * rest arrives.
 */
#ifndef LEASEHOLD_WIRE_RESP_COMMAND_H
#define LEASEHOLD_WIRE_RESP_COMMAND_H

#include "wire/resp.h"

enum { RESP_ARGS_MAX = 128 };

/* Points into the input; not NUL-terminated. */
struct resp_argument {
    const char *text;
    size_t length;
};

struct resp_command {
    size_t count;
    struct resp_argument args[RESP_ARGS_MAX];
};

struct resp_command_limits {
    size_t bulk_max;  /* bytes of one argument */
    size_t total_max; /* bytes of the command, as sent */
};

/*
 * RESP_WHOLE: the first *out_length bytes are the command. RESP_MORE: call again with the same
 * bytes and more behind them. RESP_BROKEN: *out_wrong is the reason for the peer ("Protocol error:
 * …"); nothing behind it can be read. An empty array ("*0\r\n") and an empty line are whole, with
 * count 0, as for Redis. `out` is undefined unless whole.
 */
enum resp_result resp_command_feed(const char *bytes, size_t length,
                                   const struct resp_command_limits *limits,
                                   struct resp_command *out, size_t *out_length,
                                   const char **out_wrong);

#endif
