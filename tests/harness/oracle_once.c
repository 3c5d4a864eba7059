/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle's part for ids and watermarks (rules 6 and 7 of docs/guarantees.md): an id that was
 * done is not new again before its window is over; no client gets the outcome of another's work as
 * its own, or that of another payload; and no watermark moves back or past an unhandled event. It
 * keeps its own state. A result that is the number of its writer must be stored as that.
 */
#include "world_internal.h"

#include <stdlib.h>
#include <string.h>

/* True if the id may be new again: its duration and the watermark that it waits for have passed. */
static bool window_is_over(const struct world *world, const struct key_truth *key)
{
    bool passed = key->until < 0 || world->watermark > key->until;
    return key->keep_ms == 0 || (world->now_ms >= key->done_ms + key->keep_ms && passed);
}

/* The grant that this write made, or NULL. */
static const struct grant *new_claim(const struct record *after, const struct change *change)
{
    for (size_t i = 0; i < after->grant_count; i++)
        if (stamp_order(&after->grants[i].granted) == change->revision)
            return &after->grants[i];
    return NULL;
}

/* A request without a payload leaves the stored one unchanged. */
static void note_payload(struct world *world, struct key_truth *key, const char *request)
{
    const char *own = world->acquisitions[oracle_number(world, request)].payload;
    const char *said = own[0] != '\0' ? own : world->after.once.payload;
    if (strcmp(key->payload, said) == 0)
        return;
    (void)snprintf(key->payload, sizeof key->payload, "%s", said);
    key->payload_ms = world->now_ms;
}

static void note_claim(struct world *world, struct key_truth *key, const struct grant *claim)
{
    const struct record *before = &world->before;
    bool was_taken = before->kind == KIND_ONCE && before->grant_count > 0;
    world->counts->claims++;
    world->counts->retaken +=
        was_taken && record_grant_by_request(&world->after, before->grants[0].request) == NULL;
    note_payload(world, key, claim->request);
}

static void check_deed(struct world *world, const struct change *change)
{
    const struct done *done = &world->after.once.done;
    const struct acquisition *writer = &world->acquisitions[change->number];
    uint32_t word = (uint32_t)strtoul(done->result, NULL, 10);
    if (done->token != 0 && record_grant_by_token(&world->before, done->token) == NULL)
        oracle_fail(world, change->writer, "rule 2", "done by a token that did not stand");
    if (word != writer->word)
        oracle_fail(world, change->writer, "rule 6", "another's word is remembered");
    world->acquisitions[word % NUMBERS_MAX].said = true;
}

static void check_id(struct world *world, const struct change *change, struct key_truth *key)
{
    const struct record *after = &world->after;
    const struct done *done = &after->once.done;
    const struct grant *claim = new_claim(after, change);
    bool is_done =
        after->cooling.length_ms > 0 && stamp_order(&after->cooling.since) == change->revision;
    if ((is_done || claim != NULL) && !window_is_over(world, key))
        oracle_fail(world, change->writer, "rule 6", "an id that was done is new again");
    if (claim != NULL)
        note_claim(world, key, claim);
    if (!is_done)
        return;
    world->counts->deeds++;
    world->acquisitions[oracle_number(world, done->request)].did = true;
    check_deed(world, change);
    note_payload(world, key, done->request);
    key->done_ms = world->now_ms;
    key->keep_ms = after->cooling.length_ms;
    key->until = done->until[0] != '\0' ? strtoll(done->until, NULL, 10) : -1;
}

static void check_watermark(struct world *world, const struct change *change)
{
    const struct record *before = &world->before;
    int64_t value = strtoll(world->after.watermark.value, NULL, 10);
    int64_t stood =
        before->kind == KIND_WATERMARK ? strtoll(before->watermark.value, NULL, 10) : -1;
    struct acquisition *mover = &world->acquisitions[change->number];
    if (change->verb == VERB_ADVANCE && mover->expected != stood)
        oracle_fail(world, change->writer, "rule 7", "moved from where it was not expected");
    mover->did = mover->did || change->verb == VERB_ADVANCE;
    if (value < world->watermark && change->verb != VERB_SET)
        oracle_fail(world, change->writer, "rule 7", "a watermark went back");
    world->watermark = value;
    world->counts->advances++;
    if (world->unhandled != NULL && world->unhandled(world, value))
        oracle_fail(world, change->writer, "rule 7", "an event before the watermark is unhandled");
}

void oracle_once_changed(struct world *world, const struct change *change, struct key_truth *key)
{
    if (change->verb == VERB_CLEAR)
        key->keep_ms = 0;
    if (change->revision != 0 && world->after.kind == KIND_ONCE)
        check_id(world, change, key);
    if (change->revision != 0 && world->after.kind == KIND_WATERMARK)
        check_watermark(world, change);
}

void oracle_once_told(struct world *world, const struct actor *actor)
{
    const struct request *request = &actor->options.request;
    bool finished = request->verb == VERB_ACQUIRE && request->kind == KIND_ONCE &&
                    actor->options.cooldown_ms > 0;
    if ((finished || request->verb == VERB_MARK) && !world->acquisitions[actor->number].did)
        oracle_fail(world, actor, "rule 6", "told that it did what another did");
}

/* True if the id's payload, unchanged since before the request, is the same, or another one. */
static bool payload_is(const struct world *world, const struct actor *actor, bool same)
{
    const struct key_truth *key = &world->keys[actor->key];
    const char *asked = actor->options.request.payload;
    if (asked == NULL || key->payload[0] == '\0' || key->payload_ms >= actor->began_ms)
        return false;
    return (strcmp(asked, key->payload) == 0) == same;
}

void oracle_once_held(struct world *world, const struct actor *actor)
{
    if (actor->options.request.kind == KIND_ONCE && payload_is(world, actor, /* same= */ false))
        oracle_fail(world, actor, "rule 6", "claimed with another payload");
}

/* True if the holder of that token has done the id. */
static bool token_did(const struct world *world, size_t key, uint64_t token)
{
    for (uint32_t number = 1; number < world->next_number; number++) {
        const struct acquisition *own = &world->acquisitions[number];
        if (own->key == key && own->did && oracle_order(own, token) != 0)
            return true;
    }
    return false;
}

static void id_ended(struct world *world, const struct actor *actor, enum outcome outcome)
{
    struct counts *counts = world->counts;
    bool does = actor->options.request.verb == VERB_MARK || actor->options.cooldown_ms > 0;
    const struct acquisition *own = &world->acquisitions[actor->number];
    if (outcome == OUTCOME_OK && does && own->word == actor->number && !own->said)
        oracle_fail(world, actor, "rule 6", "told that it did it, and another's word stands");
    if (outcome == OUTCOME_COOLING && payload_is(world, actor, /* same= */ false))
        oracle_fail(world, actor, "rule 6", "told of what was done with another payload");
    if (outcome == OUTCOME_MISMATCH && payload_is(world, actor, /* same= */ true))
        oracle_fail(world, actor, "rule 6", "told of another payload, and it is the same");
    counts->running += outcome == OUTCOME_BUSY ? 1 : 0;
    counts->told_done += outcome == OUTCOME_COOLING ? 1 : 0;
    counts->mismatches += outcome == OUTCOME_MISMATCH ? 1 : 0;
}

static void finish_ended(struct world *world, const struct actor *actor, enum outcome outcome)
{
    uint64_t token = actor->options.request.token;
    bool finishes = actor->options.cooldown_ms > 0;
    if (outcome == OUTCOME_OK && finishes && !token_did(world, actor->key, token))
        oracle_fail(world, actor, "rule 6", "told that it finished what it did not");
    world->counts->abandoned += outcome == OUTCOME_OK && !finishes ? 1 : 0;
    world->counts->refused_tokens += outcome == OUTCOME_STALE ? 1 : 0;
}

void oracle_once_ended(struct world *world, const struct actor *actor, enum outcome outcome)
{
    const struct request *request = &actor->options.request;
    if (request->verb == VERB_ADVANCE) {
        const struct acquisition *own = &world->acquisitions[actor->number];
        int64_t value = strtoll(request->value, NULL, 10);
        bool stays = own->expected == value && world->watermark >= value;
        if (outcome == OUTCOME_OK && !own->did && !stays)
            oracle_fail(world, actor, "rule 7", "told that it moved what it did not move");
        world->counts->refused_advances += outcome == OUTCOME_STALE ? 1 : 0;
    } else if (request->kind == KIND_ONCE && request->verb == VERB_RELEASE) {
        finish_ended(world, actor, outcome);
    } else if (request->kind == KIND_ONCE &&
               (request->verb == VERB_ACQUIRE || request->verb == VERB_MARK)) {
        id_ended(world, actor, outcome);
    }
}
