/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes replies of a RESP server into the caller's buffer, for RESP2 or RESP3. Pure. A value that
 * does not fit is left out as a whole and sets `overflow`; from then on nothing is written.
 */
#ifndef LEASEHOLD_WIRE_RESP_REPLY_H
#define LEASEHOLD_WIRE_RESP_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct resp_reply {
    char *bytes;
    size_t size, length;
    unsigned protocol; /* 2 or 3 */
    bool overflow;
};

void resp_reply_init(struct resp_reply *reply, char *bytes, size_t size, unsigned protocol);

/* The start of a value; its items follow. */
void resp_reply_map(struct resp_reply *reply, size_t pairs); /* RESP2: an array of twice as many */
void resp_reply_array(struct resp_reply *reply, size_t count);
void resp_reply_push(struct resp_reply *reply, size_t count); /* RESP2: an array */

/* Bulk strings. Short ones in line: of a literal the compiler makes a few stores. */
void resp_reply_long(struct resp_reply *reply, const char *bytes, size_t length);
static inline void resp_reply_bytes(struct resp_reply *reply, const char *bytes, size_t length)
{
    enum { DIGIT_MAX = 9, AROUND = sizeof "$9\r\n\r\n" - 1 };
    if (length > DIGIT_MAX || reply->overflow || length + AROUND > reply->size - reply->length) {
        resp_reply_long(reply, bytes, length);
        return;
    }
    char *at = reply->bytes + reply->length;
    at[0] = '$';
    at[1] = (char)('0' + length);
    at[2] = '\r';
    at[3] = '\n';
    if (length > 0) /* else they may be NULL */
        memcpy(at + 4, bytes, length);
    at[4 + length] = '\r';
    at[5 + length] = '\n';
    reply->length += length + AROUND;
}
static inline void resp_reply_text(struct resp_reply *reply, const char *text)
{
    resp_reply_bytes(reply, text, strlen(text));
}

void resp_reply_number(struct resp_reply *reply, int64_t number);
void resp_reply_bool(struct resp_reply *reply, bool value); /* RESP2: 1 or 0 */
void resp_reply_null(struct resp_reply *reply);

/* "+text" and "-CODE text". Control characters of the text, line ends among them, become spaces. */
void resp_reply_simple(struct resp_reply *reply, const char *text);
void resp_reply_error(struct resp_reply *reply, const char *code, const char *text);

/* Bytes that are RESP already. */
void resp_reply_raw(struct resp_reply *reply, const char *bytes, size_t length);

#endif
