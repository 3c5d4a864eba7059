/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of lists, histories and watches. Everything here runs in the client's loop, except
 * query_new().
 */
#ifndef LEASEHOLD_FACE_LIB_QUERY_INTERNAL_H
#define LEASEHOLD_FACE_LIB_QUERY_INTERNAL_H

#include "face/lib/lib_internal.h"

struct query {
    struct query *next;
    struct lh_client *client;
    enum store_verb verb;
    char key[KEY_MAX + 1];
    struct call *call; /* NULL: it has ended, or this is the watch */
    lh_view_fn *fn;    /* NULL once it has returned false */
    void *user;
    int64_t give_up_at_ms;
    bool confirmed; /* the watch is set up */
};

/* query.c */
/* NULL when out of memory. */
struct query *query_new(struct lh_client *client, enum store_verb verb, const char *key);
/* The store may call `done` before it returns. */
void query_send(struct query *query, store_done *done);
void query_unlink(const struct query *query);
/* The view of a record that the store returned; `source` must stay valid as long as the view. */
void query_read_reply(const struct query *query, const struct store_reply *reply, const char *key,
                      struct lh_view_source *source, struct lh_view *out);
/* Ends the call and sets it to NULL; nothing if it is NULL. */
void query_end_call(struct call **call, enum lh_outcome outcome, const char *key, const char *why);
enum lh_outcome query_outcome(enum reply_status reply);

/* lib_watch.c */
/* The watch of the store has ended: clears the cache, and reports the end to every watch. */
void watches_end(struct lh_client *client, enum lh_outcome outcome, const char *why);

#endif
