/* SPDX-License-Identifier: Apache-2.0 */
/* See hostile_github.h: the objects and headers of a hostile GitHub. */
#include "hostile_github.h"

#define LIMITED(title, code, words, lines)                                                        \
    {                                                                                             \
        .name = (title), .action = API_STATUS, .number = (code), .text = (words), .more = (lines) \
    }
#define LINE(title, name, value) VARIANT(title, API_LINE, name, value)
#define RECORD(title, words)     VARIANT(title, API_RECORD, words, NULL)
#define MANY(title, what, count)                             \
    {                                                        \
        .name = (title), .action = (what), .number = (count) \
    }

#define SHA      "object.sha"
#define REVISION "Leasehold-Revision: "
#define STALE    "Leasehold-Stale: "
#define DATE_AT  "committer.date"
#define GRANT(session, more, granted)                                            \
    "{\"leasehold\":1,\"key\":\"k\",\"next\":2,\"grants\":[{\"holder\":\"h\","   \
    "\"request\":\"r\",\"session\":\"" session "\",\"mode\":\"exclusive\"," more \
    "\"granted\":" granted ",\"ttl_ms\":86400000}]}"
#define TEN     "0123456789"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

const struct variant github_variants[] = {
    /* names of commits */
    REMOVE("has no object", "object"),
    SET("has an object of null", "object", "null"),
    SET("has an object that is a list", "object", "[{\"sha\":\"x\"}]"),
    SET("has an empty sha", SHA, "\"\""),
    SET("has a sha as a number", SHA, "12345"),
    SET("has a short sha", SHA, "\"00000000000000000000000000000000000010\""),
    SET("has a long sha", SHA, "\"" HUNDRED "\""),
    SET("has a sha of another commit", SHA, "\"" HUB_COMMIT "\""),
    SET("has a sha of no commit", SHA, "\"ffffffffffffffffffffffffffffffffffffffff\""),
    SET("has a sha of zeros", SHA, "\"0000000000000000000000000000000000000000\""),
    SET("has a sha of control bytes", SHA,
        "\"\\u001b[31m\\r\\nX-Evil: 1\\r\\n\\r\\n01234567890123456789\""),
    SET("has a sha that is a path", SHA, "\"../../../../../user?x=000000000000000000\""),
    SET("has a sha of letters beyond f", SHA, "\"zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz\""),
    SET("has a sha of UTF-8", SHA,
        "\"\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\\u0"
        "0e9\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\""),
    REMOVE("makes objects without a sha", "sha"),
    SET("makes objects with a null sha", "sha", "null"),
    SET("makes objects with a short sha", "sha", "\"abc\""),
    SET("makes objects with a sha of control bytes", "sha",
        "\"\\u001b[31m\\r\\nX-Evil: 1\\r\\n\\r\\n01234567890123456789\""),
    SET("makes objects with the same sha", "sha", "\"" HUB_COMMIT "\""),
    REMOVE("has no ref", "ref"),
    SET("has a ref of null", "ref", "null"),
    SET("has a ref elsewhere", "ref", "\"refs/heads/main\""),
    SET("has a ref that is a path", "ref", "\"refs/leasehold/w/../../../../../../user\""),
    SET("has a ref without a name", "ref", "\"refs/leasehold/k/\""),
    SET("has a ref of another key", "ref", "\"refs/leasehold/k/other\""),
    SET("has a ref of a hash", "ref",
        "\"refs/leasehold/k/=0123456789012345678901234567890123456789\""),
    SET("has a ref of half an escape", "ref", "\"refs/leasehold/k/%4\""),
    SET("has a ref of a control byte", "ref", "\"refs/leasehold/k/%1B%5B31m\""),
    SET("has a ref of NUL", "ref", "\"refs/leasehold/k/a%00b\""),
    SET("has a ref of 300 bytes", "ref", "\"refs/leasehold/k/" HUNDRED HUNDRED HUNDRED "\""),
    SET("has a ref with escape bytes", "ref", "\"refs/leasehold/k/\\u001b[31m\\u0007\""),
    /* dates of commits */
    REMOVE("has no committer", "committer"),
    SET("has a committer of null", "committer", "null"),
    SET("has a committer that is a list", "committer", "[]"),
    REMOVE("has no date", DATE_AT),
    SET("has a date as a number", DATE_AT, "1700000000"),
    SET("has a date that is none", DATE_AT, "\"yesterday\""),
    SET("has a date without a time", DATE_AT, "\"2026-01-01\""),
    SET("has a date before 1970", DATE_AT, "\"1969-12-31T23:59:59Z\""),
    SET("has a date in the year 0", DATE_AT, "\"0000-01-01T00:00:00Z\""),
    SET("has a date at 1970", DATE_AT, "\"1970-01-01T00:00:00Z\""),
    SET("has a date in the year 9999", DATE_AT, "\"9999-12-31T23:59:59Z\""),
    SET("has a date of five digits", DATE_AT, "\"99999-12-31T23:59:59Z\""),
    SET("has a date with a zone", DATE_AT, "\"2026-01-01T00:00:00+14:00\""),
    SET("has a date with a fraction", DATE_AT, "\"2026-01-01T00:00:00.999999999999999Z\""),
    SET("has a date of large numbers", DATE_AT, "\"2026-99-99T99:99:99Z\""),
    SET("has a date with more behind it", DATE_AT, "\"2026-01-01T00:00:00Zx\\u001b\""),
    /* messages of commits */
    REMOVE("has no message", "message"),
    SET("has a message of null", "message", "null"),
    SET("has a message as a number", "message", "7"),
    SET("has an empty message", "message", "\"\""),
    SET("has a message of line ends", "message", "\"\\n\\n\\n\\n\\n\\n\""),
    SET("has a message without our lines", "message", "\"k: held\\n\\n{}\\n\""),
    SET("has a message of escape bytes", "message", "\"\\u001b[31m\\u0007\\u009b\""),
    SET("has a message of the line only", "message", "\"Leasehold-Revision: 5\""),
    SET("has a message that begins with our line", "message",
        "\"Leasehold-Revision: 5\\n\\nLeasehold-Revision: 6\\n\""),
    SET("has a message with the line in its first part", "message",
        "\"k\\n\\nLeasehold-Revision: 5 \\n\\n{}\\n\\nLeasehold-Revision: 7\""),
    LINE("has a revision twice", REVISION, "1\nLeasehold-Revision: 35184372088831"),
    LINE("has no revision", REVISION, NULL),
    LINE("has an empty revision", REVISION, ""),
    LINE("has revision 0", REVISION, "0"),
    LINE("has revision 1", REVISION, "1"),
    LINE("has a negative revision", REVISION, "-5"),
    LINE("has a revision with a plus", REVISION, "+5"),
    LINE("has a revision with a zero in front", REVISION, "05"),
    LINE("has a revision in letters", REVISION, "abc"),
    LINE("has a revision and more", REVISION, "5 \x1b[31m"),
    LINE("has the largest revision", REVISION, "35184372088831"),
    LINE("has a revision next to the largest", REVISION, "35184372088830"),
    LINE("has a revision beyond all tokens", REVISION, "35184372088832"),
    LINE("has a revision beyond 64 bits", REVISION, "18446744073709551617"),
    LINE("has a revision of 20 digits", REVISION, "99999999999999999999"),
    LINE("has no stale time", STALE, NULL),
    LINE("has a stale time of 0", STALE, "0"),
    LINE("has a stale time of 1", STALE, "1"),
    LINE("has a negative stale time", STALE, "-1"),
    LINE("has a stale time beyond 64 bits", STALE, "99999999999999999999999"),
    LINE("has a stale time of a day", STALE, "86400000"),
    /* records */
    RECORD("has an empty record", ""),
    RECORD("has a record that is no JSON", "\x1b[31m"),
    RECORD("has a record of null", "null"),
    RECORD("has a shortened record", "{\"leasehold\":1,\"key\":\"k\""),
    RECORD("has a record without grants", "{\"leasehold\":1,\"key\":\"k\"}"),
    RECORD("has a record of another version", "{\"leasehold\":99}"),
    RECORD("has a record of another key", "{\"leasehold\":1,\"key\":\"x\"}"),
    RECORD("has a record of two lines", "{\"leasehold\":1,\n\n\"key\":\"k\"}"),
    RECORD("has a record with a huge time", GRANT("1", "", "[0,1,9007199254740991]")),
    RECORD("has a record with session 0", GRANT("0", "\"bound\":true,", "\"this\"")),
    RECORD("has a record of a dead worker", GRANT("77", "\"bound\":true,", "\"this\"")),
    RECORD("has a record of no worker", GRANT("78", "\"bound\":true,", "\"this\"")),
    RECORD("has a record of an ended grant", GRANT("1", "", "[0,1,1000]")),
    RECORD("has a record with the largest revision", GRANT("1", "", "[65535,35184372088831,null]")),
    RECORD("has a record of nested lists", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["),
    {.name = "has a record of 70 KB", .action = API_RECORD, .text = "[1234567]", .number = 8000},
    {.name = "has a record of 8 MB", .action = API_RECORD, .text = "12345678", .number = 1000000},
    SET("has a tree of null", "tree", "null"),
    SET("has a tree with a short sha", "tree.sha", "\"abc\""),
    SET("has a tree of control bytes", "tree.sha",
        "\"\\u001b[31m\\r\\nX-Evil: 1\\r\\n\\r\\n01234567890123456789\""),
    /* lists */
    MANY("lists every item 30000 times", API_ITEMS, 30000),
    MANY("lists 20 items more", API_DISTINCT, 20),
    MANY("lists 5000 items more", API_DISTINCT, 5000),
    /* the repository, the account, issues */
    SET("is archived", "archived", "true"),
    SET("has no permission", "permissions.push", "false"),
    SET("has permissions of another type", "permissions", "7"),
    SET("has permissions of null", "permissions", "{\"push\":null}"),
    SET("has a login of escape bytes", "login", "\"\\u001b[31m\\r\\n\""),
    SET("has a login of 300 bytes", "login", "\"" HUNDRED HUNDRED HUNDRED "\""),
    SET("has a login as a number", "login", "7"),
    SET("has a negative id", "id", "-9223372036854775808"),
    SET("has an id as text", "id", "\"../../../user\""),
    SET("has number 0", "number", "0"),
    SET("has a negative number", "number", "-7"),
    SET("has another number", "number", "8"),
    SET("has a huge number", "number", "9223372036854775807"),
    SET("has a number as text", "number", "\"7\""),
    SET("has a title of escape bytes", "title", "\"\\u001b[31m\\n\\u0007\\u009b\""),
    SET("has a title of 300 bytes", "title", "\"" HUNDRED HUNDRED HUNDRED "\""),
    SET("has a title of null", "title", "null"),
    SET("has a page of escape bytes", "html_url", "\"javascript:\\u001b[31m\\r\\n\""),
    SET("has labels of another type", "labels", "{\"name\":\"do\"}"),
    SET("has labels of null", "labels", "[null,7,{},{\"name\":7}]"),
    SET("is closed", "state", "\"closed\""),
    SET("has an event without a label", "label", "null"),
    SET("has an event at no time", "created_at", "\"9999999\""),
    /* headers */
    HEADER("has a long ETag", "ETag: \"" HUNDRED HUNDRED HUNDRED "\"\r\n"),
    HEADER("has an ETag of escape bytes", "ETag: \x1b[31m\x07\r\n"),
    HEADER("has an empty ETag", "ETag: \r\n"),
    HEADER("has the same ETag always", "ETag: \"x\"\r\n"),
    HEADER("polls never", "x-poll-interval: 9223372036854775\r\n"),
    HEADER("polls at a negative interval", "x-poll-interval: -5\r\n"),
    HEADER("polls at an interval of text", "x-poll-interval: soon\r\n"),
    HEADER("has a limit of 0", "x-ratelimit-limit: 0\r\nx-ratelimit-remaining: 0\r\n"),
    HEADER("has a limit of 1", "x-ratelimit-limit: 1\r\nx-ratelimit-remaining: 1\r\n"),
    HEADER("has a negative limit", "x-ratelimit-limit: -1\r\nx-ratelimit-remaining: -1\r\n"),
    HEADER("has a limit beyond 64 bits",
           "x-ratelimit-limit: 99999999999999999999999\r\nx-ratelimit-remaining: 1\r\n"),
    HEADER("has a huge limit", "x-ratelimit-limit: 9223372036854775\r\n"
                               "x-ratelimit-remaining: 9223372036854775\r\n"
                               "x-ratelimit-reset: 9223372036854775\r\n"),
    HEADER("has limits of text", "x-ratelimit-limit: many\r\nx-ratelimit-remaining: \x1b[31m\r\n"
                                 "x-ratelimit-reset: later\r\n"),
    HEADER("has a limit that ends long ago",
           "x-ratelimit-limit: 5000\r\nx-ratelimit-remaining: 0\r\nx-ratelimit-reset: 5\r\n"),
    HEADER("has a limit that ends never", "x-ratelimit-limit: 5000\r\nx-ratelimit-remaining: 0\r\n"
                                          "x-ratelimit-reset: 9223372036854775\r\n"),
    HEADER("has a limit of another part", "x-ratelimit-limit: 1\r\nx-ratelimit-remaining: 0\r\n"
                                          "x-ratelimit-resource: \x1b[31m\r\n"),
    HEADER("links to another host", "Link: <http://127.0.0.1:1/x>; rel=\"next\"\r\n"),
    HEADER("links to a longer host", "Link: <$S.evil.example/x>; rel=\"next\"\r\n"),
    HEADER("links to a file", "Link: <file:///etc/passwd>; rel=\"next\"\r\n"),
    HEADER("links on for ever",
           "Link: <$S" HUB_REPOSITORY "/issues?page=2>; rel=\"next\", <$S/x>; rel=\"last\"\r\n"),
    HEADER("links to control bytes", "Link: <$S/\x1b[31m \x07>; rel=\"next\"\r\n"),
    HEADER("links to nothing", "Link: <$S>; rel=\"next\", <>; rel=\"next\"\r\n"),
    HEADER("links without an end", "Link: <$S/x; rel=\"next\"\r\n"),
    HEADER("links far", "Link: <$S/" HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED
                        ">; rel=\"next\"\r\n"),
    /* limits */
    LIMITED("is limited", 403, "API rate limit exceeded for user ID 1.",
            "x-ratelimit-limit: 5000\r\nx-ratelimit-remaining: 0\r\nx-ratelimit-reset: 0\r\n"),
    LIMITED("is limited for ever", 403, "API rate limit exceeded",
            "x-ratelimit-limit: 5000\r\nx-ratelimit-remaining: 0\r\n"
            "x-ratelimit-reset: 9223372036854775\r\n"),
    LIMITED("is limited a second time", 403, "You have exceeded a secondary rate limit", ""),
    LIMITED("is limited for a second", 429, "later", "Retry-After: 1\r\n"),
    LIMITED("is limited for no time", 429, "later", "Retry-After: 0\r\n"),
    LIMITED("is limited for a negative time", 403, "later", "Retry-After: -5\r\n"),
    LIMITED("is limited for a huge time", 403, "later", "Retry-After: 99999999999999999999\r\n"),
    LIMITED("is limited for a time in words", 429, "rate limit \x1b[31m", "Retry-After: soon\r\n"),
    LIMITED("is limited with garbage", 429, "rate limit",
            "x-ratelimit-limit: x\r\nx-ratelimit-remaining: -0\r\nx-ratelimit-reset: -1\r\n"),
    LIMITED("shows the token in its message", 403, "t-secret t-secret", NULL),
    LIMITED("answers 451", 451, "blocked", NULL),
    LIMITED("answers 301 with a place", 301, "Moved Permanently",
            "Location: $S/repositories/1/git/ref/x\r\n"),
    LIMITED("answers 308 to another host", 308, "Moved", "Location: http://127.0.0.1:1/\r\n"),
};

const size_t github_variant_count = sizeof github_variants / sizeof github_variants[0];
