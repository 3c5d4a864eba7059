/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The epoch of a Redis store: the upper bits of every revision counter (stamp_order()), one counter
 * per hash slot. The script draws a revision and writes with it in one step, so no client can use
 * an old epoch. INCRBY raises a counter without a race with those that use it, and creates one in a
 * slot without. Transactions (?scripts=no) draw their revision first: they watch a mark that a
 * raise writes behind the counter. Must not touch records.
 */
#include "store/redis/redis_internal.h"

#include "process/host.h"
#include "store/admin.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    IN_FLIGHT = 512,
    PASSES_MAX = 3, /* until all counters have the same epoch, whatever others do meanwhile */
    NUMBER_MAX = 24,
    TAG_SIZE = 5,
};

enum slot_step { SLOT_TIME, SLOT_READ, SLOT_RAISE, SLOT_LOWER, SLOT_MARK };

struct epoch_walk;

struct slot_epoch {
    struct slot_call call; /* first */
    struct epoch_walk *walk;
    enum slot_step step;
    uint64_t order; /* of the counter; 0: there is none */
    int64_t change; /* added to it by the raise */
};

/* One pass over all slots. */
struct epoch_walk {
    struct redis *redis;
    uint16_t least; /* 0: only reads */
    unsigned next;  /* the slot to begin next */
    size_t in_flight;
    bool failed;
    enum reply_status result;
    struct text *why;
    int64_t now_ms;
    struct slot_epoch slots[REDIS_SLOTS];
};

void redis_epoch_mark(unsigned slot, char out[EPOCH_MARK_MAX])
{
    char tag[TAG_SIZE];
    redis_tag_of(slot, tag);
    (void)snprintf(out, EPOCH_MARK_MAX, "leasehold:epoch:{%s}", tag);
}

static const char raised_by_others[] = "another process raises the epoch, too; try again";

static uint16_t epoch_of(uint64_t order)
{
    return stamp_of_order(order, /* time_ms= */ 0).epoch;
}

static void walk_fail(struct epoch_walk *walk, enum reply_status result, const char *why)
{
    if (!walk->failed)
        text_add(walk->why, why);
    walk->result = walk->failed ? walk->result : result;
    walk->failed = true;
}

/* ---- commands ---- */

static void slot_send(struct slot_call *call, struct redis_conn *conn, struct conn_call *reply)
{
    const struct slot_epoch *slot = (const struct slot_epoch *)call;
    static const struct {
        const char *command;
        size_t args;
    } commands[] = {[SLOT_TIME] = {"TIME", 1},
                    [SLOT_READ] = {"GET", 2},
                    [SLOT_RAISE] = {"INCRBY", 3},
                    [SLOT_LOWER] = {"INCRBY", 3},
                    [SLOT_MARK] = {"SET", 5}};
    char tag[TAG_SIZE], name[EPOCH_MARK_MAX];
    redis_tag_of(call->slot, tag);
    (void)snprintf(name, sizeof name, "leasehold:{%s}", tag);
    if (slot->step == SLOT_MARK)
        redis_epoch_mark(call->slot, name);
    conn_begin(conn, reply, commands[slot->step].args);
    conn_arg(conn, commands[slot->step].command);
    if (slot->step != SLOT_TIME)
        conn_arg(conn, name);
    if (slot->step == SLOT_RAISE || slot->step == SLOT_LOWER) {
        conn_arg_int(conn, slot->step == SLOT_RAISE ? slot->change : -slot->change);
    } else if (slot->step == SLOT_MARK) { /* only its change counts */
        conn_arg(conn, "raised");
        conn_arg(conn, "PX");
        conn_arg(conn, "1000");
    }
}

/* Digits only; a counter that another program wrote may be anything. */
static bool epoch_read_number(const struct resp_item *item, uint64_t *out)
{
    char digits[NUMBER_MAX], *end = NULL;
    if (item->kind == RESP_NUMBER) {
        *out = (uint64_t)item->number;
        return item->number > 0;
    }
    if (item->kind != RESP_TEXT || item->length == 0 || item->length >= sizeof digits)
        return false;
    (void)snprintf(digits, sizeof digits, "%.*s", (int)item->length, item->text);
    *out = strtoull(digits, &end, 10);
    return digits[0] >= '0' && digits[0] <= '9' && *end == '\0';
}

static bool read_clock(struct resp_walk *walk, const struct resp_item *item, int64_t *out_ms)
{
    struct resp_item seconds, micros;
    uint64_t whole, part;
    if (item->kind != RESP_LIST || item->count != 2 || !resp_next(walk, &seconds) ||
        !resp_next(walk, &micros) || !epoch_read_number(&seconds, &whole) ||
        !epoch_read_number(&micros, &part) || whole > TIME_MAX_MS / 1000)
        return false;
    *out_ms = (int64_t)(whole * 1000 + part / 1000 % 1000);
    return true;
}

/* ---- the walk ---- */

static void slot_begin(struct slot_epoch *slot, enum slot_step step)
{
    struct epoch_walk *walk = slot->walk;
    slot->step = step;
    if (!redis_call_slot(walk->redis, &slot->call)) {
        walk_fail(walk, REPLY_TROUBLE, "out of memory");
        walk->in_flight--;
    }
}

static void walk_continue(struct epoch_walk *walk)
{
    while (!walk->failed && walk->in_flight < IN_FLIGHT && walk->next < REDIS_SLOTS) {
        walk->in_flight++;
        slot_begin(&walk->slots[walk->next++], SLOT_READ);
    }
}

static void slot_done(struct slot_epoch *slot)
{
    slot->walk->in_flight--;
    walk_continue(slot->walk);
}

/* A new counter starts at the server's time, as the script's do. */
static void slot_raise(struct slot_epoch *slot)
{
    int64_t epochs = slot->walk->least - epoch_of(slot->order);
    slot->change = epochs * ((int64_t)1 << 45) + (slot->order == 0 ? slot->walk->now_ms : 0);
    slot_begin(slot, SLOT_RAISE);
}

/* The counter has been read, or was raised. */
static void slot_judge(struct slot_epoch *slot)
{
    struct epoch_walk *walk = slot->walk;
    bool raised = slot->step == SLOT_RAISE;
    if (slot->order > ORDER_MAX)
        walk_fail(walk, REPLY_TROUBLE,
                  raised ? raised_by_others
                         : "a revision counter in Redis is out of bounds; delete it if another "
                           "program wrote it");
    if (slot->order > ORDER_MAX && raised)
        slot_begin(slot, SLOT_LOWER);
    else if (walk->failed || walk->least == 0)
        slot_done(slot);
    else if (epoch_of(slot->order) < walk->least)
        slot_raise(slot);
    else
        slot_begin(slot, SLOT_MARK); /* an interrupted raise may have left it out */
}

static void slot_end(struct slot_call *call, const struct resp_item *item, struct resp_walk *reply,
                     const struct conn_error *error)
{
    struct slot_epoch *slot = (struct slot_epoch *)call;
    struct epoch_walk *walk = slot->walk;
    if (error != NULL) {
        walk_fail(walk, error->result, error->why);
        slot_done(slot);
        return;
    }
    bool nothing = item->kind == RESP_NULL, fine = true;
    if (slot->step == SLOT_TIME) {
        fine = read_clock(reply, item, &walk->now_ms);
    } else if (slot->step == SLOT_READ || slot->step == SLOT_RAISE) {
        slot->order = 0;
        fine = nothing || epoch_read_number(item, &slot->order);
    }
    if (!fine)
        walk_fail(
            walk, REPLY_TROUBLE,
            slot->step == SLOT_TIME
                ? "Redis replied to TIME with something that is not a time"
                : "a revision counter (leasehold:{...}) is not a number; delete it if another "
                  "program wrote it");
    if (fine && (slot->step == SLOT_READ || slot->step == SLOT_RAISE))
        slot_judge(slot);
    else
        slot_done(slot);
}

/* Runs one pass; false if it failed. The server's clock is read first. */
static bool walk_run(struct epoch_walk *walk)
{
    struct redis *redis = walk->redis;
    for (unsigned i = 0; i < REDIS_SLOTS; i++)
        walk->slots[i] = (struct slot_epoch){
            .call = {.slot = i, .send = slot_send, .end = slot_end}, .walk = walk};
    walk->next = 0;
    walk->in_flight = 1;
    slot_begin(&walk->slots[0], SLOT_TIME);
    struct pollfd news = {.fd = redis_driver.fd(redis), .events = POLLIN};
    for (redis_driver.step(redis); walk->in_flight > 0; redis_driver.step(redis))
        (void)poll(&news, 1, /* ms= */ 1000);
    return !walk->failed;
}

/* The highest epoch of all counters, the sum of their revisions, which grows with every write, and
 * how many are of an older epoch. */
static void walk_sum_up(const struct epoch_walk *walk, struct epoch_state *out)
{
    out->epoch = 0;
    out->revision = 0;
    out->behind = 0;
    for (unsigned i = 0; i < REDIS_SLOTS; i++) {
        uint64_t order = walk->slots[i].order;
        out->epoch = epoch_of(order) > out->epoch ? epoch_of(order) : out->epoch;
        out->revision += order & REVISION_MAX;
    }
    for (unsigned i = 0; i < REDIS_SLOTS; i++)
        out->behind += epoch_of(walk->slots[i].order) < out->epoch ? 1 : 0;
    out->now_ms = walk->now_ms;
}

static enum reply_status walk_all(struct epoch_walk *walk, struct epoch_state *out)
{
    for (unsigned pass = 0; pass < PASSES_MAX; pass++) {
        if (!walk_run(walk))
            return walk->result;
        walk_sum_up(walk, out);
        if (walk->least == 0 || out->behind == 0)
            return REPLY_OK;
        walk->least = out->epoch; /* another raise runs, or was interrupted */
    }
    text_add(walk->why, raised_by_others);
    return REPLY_TROUBLE;
}

static int64_t no_clock(void *owner)
{
    (void)owner;
    return 0;
}

enum reply_status redis_epoch(const char *url, const struct epoch_options *options,
                              struct epoch_state *out, struct text *why)
{
    struct store_callbacks callbacks = {.clock = {.now_ms = no_clock},
                                        .session = (uint64_t)host_boot_ms(),
                                        .timeout_ms = options->timeout_ms};
    struct redis *redis = malloc(sizeof *redis);
    struct epoch_walk *walk = calloc(1, sizeof *walk);
    struct epoch_state state = {.kept = "the revision counters leasehold:{…}, one per hash slot"};
    enum reply_status result = REPLY_TROUBLE;
    bool opened = false;
    if (redis == NULL || walk == NULL)
        text_add(why, "out of memory");
    else
        opened = redis_driver.open(redis, url, &callbacks, why);
    if (opened) {
        walk->redis = redis;
        walk->least = options->least;
        walk->why = why;
        result = walk_all(walk, &state);
        redis_driver.close(redis);
    }
    if (result == REPLY_OK)
        *out = state;
    free(walk);
    free(redis);
    return result;
}
