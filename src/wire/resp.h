/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RESP2 and RESP3, the protocol of Redis, from both sides: the driver speaks it, a server of ours
 * can. Pure: feed bytes, and it says where the next message ends; then walk through it. Knows no
 * command. Whatever the other side sends, a message is whole, not yet whole, or refused; limits are
 * the owner's.
 */
#ifndef LEASEHOLD_WIRE_RESP_H
#define LEASEHOLD_WIRE_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RESP_DEPTH_MAX = 8,
    RESP_LINE_MAX = 64 * 1024, /* of an error, a number, a simple text */
    RESP_HEAD_MAX = 24,        /* a kind, a number, and the line's end */
};

enum resp_kind {
    RESP_TEXT,   /* simple, bulk or verbatim; also numbers beyond 64 bits, and fractions */
    RESP_ERROR,  /* of either form */
    RESP_NUMBER, /* also true (1) and false (0) */
    RESP_NULL,   /* of any form */
    RESP_LIST,   /* array or set */
    RESP_MAP,
    RESP_PUSH,      /* not an answer to anything */
    RESP_ATTRIBUTE, /* beside the value that follows it */
};

/* The beginning of a value. Of a list, a map (twice its pairs), a push and an attribute, `count`
 * items follow. */
struct resp_item {
    enum resp_kind kind;
    const char *text; /* into the message; not ended by NUL */
    size_t length;
    int64_t number;
    size_t count;
};

enum resp_result { RESP_WHOLE, RESP_MORE, RESP_BROKEN };

/* Finds the ends of messages; all 0 but for the limits at first. */
struct resp {
    size_t bulk_max;  /* bytes of one text */
    size_t items_max; /* of one message, all depths together */
    /* how far the message is known */
    size_t at, items;
    unsigned depth;
    size_t left[RESP_DEPTH_MAX];
    const char *wrong; /* after RESP_BROKEN: what */
};

/* The bytes begin with the message, as before, perhaps with more behind it. */
enum resp_result resp_feed(struct resp *resp, const char *bytes, size_t length, size_t *out_length);

/* Walks through a message that is whole. */
struct resp_walk {
    const char *bytes;
    size_t length, at;
};

/* False at the end. */
bool resp_next(struct resp_walk *walk, struct resp_item *out);
/* Past the value that this item began, whatever is inside. */
void resp_skip(struct resp_walk *walk, const struct resp_item *item);

/* Is it exactly this text? Does it, an error too, begin so? */
bool resp_is(const struct resp_item *item, const char *text);
bool resp_begins(const struct resp_item *item, const char *text);

/* "$5\r\n" and the like: what a text ('$'), a list ('*') or a number (':') begins with. Returns its
 * length. A text's bytes follow, and another line's end. */
size_t resp_head(char kind, uint64_t number, char *out);

#endif
