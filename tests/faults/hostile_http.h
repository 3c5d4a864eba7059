/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP server with JSON replies that turns hostile at its nth reply: shared by the suites of
 * Kubernetes and GitHub, which have a good server each. hostile_http_table.c has the variants that
 * need no knowledge of the objects.
 */
#ifndef LEASEHOLD_TESTS_HOSTILE_HTTP_H
#define LEASEHOLD_TESTS_HOSTILE_HTTP_H

#include "hostile.h"

#include <jansson.h>

struct api_answer {
    int status;
    json_t *json;      /* NULL: no body */
    char watched[64];  /* a watch of this collection begins; otherwise empty */
    char headers[160]; /* more header lines */
};

enum api_action {
    API_STATUS,   /* that status; with the text as the message, or the body as it is. `more`: more
                   * header lines */
    API_BODY,     /* the text as the body */
    API_SET,      /* in each object: the member at the path `text` becomes the JSON `more` */
    API_REMOVE,   /* in each object: no member at the path `text` */
    API_ROOT,     /* in the reply itself: the member at `text` becomes `more` */
    API_HEADER,   /* more header lines; $S is the address of the server */
    API_DATE,     /* another Date; NULL: none */
    API_RAW,      /* the text as the whole reply */
    API_LENGTH,   /* Content-Length is off by `number` */
    API_CHUNKED,  /* the body in chunks, with the text as the end of each */
    API_CUT,      /* the first `number` bytes; below 0: all but that many */
    API_DRIP,     /* byte by byte */
    API_ENDLESS,  /* `text` instead of the body, then `more` forever */
    API_LONG,     /* a JSON string of `number` bytes as the message */
    API_NEST,     /* `text` repeated `number` times */
    API_REPLAY,   /* the previous body again */
    API_ITEMS,    /* each item of a list, or an event, `number` times */
    API_PAGES,    /* Kubernetes: the same, and the list continues at an unknown position */
    API_EVENT,    /* Kubernetes: before an event: this line, `number` times */
    API_LINE,     /* GitHub: the line `text` of each message goes on with `more`; NULL: no line */
    API_RECORD,   /* GitHub: `text` as the record in each message, `number` times; 0: once */
    API_DISTINCT, /* GitHub: each item of a list, `number` times with a name and number of its own
                   */
};

/* `text`, with `more` */
#define VARIANT(title, what, words, others)                                  \
    {                                                                        \
        .name = (title), .action = (what), .text = (words), .more = (others) \
    }
#define STATUS(title, code, words)                                               \
    {                                                                            \
        .name = (title), .action = API_STATUS, .number = (code), .text = (words) \
    }
#define BODY(title, words)          VARIANT(title, API_BODY, words, NULL)
#define SET(title, path, json)      VARIANT(title, API_SET, path, json)
#define REMOVE(title, path)         VARIANT(title, API_REMOVE, path, NULL)
#define ROOT(title, path, json)     VARIANT(title, API_ROOT, path, json)
#define HEADER(title, lines)        VARIANT(title, API_HEADER, lines, NULL)
#define DATE(title, words)          VARIANT(title, API_DATE, words, NULL)
#define CHUNKS(title, end, last)    VARIANT(title, API_CHUNKED, end, last)
#define ENDLESS(title, first, rest) VARIANT(title, API_ENDLESS, first, rest)
#define RAW(title, words, how)                                               \
    {                                                                        \
        .name = (title), .action = API_RAW, .text = (words), .ending = (how) \
    }
#define LENGTH(title, off, how)                                                 \
    {                                                                           \
        .name = (title), .action = API_LENGTH, .number = (off), .ending = (how) \
    }
#define CUT(title, count, how)                                                 \
    {                                                                          \
        .name = (title), .action = API_CUT, .number = (count), .ending = (how) \
    }

/* The part that differs between APIs. */
struct http_callbacks {
    /* `head` is the request up to its empty line. */
    void (*serve)(struct conn *conn, const char *head, const char *method, const char *target,
                  const json_t *body);
    /* Changes the JSON of a reply or an event, which is its own copy. */
    void (*change)(struct api_answer *reply, const struct variant *variant);
    /* False if the variant would change nothing: then the next reply is the hostile one. May be
     * NULL. */
    bool (*applies)(const struct api_answer *reply, const struct variant *variant);
};

void http_init(struct wire *wire, const struct http_callbacks *callbacks);
void http_done(void);
/* The variants of all APIs, then these; allocated once. */
const struct variant *http_variants_with(const struct variant *own, size_t own_count,
                                         size_t *out_count);
extern const struct variant http_variants[];
extern const size_t http_variant_count;

/* Callbacks of the suite. */
void http_arm(const struct variant *variant, unsigned nth, bool always);
unsigned http_replies(bool *out_hit);

/* Sends the reply, or what the variant makes of it, and frees its JSON. `out_sent` is a copy of
 * what is sent at most, and may be NULL. */
void http_send(struct conn *conn, struct api_answer *reply, struct bytes *out_sent);

/* ---- parts, for events of a watch ---- */

/* Counts a reply. The variant, if this one is hostile; otherwise NULL. */
const struct variant *http_next(const struct api_answer *reply);
void http_change(struct api_answer *reply, const struct variant *variant);
/* The body that replaces a good one; false: unchanged. */
bool http_change_body(const struct variant *variant, struct bytes *out);
void http_add_chunk(struct bytes *out, const char *bytes, size_t length, const char *more);
/* Cuts, drips and ends the output, sends it and frees it. */
void http_send_out(struct conn *conn, const struct variant *variant, struct bytes *out);
void http_repeat(struct bytes *out, const char *text, int64_t count);
void http_dump(const json_t *json, struct bytes *out);
/* Sets the member at "a.b.c" to that JSON; NULL: removes it. */
void http_set_member(json_t *object, const char *path, const char *value);
/* Appends copies of the items until there are N more. */
void http_add_items(json_t *items, size_t more);

#endif
