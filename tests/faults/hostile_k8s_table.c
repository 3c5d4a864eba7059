/* SPDX-License-Identifier: Apache-2.0 */
/* See hostile_k8s.h: the replies of a hostile API server. */
#include "hostile_k8s.h"

#define STATUS(title, code, words)                                               \
    {                                                                            \
        .name = (title), .action = API_STATUS, .number = (code), .text = (words) \
    }
#define BODY(title, words)                                   \
    {                                                        \
        .name = (title), .action = API_BODY, .text = (words) \
    }
#define SET(title, path, json)                                             \
    {                                                                      \
        .name = (title), .action = API_SET, .text = (path), .more = (json) \
    }
#define REMOVE(title, path)                                   \
    {                                                         \
        .name = (title), .action = API_REMOVE, .text = (path) \
    }
#define ROOT(title, path, json)                                             \
    {                                                                       \
        .name = (title), .action = API_ROOT, .text = (path), .more = (json) \
    }
#define HEADER(title, lines)                                   \
    {                                                          \
        .name = (title), .action = API_HEADER, .text = (lines) \
    }
#define DATE(title, words)                                   \
    {                                                        \
        .name = (title), .action = API_DATE, .text = (words) \
    }
#define RAW(title, words, how)                                               \
    {                                                                        \
        .name = (title), .action = API_RAW, .text = (words), .ending = (how) \
    }
#define LENGTH(title, off, how)                                                 \
    {                                                                           \
        .name = (title), .action = API_LENGTH, .number = (off), .ending = (how) \
    }
#define CHUNKS(title, end, last)                                              \
    {                                                                         \
        .name = (title), .action = API_CHUNKED, .text = (end), .more = (last) \
    }
#define CUT(title, count, how)                                                 \
    {                                                                          \
        .name = (title), .action = API_CUT, .number = (count), .ending = (how) \
    }
#define ENDLESS(title, first, rest)                                             \
    {                                                                           \
        .name = (title), .action = API_ENDLESS, .text = (first), .more = (rest) \
    }
#define EVENT(title, line, times)                                               \
    {                                                                           \
        .name = (title), .action = API_EVENT, .text = (line), .number = (times) \
    }

#define RECORD "metadata.annotations.leasehold/record"
#define NOTE   "metadata.annotations.leasehold/"
#define OK     "HTTP/1.1 200 OK\r\n"

const struct variant k8s_variants[] = {
    /* the first two find most of the planted faults */
    BODY("has HTML", "<html><body>\x1b[31m502 Bad Gateway</body></html>"),
    ENDLESS("sends spaces for ever", "",
            "                                                        "),
    /* status codes */
    STATUS("answers 100", 100, NULL),
    STATUS("answers 101", 101, NULL),
    STATUS("answers 200 for everything", 200, NULL),
    STATUS("answers 201 for everything", 201, NULL),
    STATUS("answers 202", 202, NULL),
    STATUS("answers 204", 204, NULL),
    STATUS("answers 206", 206, NULL),
    STATUS("answers 304", 304, NULL),
    STATUS("answers 400", 400, "no"),
    STATUS("answers 401", 401, "who are you"),
    STATUS("answers 403", 403, "may not"),
    STATUS("answers 404", 404, "nothing here"),
    STATUS("answers 404 with the object", 404, NULL),
    STATUS("answers 409", 409, "changed"),
    STATUS("answers 409 with the object", 409, NULL),
    STATUS("answers 410", 410, "too old"),
    STATUS("answers 413", 413, "too large"),
    STATUS("answers 422", 422, "invalid"),
    STATUS("answers 429", 429, "later"),
    STATUS("answers 500", 500, "etcdserver: leader changed"),
    STATUS("answers 503", 503, NULL),
    STATUS("answers 504", 504, "timeout"),
    STATUS("answers 599", 599, ""),
    STATUS("answers 999", 999, "what"),
    STATUS("answers 0", 0, "what"),
    STATUS("answers with escape bytes", 403, "\x1b[31mred\x1b[0m\x07\x08 \x7f"),
    STATUS("answers with C1 bytes", 500,
           "\xc2\x9b"
           "31m"),
    STATUS("answers with lines", 500, "a\nb\r\nc\td"),
    {.name = "answers with a long message",
     .action = API_LONG,
     .text = "message ",
     .number = 100000},
    {.name = "answers with a message of 8 MB",
     .action = API_LONG,
     .text = "messages",
     .number = 8000000},
    /* bodies */
    BODY("has an empty body", ""),
    BODY("has a body of spaces", "          "),
    BODY("has null", "null"),
    BODY("has a number", "12345678901234567890123456789"),
    BODY("has a string", "\"hello\""),
    BODY("has an empty list", "[]"),
    BODY("has an empty object", "{}"),
    BODY("has half an object", "{\"metadata\":{\"name\":\"k\""),
    BODY("has two objects", "{}{}"),
    BODY("has a member twice", "{\"metadata\":1,\"metadata\":{},\"items\":1,\"items\":[]}"),
    BODY("is no UTF-8",
         "{\"message\":\"\xff\xfe\xc0\x80\",\"metadata\":{\"name\":\"\xed\xa0\x80\"}}"),
    BODY("has a lone surrogate", "{\"message\":\"\\ud800\",\"metadata\":{\"name\":\"\\udfff\"}}"),
    BODY("has control characters", "{\"message\":\"\\u001b[2J\\u0007\\u0000x\",\"code\":500}"),
    {.name = "has NUL bytes", .action = API_BODY, .text = "{\"message\":\"\0\"}\0\0", .length = 16},
    BODY("has wrong types",
         "{\"metadata\":[],\"spec\":\"x\",\"items\":{},\"status\":7,\"kind\":[]}"),
    BODY("has metadata of numbers", "{\"metadata\":{\"name\":1,\"uid\":2,\"resourceVersion\":3,"
                                    "\"annotations\":4},\"items\":[1]}"),
    BODY("has items that are none",
         "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[null,1,[],\"x\",{}]}"),
    BODY("has items of null", "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":null}"),
    BODY("is a Table", "{\"kind\":\"Table\",\"rows\":[{\"cells\":[1]}]}"),
    {.name = "nests lists", .action = API_NEST, .text = "[", .number = 1000},
    {.name = "nests a million lists", .action = API_NEST, .text = "[", .number = 1000000},
    {.name = "nests objects", .action = API_NEST, .text = "{\"metadata\":", .number = 3000},
    {.name = "answers what it answered before", .action = API_REPLAY},
    /* objects that come back changed */
    SET("has another name", "metadata.name", "\"another\""),
    SET("has an empty name", "metadata.name", "\"\""),
    SET("has a name of escape bytes", "metadata.name", "\"\\u001b[31m\""),
    SET("has a name of 300 bytes", "metadata.name",
        "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaa\""),
    SET("has another uid", "metadata.uid", "\"11111111-1111-4111-8111-111111111111\""),
    SET("has a uid of 100 bytes", "metadata.uid",
        "\"1111111111111111111111111111111111111111111111111111111111111111111111111111111111111111"
        "\""),
    SET("has a uid of escape bytes", "metadata.uid", "\"\\u001b[31m\""),
    REMOVE("has no uid", "metadata.uid"),
    REMOVE("has no metadata", "metadata"),
    REMOVE("has no spec", "spec"),
    REMOVE("has no resourceVersion", "metadata.resourceVersion"),
    SET("has revision 0", "metadata.resourceVersion", "\"0\""),
    SET("has a negative revision", "metadata.resourceVersion", "\"-5\""),
    SET("has a revision in letters", "metadata.resourceVersion", "\"abc\""),
    SET("has an old revision", "metadata.resourceVersion", "\"1\""),
    SET("has a large revision", "metadata.resourceVersion", "\"35184372088831\""),
    SET("has a revision beyond all tokens", "metadata.resourceVersion", "\"35184372088832\""),
    SET("has a revision beyond 64 bits", "metadata.resourceVersion", "\"99999999999999999999999\""),
    SET("has a revision as a number", "metadata.resourceVersion", "77"),
    REMOVE("has no annotations", "metadata.annotations"),
    SET("has annotations of another type", "metadata.annotations", "[1]"),
    REMOVE("has no record", RECORD),
    SET("has an empty record", RECORD, "\"\""),
    SET("has a shortened record", RECORD, "\"{\\\"leasehold\\\":1,\\\"key\\\":\\\"k\\\"\""),
    SET("has a record without grants", RECORD, "\"{\\\"leasehold\\\":1,\\\"key\\\":\\\"k\\\"}\""),
    SET("has a record of another version", RECORD, "\"{\\\"leasehold\\\":99}\""),
    SET("has a record of another key", RECORD, "\"{\\\"leasehold\\\":1,\\\"key\\\":\\\"x\\\"}\""),
    SET("has a record of control characters", RECORD, "\"\\u001b[31m\\u0000\""),
    SET("has a record of nested lists", RECORD, "\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\""),
    SET("has a record with a huge time", RECORD,
        "\"{\\\"leasehold\\\":1,\\\"key\\\":\\\"k\\\",\\\"grants\\\":[{\\\"holder\\\":\\\"h\\\","
        "\\\"session\\\":\\\"1\\\",\\\"mode\\\":\\\"exclusive\\\",\\\"granted\\\":[0,1,"
        "9007199254740991],\\\"ttl_ms\\\":86400000}]}\""),
    SET("has a record as a number", RECORD, "7"),
    REMOVE("has no key", NOTE "key"),
    SET("has another key", NOTE "key", "\"other\""),
    SET("has a key of escape bytes", NOTE "key", "\"\\u001b[31m\""),
    REMOVE("has no shown holder", NOTE "shown"),
    SET("has another shown holder", NOTE "shown", "\"x y\""),
    REMOVE("has no write number", NOTE "write"),
    SET("has a row beyond all", NOTE "row", "\"99999999999999999999\""),
    SET("has another holder", "spec.holderIdentity", "\"mallory\""),
    SET("has no holder", "spec.holderIdentity", "\"\""),
    SET("has a holder of escape bytes", "spec.holderIdentity", "\"\\u001b]0;x\\u0007\""),
    SET("has a holder that is an object", "spec.holderIdentity", "{}"),
    SET("has a negative duration", "spec.leaseDurationSeconds", "-1"),
    SET("has a huge duration", "spec.leaseDurationSeconds", "9223372036854775807"),
    SET("has a duration as text", "spec.leaseDurationSeconds", "\"30\""),
    SET("has an acquireTime that is none", "spec.acquireTime", "\"yesterday\""),
    REMOVE("has no managedFields", "metadata.managedFields"),
    SET("has managedFields of null", "metadata.managedFields", "[null,{\"manager\":7}]"),
    SET("has managedFields in the year 9999", "metadata.managedFields",
        "[{\"manager\":\"leasehold-holder\",\"time\":\"9999-12-31T23:59:59Z\"}]"),
    SET("has managedFields before 1970", "metadata.managedFields",
        "[{\"manager\":\"leasehold-holder\",\"time\":\"0001-01-01T00:00:00Z\"}]"),
    SET("is being deleted", "metadata.deletionTimestamp", "\"2026-01-01T00:00:00Z\""),
    SET("has a creation time that is none", "metadata.creationTimestamp", "\"x\""),
    REMOVE("has no label", "metadata.labels"),
    SET("has a status that is none", "status",
        "{\"phase\":[],\"conditions\":{},\"containerStatuses\":7}"),
    SET("has failed", "status",
        "{\"phase\":\"Failed\",\"containerStatuses\":[{\"state\":{\"terminated\":"
        "{\"exitCode\":99999999999,\"finishedAt\":\"x\"}}}]}"),
    SET("has failed with escape bytes", "status",
        "{\"phase\":\"Failed\",\"reason\":\"\\u001b[31m\","
        "\"message\":\"\\u0007\"}"),
    /* lists and other replies */
    ROOT("lists on for ever", "metadata.continue", "\"again\""),
    {.name = "lists on for ever, elsewhere", .action = API_PAGES, .number = 0},
    {.name = "lists on for ever, with many items", .action = API_PAGES, .number = 3000},
    ROOT("lists on with spaces", "metadata.continue", "\"a b&limit=0\\r\\nX: y\""),
    ROOT("lists on with a number", "metadata.continue", "7"),
    ROOT("lists no revision", "metadata.resourceVersion", "\"\""),
    ROOT("lists a huge revision", "metadata.resourceVersion", "\"99999999999999999999999999\""),
    ROOT("lists a revision that injects", "metadata.resourceVersion", "\"5&watch=false\""),
    ROOT("allows nothing", "status.allowed", "false"),
    ROOT("allows maybe", "status.allowed", "\"maybe\""),
    ROOT("has a version of escape bytes", "gitVersion", "\"\\u001b[31mv1\""),
    ROOT("has a minor version of 99 digits", "minor", "\"99999999999999999999999999999999+\""),
    ROOT("has resources that are none", "resources", "[null,7,{\"kind\":\"Pod\",\"name\":7}]"),
    ROOT("has resources with a path", "resources",
         "[{\"kind\":\"Pod\",\"name\":\"../../x?y=\\r\\nZ: z\",\"namespaced\":true}]"),
    {.name = "lists every item a thousand times", .action = API_ITEMS, .number = 1000},
    {.name = "lists every item 8000 times", .action = API_ITEMS, .number = 8000},
    /* headers */
    DATE("has no Date", NULL),
    DATE("has an empty Date", ""),
    DATE("has a Date that is none", "tomorrow"),
    DATE("has a Date before 1970", "Thu, 01 Jan 1960 00:00:00 GMT"),
    DATE("has a Date in the year 9999", "Fri, 31 Dec 9999 23:59:59 GMT"),
    DATE("has a Date an hour ahead", "Fri, 31 Dec 2049 23:59:59 GMT"),
    HEADER("asks to come back in a day", "Retry-After: 86400\r\n"),
    HEADER("asks to come back long ago", "Retry-After: -99999999999999999999\r\n"),
    HEADER("warns with escape bytes", "Warning: 299 - \"\x1b[31mred\x07\"\r\n"),
    HEADER("has a header without a colon", "nonsense\r\n"),
    HEADER("has a header that goes on", "X-A: b\r\n c\r\n\td\r\n"),
    HEADER("has a second Date", "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\nDate: x\r\n"),
    HEADER("has a second length", "Content-Length: 3\r\n"),
    HEADER("says gzip and is not", "Content-Encoding: gzip\r\n"),
    HEADER("says chunked and is not", "Transfer-Encoding: chunked\r\n"),
    HEADER("redirects without a status", "Location: http://127.0.0.1:1/\r\n"),
    RAW("redirects to a closed port",
        "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/x\r\nContent-Length: 0\r\n\r\n",
        END_NOT),
    RAW("redirects to a file",
        "HTTP/1.1 301 Moved\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n", END_NOT),
    RAW("redirects to itself",
        "HTTP/1.1 307 Again\r\nLocation: /version\r\nContent-Length: 0\r\n\r\n", END_NOT),
    RAW("asks to come back in seconds",
        "HTTP/1.1 429 Later\r\nRetry-After: 99999999999\r\nContent-Length: 2\r\n\r\n{}", END_NOT),
    RAW("asks to come back on a date",
        "HTTP/1.1 429 Later\r\nRetry-After: Fri, 31 Dec 9999 23:59:59 GMT\r\nContent-Length: "
        "2\r\n\r\n{}",
        END_NOT),
    RAW("switches protocols",
        "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nabc", END_STALL),
    RAW("says continue for ever", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n",
        END_STALL),
    RAW("speaks HTTP/0.9", "<html>", END_CLOSE),
    RAW("speaks HTTP/9.9", "HTTP/9.9 200 OK\r\nContent-Length: 2\r\n\r\n{}", END_CLOSE),
    RAW("speaks HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", END_CLOSE),
    RAW("speaks Redis", "-ERR \x1b[31munknown command\r\n", END_CLOSE),
    RAW("speaks TLS", "\x15\x03\x01\x02\x02\x0a", END_CLOSE),
    RAW("has no reason", "HTTP/1.1 500\r\nContent-Length: 0\r\n\r\n", END_NOT),
    RAW("has a reason of escape bytes", "HTTP/1.1 500 \x1b[31m\x07\r\nContent-Length: 0\r\n\r\n",
        END_NOT),
    RAW("has a status of letters", "HTTP/1.1 abc OK\r\nContent-Length: 0\r\n\r\n", END_CLOSE),
    RAW("has a status of ten digits", "HTTP/1.1 2000000000 OK\r\nContent-Length: 0\r\n\r\n",
        END_CLOSE),
    RAW("has a negative length", OK "Content-Length: -5\r\n\r\n{}", END_STALL),
    RAW("has a length beyond 64 bits", OK "Content-Length: 99999999999999999999999\r\n\r\n{}",
        END_STALL),
    RAW("has a length of letters", OK "Content-Length: abc\r\n\r\n{}", END_STALL),
    RAW("has no length and no end", OK "\r\n{\"metadata\":{", END_STALL),
    RAW("has no length and closes", OK "\r\n{}", END_CLOSE),
    RAW("has a head without end", OK "X: y\r\n", END_STALL),
    RAW("answers twice", OK "Content-Length: 2\r\n\r\n{}" OK "Content-Length: 2\r\n\r\n{}",
        END_NOT),
    LENGTH("has a length that is too large", 1000, END_STALL),
    LENGTH("has a length that is too large, and closes", 1000, END_CLOSE),
    LENGTH("has a length that is too small", -1, END_NOT),
    LENGTH("has a length of one byte less, and closes", -1, END_CLOSE),
    /* chunks */
    CHUNKS("sends chunks", "", "0\r\n\r\n"),
    CHUNKS("sends chunks with extensions", ";a=b;c=\"\x1b\"", "0;x\r\n\r\n"),
    CHUNKS("sends chunks with trailers", "", "0\r\nDate: x\r\nContent-Length: 7\r\n\r\n"),
    CHUNKS("sends chunks without the last one", "", NULL),
    CHUNKS("sends chunks of a wrong size", "0", "0\r\n\r\n"),
    CHUNKS("sends chunks of a huge size", "ffffffffffffffff", "0\r\n\r\n"),
    CHUNKS("sends chunks of no size", ";", "zz\r\n\r\n"),
    CHUNKS("sends a negative chunk", "", "-1\r\n\r\n"),
    /* truncated, slow, endless */
    CUT("closes instead", 0, END_CLOSE),
    CUT("resets instead", 0, END_RESET),
    CUT("stalls instead", 0, END_STALL),
    CUT("closes in the head", 30, END_CLOSE),
    CUT("stalls in the head", 30, END_STALL),
    CUT("closes in the body", 200, END_CLOSE),
    CUT("stalls in the body", 200, END_STALL),
    CUT("closes before the last byte", -1, END_CLOSE),
    CUT("stalls before the last byte", -1, END_STALL),
    CUT("resets behind the answer", 1 << 30, END_RESET),
    CUT("closes behind the answer", 1 << 30, END_CLOSE),
    {.name = "drips", .action = API_DRIP},
    ENDLESS("sends a string for ever", "{\"message\":\"",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    ENDLESS("sends items for ever", "{\"items\":[", "{\"metadata\":{\"name\":\"a\"}},"),
    ENDLESS("sends events for ever", "",
            "2e\r\n{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{}}}\n\r\n"),
    ENDLESS("sends empty lines for ever", "", "1\r\n\n\r\n"),
    ENDLESS("sends a line of chunks for ever", "", "8\r\nxxxxxxxx\r\n"),
    RAW("sends a header for ever", OK "X: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        END_STALL),
    /* events of a watch */
    EVENT("has events of no type", "{\"object\":{}}\n", 1),
    EVENT("has events of an unknown type", "{\"type\":\"WHAT\",\"object\":{\"metadata\":{}}}\n", 3),
    EVENT("has events without an object", "{\"type\":\"MODIFIED\"}\n", 3),
    EVENT("has events of null", "null\n[]\n7\n", 1),
    EVENT("has an event that is no JSON", "hello\x1b\n", 1),
    EVENT("has an event of error 410", "{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n", 1),
    EVENT("has ten thousand bookmarks",
          "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"9\"}}}\n", 10000),
    EVENT("has ten thousand deletions",
          "{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"k\",\"uid\":\"u\","
          "\"resourceVersion\":\"9\"}}}\n",
          10000),
    {.name = "repeats each event a thousand times", .action = API_ITEMS, .number = 1001},
};

const size_t k8s_variant_count = sizeof k8s_variants / sizeof k8s_variants[0];
