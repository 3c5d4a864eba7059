/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RESP2 and RESP3, the protocol of Redis, for clients and servers. Pure: fed with bytes, it finds
 * the end of the next message; a walk then returns its items. Independent of commands. Any input is
 * a whole message, an incomplete one, or refused; the owner sets the limits.
 */
#ifndef LEASEHOLD_WIRE_RESP_H
#define LEASEHOLD_WIRE_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RESP_DEPTH_MAX = 8,
    RESP_LINE_MAX = 64 * 1024, /* of an error, a number, a simple string */
    RESP_HEAD_MAX = 24,        /* a type, a number and the line end */
};

enum resp_kind {
    RESP_TEXT,   /* simple, bulk or verbatim; also big numbers and doubles */
    RESP_ERROR,  /* of either form */
    RESP_NUMBER, /* also true (1) and false (0) */
    RESP_NULL,   /* of any form */
    RESP_LIST,   /* array or set */
    RESP_MAP,
    RESP_PUSH,      /* not a reply to a command */
    RESP_ATTRIBUTE, /* precedes the value that it describes */
};

/* The start of a value. `count` items follow a list, a map (twice its pairs), a push and an
 * attribute. */
struct resp_item {
    enum resp_kind kind;
    const char *text; /* points into the message; not NUL-terminated */
    size_t length;
    int64_t number;
    size_t count;
};

enum resp_result { RESP_WHOLE, RESP_MORE, RESP_BROKEN };

/* Finds the ends of messages; initially all 0 except the limits. */
struct resp {
    size_t bulk_max;  /* bytes of one text */
    size_t items_max; /* of one message, all depths together */
    /* progress in the current message */
    size_t at, items;
    unsigned depth;
    size_t left[RESP_DEPTH_MAX];
    const char *wrong; /* after RESP_BROKEN: the reason */
};

/* `bytes` begins with the same message as in the last call, perhaps with more data. */
enum resp_result resp_feed(struct resp *resp, const char *bytes, size_t length, size_t *out_length);

/* Walks through a whole message. */
struct resp_walk {
    const char *bytes;
    size_t length, at;
};

/* False at the end. */
bool resp_next(struct resp_walk *walk, struct resp_item *out);
/* Skips the value that this item begins, with all nested items. */
void resp_skip(struct resp_walk *walk, const struct resp_item *item);

/* True if the item is exactly this text; if the item, also an error, begins with it. */
bool resp_is(const struct resp_item *item, const char *text);
bool resp_begins(const struct resp_item *item, const char *text);

/* Writes the start of a text ('$'), a list ('*') or a number (':'), as in "$5\r\n"; returns its
 * length. The bytes of a text and another line end follow. */
size_t resp_head(char kind, uint64_t number, char *out);

#endif
