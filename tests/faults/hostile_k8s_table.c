/* SPDX-License-Identifier: Apache-2.0 */
/* See hostile_k8s.h: the objects and events of a hostile API server. */
#include "hostile_k8s.h"

#define EVENT(title, line, times)                                               \
    {                                                                           \
        .name = (title), .action = API_EVENT, .text = (line), .number = (times) \
    }

#define RECORD "metadata.annotations.leasehold/record"
#define NOTE   "metadata.annotations.leasehold/"

const struct variant k8s_variants[] = {
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
