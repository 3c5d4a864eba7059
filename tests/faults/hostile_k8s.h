/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small Kubernetes API server that stores Leases, Pods and Events of one namespace
 * (hostile_api.c: strict and correct), and what a hostile one does to its nth reply or event (the
 * table is in hostile_k8s_table.c).
 */
#ifndef LEASEHOLD_TESTS_HOSTILE_K8S_H
#define LEASEHOLD_TESTS_HOSTILE_K8S_H

#include "hostile.h"

#include <jansson.h>

/* ---- the good server ---- */

struct api_answer {
    int status;
    json_t *json;
    char watched[64]; /* a watch of this collection begins; otherwise empty */
};

/* Called on every change; `object` is borrowed. */
typedef void api_changed(const char *collection, const char *type, const json_t *object);

void api_init(api_changed *changed);
/* `target` is path and query; the body is borrowed, and may be NULL. */
void api_answer(const char *method, const char *target, const json_t *body, struct api_answer *out);
/* Calls `each` for the objects of a collection. */
void api_each(const char *collection, api_changed *each);
/* All objects, a new reference; and back, by a copy. NULL: none. */
json_t *api_copy(void);
void api_set(const json_t *objects);

/* ---- the hostile one ---- */

enum k8s_action {
    API_STATUS,  /* that status; with the text as the message of a Status, or the body as it is */
    API_BODY,    /* the text as the body */
    API_SET,     /* in each object: the member at the path `text` becomes the JSON `more` */
    API_REMOVE,  /* in each object: no member at the path `text` */
    API_ROOT,    /* in the reply itself: the member at `text` becomes `more` */
    API_HEADER,  /* one more header line */
    API_DATE,    /* another Date; NULL: none */
    API_RAW,     /* the text as the whole reply */
    API_LENGTH,  /* Content-Length is off by `number` */
    API_CHUNKED, /* the body in chunks, with the text as the end of each */
    API_CUT,     /* the first `number` bytes; below 0: all but that many */
    API_DRIP,    /* byte by byte */
    API_ENDLESS, /* `text` instead of the body, then `more` forever */
    API_LONG,    /* a JSON string of `number` bytes as the message */
    API_NEST,    /* `text` repeated `number` times */
    API_REPLAY,  /* the previous body again */
    API_ITEMS,   /* each item of a list, or an event, `number` times */
    API_PAGES,   /* the same, and the list continues at an unknown position */
    API_EVENT,   /* before an event: this line, `number` times */
};

extern const struct variant k8s_variants[];
extern const size_t k8s_variant_count;

#endif
