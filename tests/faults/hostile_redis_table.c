/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See hostile_redis.h: the replies of a hostile Redis server. The script's reply to a read is a
 * list of six: 1 the condition held, 2 the time, 3 the record, 4 the foreign lock's value, 5 its
 * time to live, 6 the count of revisions; to a write it is a text of revision and time.
 */
#include "hostile_redis.h"

#define SAYS(title, words)                                      \
    {                                                           \
        .name = (title), .action = HOSTILE_SAY, .text = (words) \
    }
#define ENDS(title, words, how)                                                  \
    {                                                                            \
        .name = (title), .action = HOSTILE_SAY, .text = (words), .ending = (how) \
    }
#define ITEM(title, which, words)                                                   \
    {                                                                               \
        .name = (title), .action = HOSTILE_ITEM, .number = (which), .text = (words) \
    }
#define BULK(title, which, words)                                                   \
    {                                                                               \
        .name = (title), .action = HOSTILE_BULK, .number = (which), .text = (words) \
    }
#define SCAN(title, which, words)                                                    \
    {                                                                                \
        .name = (title), .action = HOSTILE_ITEM, .number = (which), .text = (words), \
        .more = "*2\r\n"                                                             \
    }
#define SWAP(title, from, to)                                                 \
    {                                                                         \
        .name = (title), .action = HOSTILE_SWAP, .text = (from), .more = (to) \
    }
#define CUT(title, count, how)                                                     \
    {                                                                              \
        .name = (title), .action = HOSTILE_CUT, .number = (count), .ending = (how) \
    }
#define BEFORE(title, words, count)                                                   \
    {                                                                                 \
        .name = (title), .action = HOSTILE_BEFORE, .text = (words), .number = (count) \
    }
#define AFTER(title, words)                                       \
    {                                                             \
        .name = (title), .action = HOSTILE_AFTER, .text = (words) \
    }
#define FLIP(title, at)                                         \
    {                                                           \
        .name = (title), .action = HOSTILE_FLIP, .number = (at) \
    }
#define RECORD(title, words) BULK(title, 3, "1794804815384 1794804815384 " words)

#define GRANT(times)                                                                           \
    "{\"leasehold\":1,\"key\":\"k\",\"grants\":[{\"holder\":\"h\",\"session\":\"1\",\"mode\":" \
    "\"exclusive\"," times "}]}"

const struct variant redis_variants[] = {
    /* the first two find most of the planted faults */
    SAYS("refuses with an escape sequence", "-ERR \x1b[31mred\x1b[0m \x07\r\n"),
    {.name = "sends a line without end",
     .action = HOSTILE_ENDLESS,
     .text = "+",
     .more = "xxxxxxxxxxxxxxxx"},
    /* wrong types */
    SAYS("says OK", "+OK\r\n"),
    SAYS("says an empty line", "+\r\n"),
    SAYS("says a number", ":1\r\n"),
    SAYS("says a negative number", ":-9223372036854775808\r\n"),
    SAYS("says a number beyond 64 bits", ":92233720368547758070\r\n"),
    SAYS("says a big number", "(3492890328409238509324850943850943825024385\r\n"),
    SAYS("says a fraction", ",1.5\r\n"),
    SAYS("says not a number", ",nan\r\n"),
    SAYS("says true", "#t\r\n"),
    SAYS("says maybe", "#x\r\n"),
    SAYS("says null", "_\r\n"),
    SAYS("says a null text", "$-1\r\n"),
    SAYS("says a null list", "*-1\r\n"),
    SAYS("says an empty text", "$0\r\n\r\n"),
    SAYS("says an empty list", "*0\r\n"),
    SAYS("says an empty map", "%0\r\n"),
    SAYS("says an empty set", "~0\r\n"),
    SAYS("says a map of lists", "%1\r\n*1\r\n:1\r\n*1\r\n:2\r\n"),
    SAYS("says a verbatim text", "=7\r\ntxt:abc\r\n"),
    SAYS("says a verbatim text that is too short", "=2\r\nab\r\n"),
    SAYS("says six nulls", "*6\r\n_\r\n_\r\n_\r\n_\r\n_\r\n_\r\n"),
    SAYS("says six empty lists", "*6\r\n*0\r\n*0\r\n*0\r\n*0\r\n*0\r\n*0\r\n"),
    SAYS("says six errors", "*6\r\n-ERR a\r\n-ERR b\r\n-ERR c\r\n-ERR d\r\n-ERR e\r\n-ERR f\r\n"),
    SAYS("says two nulls", "*2\r\n_\r\n_\r\n"),
    SAYS("says one text in a list", "*1\r\n$1\r\na\r\n"),
    SAYS("says seven numbers", "*7\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n:6\r\n:7\r\n"),
    /* errors */
    SAYS("refuses with an empty error", "-\r\n"),
    SAYS("refuses with a bulk error", "!10\r\nERR a\r\nb c\r\n"),
    SAYS("refuses with bytes that are no UTF-8", "-ERR \xff\xfe\xc0\x80\r\n"),
    SAYS("refuses with C1 control characters", "-ERR \xc2\x9b"
                                               "31m\r\n"),
    SAYS("lacks the script every time", "-NOSCRIPT No matching script.\r\n"),
    SAYS("is loading", "-LOADING Redis is loading the dataset in memory\r\n"),
    SAYS("is a replica", "-READONLY You can't write against a read only replica.\r\n"),
    SAYS("is out of memory", "-OOM command not allowed when used memory > 'maxmemory'.\r\n"),
    SAYS("wants a password", "-NOAUTH Authentication required.\r\n"),
    SAYS("denies", "-NOPERM this user has no permissions\r\n"),
    SAYS("moves the slot nowhere", "-MOVED 3999 \r\n"),
    SAYS("moves the slot to port 0", "-MOVED 3999 127.0.0.1:0\r\n"),
    SAYS("moves the slot to a large port", "-MOVED 3999 127.0.0.1:99999999999\r\n"),
    SAYS("moves a slot beyond the last", "-MOVED 16384 127.0.0.1:6379\r\n"),
    SAYS("moves the slot to a closed port", "-MOVED 1 127.0.0.1:1\r\n"),
    SAYS("moves the slot to its own port", "-MOVED 1 :1\r\n"),
    SAYS("asks at a closed port", "-ASK 1 127.0.0.1:1\r\n"),
    SAYS("moves the slot to a host of escape bytes", "-MOVED 1 \x1b[2J:7\r\n"),
    SAYS("does not know the protocol", "-NOPROTO unsupported protocol version\r\n"),
    SAYS("does not know the command",
         "-ERR unknown command 'X', with args beginning with: 'y'\r\n"),
    /* lengths */
    ENDS("announces a text of 2 GB", "$2147483647\r\nabc", END_STALL),
    ENDS("announces a text beyond 64 bits", "$99999999999999999999\r\n", END_STALL),
    ENDS("announces a negative text", "$-2\r\n", END_STALL),
    ENDS("announces a list of 2 billion", "*2147483647\r\n", END_STALL),
    ENDS("announces a negative list", "*-7\r\n", END_STALL),
    ENDS("announces a map of 2 billion", "%2147483647\r\n", END_STALL),
    ENDS("announces a push of 2 billion", ">2147483647\r\n", END_STALL),
    ENDS("announces no length", "$\r\n\r\n", END_STALL),
    ENDS("announces a length in letters", "$abc\r\n", END_STALL),
    ENDS("announces a length with a plus", "$+5\r\nabcde\r\n", END_NOT),
    SAYS("says a text longer than announced", "$3\r\nabcdef\r\n"),
    ENDS("says a text shorter than announced", "$30\r\nabcdef\r\n", END_STALL),
    {.name = "says a text of 900 KB", .action = HOSTILE_LONG, .text = "x", .number = 900000},
    {.name = "says a text of 8 MB", .action = HOSTILE_LONG, .text = "xxxxxxxx", .number = 8000000},
    {.name = "nests seven lists", .action = HOSTILE_NEST, .text = "*1\r\n", .number = 7},
    {.name = "nests a thousand lists", .action = HOSTILE_NEST, .text = "*1\r\n", .number = 1000},
    {.name = "nests a million lists", .action = HOSTILE_NEST, .text = "*1\r\n", .number = 1000000},
    {.name = "nests attributes", .action = HOSTILE_NEST, .text = "|1\r\n:1\r\n:2\r\n", .number = 5},
    {.name = "nests attributes in attributes",
     .action = HOSTILE_NEST,
     .text = "|1\r\n",
     .number = 50},
    /* not RESP at all */
    SAYS("speaks HTTP", "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"),
    SAYS("speaks TLS", "\x15\x03\x01\x02\x02\x0a"),
    SAYS("says an unknown kind", "@5\r\nhello\r\n"),
    SAYS("ends lines without a carriage return", ":1\n"),
    ENDS("says bytes without a line", "aaaaaaaaaaaaaaaaaaaaaaaa", END_STALL),
    {.name = "says NUL bytes", .action = HOSTILE_SAY, .text = "\0\0\0\0\r\n\0", .length = 7},
    {.name = "says NUL bytes in a text",
     .action = HOSTILE_SAY,
     .text = "$3\r\n\0\0\0\r\n",
     .length = 9},
    /* truncated */
    CUT("closes instead", 0, END_CLOSE),
    CUT("resets instead", 0, END_RESET),
    CUT("closes after a byte", 1, END_CLOSE),
    CUT("closes after seven bytes", 7, END_CLOSE),
    CUT("closes before the last byte", -1, END_CLOSE),
    CUT("resets in the middle", 20, END_RESET),
    CUT("closes behind the reply", 1 << 30, END_CLOSE),
    CUT("resets behind the reply", 1 << 30, END_RESET),
    CUT("stalls instead", 0, END_STALL),
    CUT("stalls after five bytes", 5, END_STALL),
    CUT("stalls before the last byte", -1, END_STALL),
    CUT("stalls behind the reply", 1 << 30, END_STALL),
    /* slow and endless */
    {.name = "drips", .action = HOSTILE_DRIP},
    {.name = "drips a long line",
     .action = HOSTILE_DRIP,
     .text =
         "+xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
         "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
         "x"},
    {.name = "drips pushes",
     .action = HOSTILE_ENDLESS,
     .text = "",
     .more = ">1\r\n+x\r\n",
     .number = 1},
    {.name = "sends a list without end",
     .action = HOSTILE_ENDLESS,
     .text = "*2000000000\r\n",
     .more = ":1\r\n"},
    {.name = "sends replies without end", .action = HOSTILE_ENDLESS, .text = "", .more = "+OK\r\n"},
    {.name = "sends pushes without end",
     .action = HOSTILE_ENDLESS,
     .text = "",
     .more = ">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n"},
    {.name = "sends lists in lists without end",
     .action = HOSTILE_ENDLESS,
     .text = "",
     .more = "*1\r\n"},
    {.name = "sends a text without end",
     .action = HOSTILE_ENDLESS,
     .text = "$500000000\r\n",
     .more = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"},
    /* unsolicited */
    BEFORE("pushes a subscription", ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n", 0),
    BEFORE("pushes a subscription of null", ">3\r\n$9\r\nsubscribe\r\n_\r\n_\r\n", 0),
    BEFORE("pushes a message without a body", ">2\r\n$7\r\nmessage\r\n$1\r\na\r\n", 0),
    BEFORE("pushes a message of lists", ">3\r\n$7\r\nmessage\r\n*0\r\n*1\r\n:1\r\n", 0),
    BEFORE("pushes nothing", ">0\r\n", 0),
    BEFORE("pushes null", ">1\r\n_\r\n", 0),
    BEFORE("pushes a change", ">3\r\n$7\r\nmessage\r\n$19\r\nleasehold:0:changed\r\n$2\r\n5 \r\n",
           0),
    BEFORE("pushes a change of 99 digits",
           ">3\r\n$7\r\nmessage\r\n$19\r\nleasehold:0:changed\r\n$30\r\n"
           "999999999999999999999999999999\r\n",
           0),
    BEFORE("pushes ten thousand changes",
           ">3\r\n$7\r\nmessage\r\n$19\r\nleasehold:0:changed\r\n$26\r\n"
           "0 leasehold:{aaaa}:lock:kk\r\n",
           10000),
    BEFORE("replies to nothing", "+OK\r\n", 0),
    BEFORE("replies an error to nothing", "-ERR no\r\n", 0),
    BEFORE("replies a message list to nothing", "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n", 0),
    BEFORE("replies a subscription list to nothing", "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n",
           0),
    BEFORE("sets an attribute before it", "|1\r\n+ttl\r\n:3600\r\n", 0),
    AFTER("replies once more", "*6\r\n:1\r\n:2\r\n$0\r\n\r\n_\r\n:-1\r\n:0\r\n"),
    AFTER("pushes behind it", ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"),
    {.name = "replies twice", .action = HOSTILE_DOUBLE},
    {.name = "replies nothing, then goes on", .action = HOSTILE_DROP},
    {.name = "replies what it replied before", .action = HOSTILE_REPLAY},
    FLIP("flips a bit of the kind", 0),
    FLIP("flips a bit of the length", 1),
    FLIP("flips a bit of the body", 12),
    FLIP("flips a bit of the end", -1),
    /* changed parts */
    ITEM("tells a time of 0", 2, ":0\r\n"),
    ITEM("tells a negative time", 2, ":-1\r\n"),
    ITEM("tells the smallest time", 2, ":-9223372036854775808\r\n"),
    ITEM("tells the largest time", 2, ":9223372036854775807\r\n"),
    ITEM("tells a time of 2^53", 2, ":9007199254740992\r\n"),
    ITEM("tells a time as text", 2, "$3\r\nnow\r\n"),
    ITEM("tells a condition of 7", 1, ":7\r\n"),
    ITEM("tells a condition as a list", 1, "*0\r\n"),
    ITEM("has a list for a record", 3, "*1\r\n:1\r\n"),
    ITEM("has a null for a record", 3, "_\r\n"),
    ITEM("has a stranger of control characters", 4, "$6\r\n\x1b[2Ja\x07\r\n"),
    ITEM("has a stranger that is no UTF-8", 4, "$4\r\n\xff\xfe\xfd\xfc\r\n"),
    ITEM("has a stranger", 4, "$1\r\nx\r\n"),
    ITEM("has a stranger with a negative count", 6, ":-5\r\n"),
    ITEM("has a count beyond all revisions", 6, ":9007199254740992\r\n"),
    ITEM("has a stranger for ever", 5, ":9223372036854775807\r\n"),
    ITEM("has a stranger that ended", 5, ":-2\r\n"),
    SCAN("scans for ever", 1, "$2\r\n17\r\n"),
    SCAN("scans for ever and finds nothing", 0, "*2\r\n$2\r\n17\r\n*0\r\n"),
    SCAN("scans for ever and finds more", 0,
         "*2\r\n$1\r\n7\r\n*2\r\n$25\r\nleasehold:{aaaa}:lock:abc\r\n$25\r\nleasehold:{aaaa}:lock:"
         "abd\r\n"),
    SCAN("scans with a long cursor", 1, "$32\r\n99999999999999999999999999999999\r\n"),
    SCAN("scans with an empty cursor", 1, "$0\r\n\r\n"),
    SCAN("scans with a number for a cursor", 1, ":0\r\n"),
    SCAN("scans with a cursor of escape bytes", 1, "$5\r\n\x1b[31m\r\n"),
    SCAN("scans names that are none", 2, "*3\r\n:1\r\n_\r\n$3\r\nabc\r\n"),
    SCAN("scans a name that is no list", 2, "$3\r\nabc\r\n"),
    BULK("answers a write with nothing", 0, ""),
    BULK("answers a write with words", 0, "leasehold"),
    BULK("answers a write with revision 0", 0, "0 1794804815384 "),
    BULK("answers a write with a large revision", 0, "35184372088832 1794804815384 "),
    BULK("answers a write with a huge revision", 0, "99999999999999999999999 1 "),
    BULK("answers a write with a negative revision", 0, "-1 1794804815384 "),
    BULK("answers a write with a huge time", 0, "1794804815384 9223372036854775807 "),
    BULK("answers a write with an old revision", 0, "7 1794804815384 "),
    /* records */
    BULK("has a record without a stamp", 3, "{}"),
    BULK("has a record of revision 0", 3, "0 0 {}"),
    BULK("has a record of a huge revision", 3, "99999999999999999999 1794804815384 {}"),
    RECORD("has an empty record", "{}"),
    RECORD("has a record that is no JSON", "hello \x1b[31m"),
    RECORD("has a record of another version", "{\"leasehold\":99,\"key\":\"k\"}"),
    RECORD("has a record of another key", "{\"leasehold\":1,\"key\":\"other\"}"),
    RECORD("has a record with a control character", "{\"leasehold\":1,\"key\":\"k\x01\"}"),
    RECORD("has a record that is no UTF-8", "{\"leasehold\":1,\"key\":\"\xff\"}"),
    RECORD("has a grant without a time", GRANT("\"granted\":[0,1,-1],\"ttl_ms\":1000")),
    RECORD("has a grant of the far future",
           GRANT("\"granted\":[0,1,9007199254740991],\"ttl_ms\":86400000")),
    RECORD("has a grant with a huge TTL",
           GRANT("\"granted\":[0,1,1794804815384],\"ttl_ms\":9223372036854775807")),
    RECORD("has a grant with a huge token",
           GRANT("\"granted\":[9,99999999999999999,1],\"ttl_ms\":1000")),
    RECORD("has a grant written just now", GRANT("\"granted\":\"this\",\"ttl_ms\":30000")),
    RECORD("nests a record", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["),
    SWAP("has another holder", "\"holder\":\"", "\"holder\":\"not-"),
    SWAP("has another session", "\"session\":\"", "\"session\":\"f"),
    SWAP("has a record of version 3", "\"leasehold\":1", "\"leasehold\":3"),
    SWAP("has a record of version 2", "\"leasehold\":1", "\"leasehold\":2"),
    SWAP("has a mode that is none", "exclusive", "\\u001b[31m"),
    SWAP("has no grants", "\"grants\"", "\"gr\""),
    SWAP("has a TTL of 0", "\"ttl_ms\":", "\"ttl_ms\":0"),
    SWAP("says that it is a cluster", "standalone", "cluster"),
    SWAP("says that it is a Sentinel", "standalone", "sentinel"),
    SWAP("says that it is a slave", "master", "slave"),
    SWAP("has an older revision", "17", "0"),
    SWAP("has a newer revision", "17", "27"),
    SWAP("has a much newer revision", "17", "99999917"),
    SWAP("names another host", "127.0.0.1", "\x1b[31m.invalid"),
};

const size_t redis_variant_count = sizeof redis_variants / sizeof redis_variants[0];
