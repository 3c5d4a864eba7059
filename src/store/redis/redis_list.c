/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists: SCAN finds the names of records, page by page, then the plain names, which contain sole
 * grants; each key is queried like any other. SCAN may return a name twice, and guarantees nothing
 * for names that come or go meanwhile; a key is reported at most once, and surely if one of its
 * names exists throughout. A SCAN that never ends must end as REPLY_TROUBLE.
 */
#include "store/redis/redis_internal.h"

#include "process/host.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAGE = 500,
    PAGE_MOST = 16000, /* while no record is found: skips other programs' keys quickly */
    KEY_COSTS = 96,    /* memory per key in the tree, besides its bytes */
    DELIVERED_BYTES_MAX = 32 * 1024 * 1024,
};

struct listing {
    struct list_node in_all;
    struct redis *redis;
    struct redis_op *op;    /* ours until the last reply; its call is the SCAN in flight */
    void *delivered;        /* a tree of keys … */
    size_t delivered_bytes; /* … and its approximate memory */
    int page;
    int64_t found_ms;  /* when the last key was reported */
    unsigned pattern;  /* the number of the pattern … */
    struct node *node; /* … and the node that are being scanned */
    size_t queries;
    bool scanning, ended;
    bool waits; /* until the cluster map is loaded */
    char cursor[24];
    char prefix[KEY_MAX + 1];
};

static int compare_keys(const void *one, const void *other)
{
    return strcmp(one, other);
}

static void listing_free(struct listing *listing)
{
    tdestroy(listing->delivered, free);
    free(listing);
}

/* Delivers the last reply; replies to queries still in flight are dropped. */
static void listing_end(struct listing *listing, const struct conn_error *error)
{
    if (!listing->ended) {
        struct store_reply reply = {.result = REPLY_OK, .now_ms = TIME_UNKNOWN};
        if (error != NULL)
            reply = redis_error_reply(error);
        listing->ended = true;
        listing->op->base.done(listing->op->base.caller, &reply);
    }
    if (listing->queries == 0 && !listing->scanning) {
        pending_drop(&listing->op->base);
        list_remove(&listing->redis->listings, &listing->in_all);
        listing_free(listing);
    }
}

static void listing_scan(struct listing *listing);

static struct node *next_master(struct node *node)
{
    while (node != NULL && !node->serves)
        node = node->next;
    return node;
}

/* Turns to the next pattern, or else to the next node; false if all were scanned. */
static bool listing_turn(struct listing *listing)
{
    char bytes[REDIS_PATTERN_MAX + 1];
    struct text text;
    text_init(&text, bytes, sizeof bytes);
    if (redis_pattern_of(&listing->redis->url.templates, listing->prefix, ++listing->pattern,
                         &text))
        return true;
    listing->pattern = 0;
    listing->node = next_master(listing->node->next);
    return listing->node != NULL;
}

static void listing_continue(struct listing *listing)
{
    if (listing->queries > 0 || listing->scanning)
        return;
    bool more = !listing->ended && (strcmp(listing->cursor, "0") != 0 || listing_turn(listing));
    if (more)
        listing_scan(listing);
    else
        listing_end(listing, NULL);
}

/* The limits apply to reported keys. Others are forgotten, so that they take no memory. */
static void listing_settle_key(struct listing *listing, const char *key, bool reported)
{
    if (reported) {
        listing->delivered_bytes += strlen(key) + KEY_COSTS;
        listing->found_ms = host_boot_ms();
        return;
    }
    char **found = tfind(key, &listing->delivered, compare_keys);
    char *copy = found != NULL ? *found : NULL;
    if (copy != NULL)
        (void)tdelete(key, &listing->delivered, compare_keys);
    free(copy);
}

static void on_list_query(void *caller, const char *key, const struct snapshot *snapshot,
                          const struct conn_error *error)
{
    struct listing *listing = caller;
    struct store_reply reply;
    bool ours = error != NULL || snapshot->length > 0; /* else at most a foreign lock */
    listing->queries--;
    if (error != NULL && !error->of_record) {
        listing_end(listing, error);
        return;
    }
    listing_settle_key(listing, key, ours);
    if (!listing->ended && ours) {
        redis_query_reply(listing->redis, key, snapshot, error, &reply);
        reply.more = true;
        reply.key = key;
        pending_reply(&listing->op->base, &reply);
    }
    listing_continue(listing);
}

/* True if the key was not reported yet and is not being queried. */
static bool listing_add_key(struct listing *listing, const char *key)
{
    char *copy = strdup(key);
    char **found = copy != NULL ? tsearch(copy, &listing->delivered, compare_keys) : NULL;
    bool added = found != NULL && *found == copy;
    if (!added)
        free(copy);
    return added || found == NULL;
}

/* Returns NULL while the next page may be requested. */
static const char *listing_check_limits(const struct listing *listing)
{
    if (listing->delivered_bytes > DELIVERED_BYTES_MAX)
        return "Redis has more keys than can be listed; list them by prefixes";
    if (host_boot_ms() - listing->found_ms > listing->redis->timeout_ms)
        return "SCAN continues without finding records; use a separate database for leasehold";
    return NULL;
}

static bool listing_query_page(struct listing *listing, struct resp_walk *walk, size_t count)
{
    char key[KEY_MAX + 1];
    struct resp_item name;
    for (size_t i = 0; i < count && resp_next(walk, &name); i++) {
        bool fits =
            name.kind == RESP_TEXT &&
            redis_key_of_name(&listing->redis->url.templates, name.text, name.length, key) &&
            strncmp(key, listing->prefix, strlen(listing->prefix)) == 0;
        if (!fits || !listing_add_key(listing, key))
            continue;
        if (!redis_query(listing->redis, key, on_list_query, listing))
            return false;
        listing->queries++;
    }
    return true;
}

static void on_scan_reply(struct conn_call *call, const struct resp_item *item,
                          struct resp_walk *walk, const struct conn_error *error)
{
    struct redis_op *op = redis_op_of(call);
    struct listing *listing = op->listing;
    struct resp_item cursor, names;
    listing->scanning = false;
    if (error != NULL) {
        listing_end(listing, error);
        return;
    }
    if (item->kind == RESP_ERROR) {
        struct conn_error refusal = conn_explain(op->conn, item);
        listing_end(listing, &refusal);
        return;
    }
    if (item->kind != RESP_LIST || item->count != 2 || !resp_next(walk, &cursor) ||
        cursor.kind != RESP_TEXT || cursor.length >= sizeof listing->cursor ||
        !resp_next(walk, &names) || names.kind != RESP_LIST) {
        listing_end(listing, &(struct conn_error){.result = REPLY_TROUBLE,
                                                  .why = "Redis sent an unexpected reply to SCAN"});
        return;
    }
    memcpy(listing->cursor, cursor.text, cursor.length);
    listing->cursor[cursor.length] = '\0';
    bool queries = listing_query_page(listing, walk, names.count);
    const char *why = listing_check_limits(listing);
    bool found = listing->queries > 0;
    listing->page = found ? PAGE : listing->page < PAGE_MOST ? 2 * listing->page : PAGE_MOST;
    pending_extend(&op->base); /* the queries are sent before the next page */
    if (!queries)
        listing_end(listing, &conn_no_memory);
    else if (why != NULL && strcmp(listing->cursor, "0") != 0)
        listing_end(listing, &(struct conn_error){.result = REPLY_TROUBLE, .why = why});
    else
        listing_continue(listing);
}

static void listing_scan(struct listing *listing)
{
    listing->scanning = true;
    pending_extend(&listing->op->base);
    node_queue(listing->node, listing->op);
}

void list_send(struct redis_op *op, struct redis_conn *conn)
{
    struct listing *listing = op->listing;
    char bytes[REDIS_PATTERN_MAX + 1];
    struct text pattern;
    text_init(&pattern, bytes, sizeof bytes);
    (void)redis_pattern_of(&op->redis->url.templates, listing->prefix, listing->pattern, &pattern);
    op->conn = conn;
    conn_begin(conn, &op->call, 6);
    conn_arg(conn, "SCAN");
    conn_arg(conn, listing->cursor);
    conn_arg(conn, "MATCH");
    conn_arg_bytes(conn, bytes, pattern.length);
    conn_arg(conn, "COUNT");
    conn_arg_int(conn, listing->page);
}

void list_fail(struct redis_op *op, const struct conn_error *error)
{
    op->listing->scanning = false;
    listing_end(op->listing, error);
}

static void listing_begin(struct listing *listing)
{
    struct node *first = next_master(&listing->redis->main);
    listing->waits = false;
    listing->node = first != NULL ? first : &listing->redis->main;
    listing_scan(listing);
}

void list_on_map(struct redis *redis, const struct conn_error *error)
{
    for (struct list_node *node = redis->listings.first, *next; node != NULL; node = next) {
        struct listing *listing = LIST_ENTRY(node, struct listing, in_all);
        next = node->next;
        if (listing->waits && error != NULL)
            listing_end(listing, error);
        else if (listing->waits)
            listing_begin(listing);
    }
}

void list_begin(struct redis *redis, struct redis_op *op)
{
    struct listing *listing = calloc(1, sizeof *listing);
    if (listing == NULL) {
        redis_op_end(op, NULL, &conn_no_memory);
        return;
    }
    op->call.reply = on_scan_reply;
    op->listing = listing;
    listing->redis = redis;
    listing->op = op;
    listing->page = PAGE;
    listing->found_ms = host_boot_ms();
    text_copy(listing->cursor, sizeof listing->cursor, "0");
    text_copy(listing->prefix, sizeof listing->prefix, op->base.request.key);
    list_prepend(&redis->listings, &listing->in_all);
    /* In RESP2 the server does not report whether it is a cluster. */
    const struct redis_conn *conn = &redis->main.conn;
    listing->waits = !redis->mapped && (conn->clustered || conn->protocol == 2);
    if (listing->waits)
        nodes_map(redis);
    else
        listing_begin(listing);
}

void list_done(struct redis *redis)
{
    for (struct list_node *node; (node = list_pop(&redis->listings)) != NULL;)
        listing_free(LIST_ENTRY(node, struct listing, in_all));
}
