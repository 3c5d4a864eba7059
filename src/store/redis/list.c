/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists: SCAN finds the names of records, page by page, and each is looked at like any other. SCAN
 * may say a name twice, and says nothing certain of what comes or goes meanwhile; whatever is there
 * from beginning to end is told, once. A server whose SCAN never ends is told as trouble.
 */
#include "store/redis/redis_inside.h"

#include "io/host.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAGE = 500,
    PAGE_MOST = 16000, /* while nothing is found: other programs' keys are passed quickly */
    KEY_COSTS = 96,    /* a key in the tree, beside its bytes */
    TOLD_BYTES_MAX = 32 * 1024 * 1024,
};

struct listing {
    struct listing *next;
    struct redis *redis;
    struct job *job;   /* ours until the last answer; its call is the SCAN on its way */
    void *told;        /* a tree of keys … */
    size_t told_bytes; /* … and how much memory it takes, about */
    int page;
    int64_t found_ms;  /* when the last new key came */
    struct node *node; /* whose names are being read */
    size_t looks;
    bool scanning, ended;
    bool waits; /* until it is known who serves */
    char cursor[24];
    char prefix[KEY_MAX + 1];
};

static int compare(const void *one, const void *other)
{
    return strcmp(one, other);
}

static void free_listing(struct listing *listing)
{
    tdestroy(listing->told, free);
    free(listing);
}

static void forget(struct listing *listing)
{
    struct listing **at = &listing->redis->listings;
    while (*at != listing)
        at = &(*at)->next;
    *at = listing->next;
    free_listing(listing);
}

/* The last answer; what is still on its way is waited for, in silence. */
static void end(struct listing *listing, const struct link_error *error)
{
    if (!listing->ended) {
        struct store_answer answer = {.result = error != NULL ? error->result : ANSWER_OK,
                                      .now_ms = TIME_UNKNOWN,
                                      .why = error != NULL ? error->why : NULL};
        listing->ended = true;
        listing->job->done(listing->job->caller, &answer);
    }
    if (listing->looks == 0 && !listing->scanning) {
        redis_forget(listing->job);
        forget(listing);
    }
}

static void end_short(struct listing *listing)
{
    end(listing, &(struct link_error){.result = ANSWER_TROUBLE, .why = "memory is short"});
}

static void scan(struct listing *listing);

static struct node *next_server(struct node *node)
{
    while (node != NULL && !node->serves)
        node = node->next;
    return node;
}

static void go_on(struct listing *listing)
{
    if (listing->looks > 0 || listing->scanning)
        return;
    if (strcmp(listing->cursor, "0") == 0 && !listing->ended)
        listing->node = next_server(listing->node->next);
    if (listing->ended || listing->node == NULL)
        end(listing, NULL);
    else
        scan(listing);
}

static void on_look(void *caller, const char *key, const struct seen *seen,
                    const struct link_error *error)
{
    struct listing *listing = caller;
    struct store_answer answer;
    listing->looks--;
    if (error != NULL && !error->of_record) {
        end(listing, error);
        return;
    }
    look_answer(listing->redis, key, seen, error, &answer);
    answer.more = true;
    answer.key = key;
    if ((answer.present || error != NULL) && !listing->ended)
        listing->job->done(listing->job->caller, &answer);
    go_on(listing);
}

/* True when it was not told yet. */
static bool is_new(struct listing *listing, const char *key)
{
    char *copy = strdup(key);
    char **found = copy != NULL ? tsearch(copy, &listing->told, compare) : NULL;
    if (found == NULL || *found != copy)
        free(copy);
    if (found != NULL && *found != copy)
        return false;
    listing->told_bytes += strlen(key) + KEY_COSTS;
    listing->found_ms = host_boot_ms();
    return true;
}

/* NULL while the next page may be asked for. */
static const char *endless(const struct listing *listing)
{
    if (listing->told_bytes > TOLD_BYTES_MAX)
        return "Redis has more keys than can be listed; list them by prefixes";
    if (host_boot_ms() - listing->found_ms > listing->redis->patience_ms)
        return "SCAN goes on and finds no more records; give leasehold a database of its own";
    return NULL;
}

static bool look_at_page(struct listing *listing, struct resp_walk *walk, size_t count)
{
    char key[KEY_MAX + 1];
    struct resp_item name;
    for (size_t i = 0; i < count && resp_next(walk, &name); i++) {
        bool fits =
            name.kind == RESP_TEXT &&
            redis_key_of_record(&listing->redis->url.templates, name.text, name.length, key) &&
            strncmp(key, listing->prefix, strlen(listing->prefix)) == 0;
        if (!fits || !is_new(listing, key))
            continue;
        if (!redis_look(listing->redis, key, on_look, listing))
            return false;
        listing->looks++;
    }
    return true;
}

static void on_page(struct link_call *call, const struct resp_item *item, struct resp_walk *walk,
                    const struct link_error *error)
{
    struct job *job = (struct job *)call;
    struct listing *listing = job->listing;
    struct resp_item cursor, names;
    listing->scanning = false;
    if (error != NULL) {
        end(listing, error);
        return;
    }
    if (item->kind == RESP_ERROR) {
        struct link_error refusal = link_explain(job->link, item);
        end(listing, &refusal);
        return;
    }
    if (item->kind != RESP_LIST || item->count != 2 || !resp_next(walk, &cursor) ||
        cursor.kind != RESP_TEXT || cursor.length >= sizeof listing->cursor ||
        !resp_next(walk, &names) || names.kind != RESP_LIST) {
        end(listing, &(struct link_error){.result = ANSWER_TROUBLE,
                                          .why = "Redis replied to SCAN what it never does"});
        return;
    }
    memcpy(listing->cursor, cursor.text, cursor.length);
    listing->cursor[cursor.length] = '\0';
    bool looks = look_at_page(listing, walk, names.count);
    const char *why = endless(listing);
    bool found = listing->looks > 0;
    listing->page = found ? PAGE : listing->page < PAGE_MOST ? 2 * listing->page : PAGE_MOST;
    redis_extend(job); /* what has to be looked at comes before it */
    if (!looks)
        end_short(listing);
    else if (why != NULL && strcmp(listing->cursor, "0") != 0)
        end(listing, &(struct link_error){.result = ANSWER_TROUBLE, .why = why});
    else
        go_on(listing);
}

static void scan(struct listing *listing)
{
    listing->scanning = true;
    redis_extend(listing->job);
    node_queue(listing->node, listing->job);
}

void list_send(struct job *job, struct link *link)
{
    struct listing *listing = job->listing;
    char words[REDIS_PATTERN_MAX + 1];
    struct text pattern;
    text_init(&pattern, words, sizeof words);
    redis_pattern_of(&job->redis->url.templates, listing->prefix, &pattern);
    job->link = link;
    link_begin(link, &job->call, 6);
    link_say(link, "SCAN");
    link_say(link, listing->cursor);
    link_say(link, "MATCH");
    link_word(link, words, pattern.length);
    link_say(link, "COUNT");
    link_number(link, listing->page);
}

void list_fail(struct job *job, const struct link_error *error)
{
    job->listing->scanning = false;
    end(job->listing, error);
}

static void begin(struct listing *listing)
{
    struct node *first = next_server(&listing->redis->main);
    listing->waits = false;
    listing->node = first != NULL ? first : &listing->redis->main;
    scan(listing);
}

void list_mapped(struct redis *redis, const struct link_error *error)
{
    struct listing *next;
    for (struct listing *listing = redis->listings; listing != NULL; listing = next) {
        next = listing->next;
        if (listing->waits && error != NULL)
            end(listing, error);
        else if (listing->waits)
            begin(listing);
    }
}

void list_begin(struct redis *redis, struct job *job)
{
    struct listing *listing = calloc(1, sizeof *listing);
    if (listing == NULL) {
        struct store_answer answer = {
            .result = ANSWER_TROUBLE, .now_ms = TIME_UNKNOWN, .why = "memory is short"};
        job->done(job->caller, &answer);
        redis_forget(job);
        return;
    }
    job->call.reply = on_page;
    job->listing = listing;
    listing->redis = redis;
    listing->job = job;
    listing->page = PAGE;
    listing->found_ms = host_boot_ms();
    text_copy(listing->cursor, sizeof listing->cursor, "0");
    text_copy(listing->prefix, sizeof listing->prefix, job->request.key);
    listing->next = redis->listings;
    redis->listings = listing;
    /* RESP2 does not say whether this is a cluster. */
    const struct link *link = &redis->main.link;
    listing->waits = !redis->mapped && (link->clustered || link->protocol == 2);
    if (listing->waits)
        nodes_map(redis);
    else
        begin(listing);
}

void list_done(struct redis *redis)
{
    struct listing *next;
    for (struct listing *listing = redis->listings; listing != NULL; listing = next) {
        next = listing->next;
        free_listing(listing);
    }
}
