/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Without scripts (?scripts=no): the same as script.c says, in commands. First both names are
 * watched and read and a revision is drawn; then, if the condition holds, all is written in one
 * transaction, which fails when either name has changed since. A conflict is answered with what one
 * more transaction reads. Two round trips instead of one, and one request at a time on each
 * connection, because what is watched belongs to all of it.
 */
#include "store/redis/redis_inside.h"

#include "base/check.h"
#include "io/host.h"
#include "store/condition.h"
#include "wire/redis_message.h"

#include <stdlib.h>
#include <string.h>

enum { CALLS_MAX = 16, VALUE_MAX = 200 };

enum stage { STAGE_CLOCK, STAGE_LOOK, STAGE_WRITE, STAGE_SEE };

/* What the commands are for: the first word of a reply's meaning. */
enum meaning {
    MEANS_NOTHING,
    MEANS_RECORD,
    MEANS_VALUE,
    MEANS_REST,
    MEANS_TIME,
    MEANS_COUNT,
    MEANS_WRITTEN,
    MEANS_SEEN
};

struct deal_call {
    struct link_call call; /* first */
    struct deal *deal;
    enum meaning meaning;
};

struct deal {
    struct node *node;
    struct job *job;
    enum stage stage;
    struct redis_names names;
    struct deal_call calls[CALLS_MAX];
    size_t sent, heard;
    bool redirected, refused, written;
    const char *wrong; /* what makes no sense in a reply */
    bool unreadable;   /* the record does not */
    bool demoted;      /* it is a replica by now */
    struct link_error error;
    char *record; /* as it stands: revision, time, bytes */
    size_t length;
    bool own;      /* the value under the plain name is ours … */
    bool strange;  /* … or a stranger's, who is not in the record that was written */
    char *renewal; /* a swap under IF_GRANT: what it writes */
    char value[VALUE_MAX];
    int64_t count;
    struct seen seen;
};

void deal_free(struct deal *deal)
{
    if (deal != NULL) {
        free(deal->record);
        free(deal->renewal);
    }
    free(deal);
}

static void end_deal(struct deal *deal, const struct link_error *error)
{
    struct job *job = deal->job;
    struct link *link = &deal->node->link;
    bool demoted = deal->demoted && link->state == LINK_READY;
    deal->node->deal = NULL;
    if (!deal->redirected)
        redis_end(job, error == NULL ? &deal->seen : NULL, error);
    deal_free(deal);
    if (demoted) /* the next connection finds out who is the master now */
        link_cut(link, ANSWER_TROUBLE, "it is a replica by now");
}

/* ---- reading ---- */

static void take_record(struct deal *deal, const struct resp_item *item)
{
    struct seen *seen = &deal->seen;
    free(deal->record);
    deal->record = NULL;
    seen->bytes = NULL;
    seen->length = 0;
    seen->written = (struct stamp){0};
    if (item->kind == RESP_NULL)
        return;
    size_t begin = item->kind != RESP_TEXT
                       ? 0
                       : redis_record_read(item->text, item->length, /* from= */ 0,
                                           &seen->written.revision, &seen->written.time_ms);
    bool sane = begin > 0 && seen->written.revision > 0 && seen->written.revision <= REVISION_MAX &&
                seen->written.time_ms <= TIME_MAX_MS;
    deal->record = sane ? malloc(item->length) : NULL;
    deal->unreadable = !sane;
    if (deal->record == NULL) {
        deal->wrong = sane ? "out of memory" : "the record in Redis has no revision";
        return;
    }
    memcpy(deal->record, item->text, item->length);
    seen->bytes = deal->record + begin;
    seen->length = item->length - begin;
}

/* A value that is not the one we wrote with that record is a stranger's; so is one of any kind. */
static void take_value(struct deal *deal, const struct resp_item *item)
{
    struct seen *seen = &deal->seen;
    char mark[64];
    struct text text;
    text_init(&text, mark, sizeof mark);
    text_add(&text, "leasehold:");
    text_add_u64(&text, seen->written.revision);
    text_add(&text, ":");
    bool is_text = item->kind == RESP_TEXT;
    deal->own = is_text && seen->length > 0 && item->length >= text.length &&
                memcmp(item->text, mark, text.length) == 0;
    seen->strange = item->kind != RESP_NULL && !deal->own;
    seen->value = deal->value;
    seen->value_length = is_text ? item->length : 0;
    if (seen->value_length > sizeof deal->value)
        seen->value_length = sizeof deal->value;
    if (seen->value_length > 0)
        memcpy(deal->value, item->text, seen->value_length);
}

static void take_rest(struct deal *deal, const struct resp_item *item)
{
    if (item->kind != RESP_NUMBER)
        deal->wrong = "Redis replied to PTTL with something that is no number";
    deal->seen.rest_ms = item->number;
}

static void take_count(struct deal *deal, const struct resp_item *item)
{
    bool sane =
        item->kind == RESP_NUMBER && item->number > 0 && (uint64_t)item->number <= REVISION_MAX;
    if (!sane)
        deal->wrong = "the revision counter in Redis is out of bounds; delete it if another "
                      "program wrote it";
    deal->count = item->number;
}

/* Digits only, and few enough that a second of them fits in milliseconds. */
static bool read_digits(struct resp_walk *walk, int64_t *out)
{
    enum { DIGITS_MAX = 12 };
    struct resp_item part;
    int64_t number = 0;
    if (!resp_next(walk, &part) || part.kind != RESP_TEXT || part.length == 0 ||
        part.length > DIGITS_MAX)
        return false;
    for (size_t i = 0; i < part.length; i++) {
        if (part.text[i] < '0' || part.text[i] > '9')
            return false;
        number = number * 10 + (part.text[i] - '0');
    }
    *out = number;
    return true;
}

static void take_time(struct deal *deal, const struct resp_item *item, struct resp_walk *walk)
{
    int64_t seconds, micros;
    if (item->kind != RESP_LIST || item->count != 2 || !read_digits(walk, &seconds) ||
        !read_digits(walk, &micros)) {
        deal->wrong = "Redis replied to TIME with something that is no time";
        return;
    }
    deal->seen.now_ms = seconds * 1000 + micros / 1000;
    deal->node->ahead_ms = deal->seen.now_ms - host_boot_ms();
}

/* What a transaction read: the same four, in the same order. */
static void take_all_seen(struct deal *deal, const struct resp_item *item, struct resp_walk *walk)
{
    bool plain = deal->names.family != REDIS_WATERMARK;
    struct resp_item part = {0};
    if (item->kind != RESP_LIST || item->count != (plain ? 4 : 2) || !resp_next(walk, &part)) {
        deal->wrong = "Redis replied to EXEC with something that is no transaction's result";
        return;
    }
    take_record(deal, &part);
    resp_skip(walk, &part);
    if (plain && resp_next(walk, &part)) {
        take_value(deal, &part);
        resp_skip(walk, &part);
    }
    if (plain && resp_next(walk, &part)) {
        take_rest(deal, &part);
        resp_skip(walk, &part);
    }
    if (resp_next(walk, &part))
        take_time(deal, &part, walk);
}

/* A transaction goes on behind a command that fails: then who knows what was written. */
static void take_written(struct deal *deal, const struct resp_item *item, struct resp_walk *walk)
{
    struct resp_item part;
    deal->written = item->kind == RESP_LIST;
    if (!deal->written && item->kind != RESP_NULL) /* NULL: a name has changed since */
        deal->wrong = "Redis replied to EXEC with something that is no transaction's result";
    while (deal->written && !deal->refused && resp_next(walk, &part)) {
        deal->refused = part.kind == RESP_ERROR;
        if (deal->refused)
            deal->error = link_explain(&deal->node->link, &part);
    }
}

/* ---- stages ---- */

static void go_on(struct deal *deal);

static void on_heard(struct link_call *call, const struct resp_item *item, struct resp_walk *walk,
                     const struct link_error *error)
{
    struct deal_call *one = (struct deal_call *)call;
    struct deal *deal = one->deal;
    bool bad = error == NULL && item->kind == RESP_ERROR;
    bool wrong_type = bad && one->meaning == MEANS_VALUE && resp_begins(item, "WRONGTYPE");
    deal->heard++;
    if (error != NULL && !deal->refused) {
        deal->refused = true;
        deal->error = *error;
    } else if (bad && !wrong_type && !deal->refused && !deal->redirected) {
        deal->redirected = node_redirects(deal->job, item); /* then nothing is executed */
        deal->refused = !deal->redirected;
        deal->demoted = resp_begins(item, "READONLY");
        if (deal->refused)
            deal->error = link_explain(&deal->node->link, item);
    } else if (error == NULL && !deal->refused && !deal->redirected) {
        if (one->meaning == MEANS_RECORD)
            take_record(deal, item);
        else if (one->meaning == MEANS_VALUE)
            take_value(deal, item);
        else if (one->meaning == MEANS_REST)
            take_rest(deal, item);
        else if (one->meaning == MEANS_TIME)
            take_time(deal, item, walk);
        else if (one->meaning == MEANS_COUNT)
            take_count(deal, item);
        else if (one->meaning == MEANS_WRITTEN)
            take_written(deal, item, walk);
        else if (one->meaning == MEANS_SEEN)
            take_all_seen(deal, item, walk);
    }
    if (deal->heard == deal->sent)
        go_on(deal);
}

static struct link *say(struct deal *deal, enum meaning meaning, size_t words, const char *command)
{
    struct link *link = &deal->node->link;
    ASSERT(deal->sent < CALLS_MAX);
    struct deal_call *call = &deal->calls[deal->sent++];
    *call = (struct deal_call){.call = {.reply = on_heard}, .deal = deal, .meaning = meaning};
    link_begin(link, &call->call, words);
    link_say(link, command);
    return link;
}

static void say_of(struct deal *deal, enum meaning meaning, const char *command, const char *name)
{
    link_say(say(deal, meaning, 2, command), name);
}

static void begin_stage(struct deal *deal, enum stage stage)
{
    deal->stage = stage;
    deal->sent = deal->heard = 0;
}

static void say_looks(struct deal *deal, bool meant)
{
    bool plain = deal->names.family != REDIS_WATERMARK;
    say_of(deal, meant ? MEANS_RECORD : MEANS_NOTHING, "GET", deal->names.record);
    if (plain) {
        say_of(deal, meant ? MEANS_VALUE : MEANS_NOTHING, "GET", deal->names.plain);
        say_of(deal, meant ? MEANS_REST : MEANS_NOTHING, "PTTL", deal->names.plain);
    }
    (void)say(deal, meant ? MEANS_TIME : MEANS_NOTHING, 1, "TIME");
}

/* All at one moment, for an answer. */
static void see(struct deal *deal)
{
    begin_stage(deal, STAGE_SEE);
    (void)say(deal, MEANS_NOTHING, 1, "MULTI");
    say_looks(deal, /* meant= */ false);
    (void)say(deal, MEANS_SEEN, 1, "EXEC");
}

/* The count begins above all that was, also when it was lost. */
static void look(struct deal *deal)
{
    begin_stage(deal, STAGE_LOOK);
    struct link *link = say(deal, MEANS_NOTHING, 3, "WATCH");
    link_say(link, deal->names.plain);
    link_say(link, deal->names.record);
    say_looks(deal, /* meant= */ true);
    link = say(deal, MEANS_NOTHING, 4, "SET");
    link_say(link, deal->names.counter);
    link_number(link, host_boot_ms() + deal->node->ahead_ms);
    link_say(link, "NX");
    say_of(deal, MEANS_COUNT, "INCR", deal->names.counter);
}

/*
 * Does the record stand that the request is about, and in it the grant? A swap under IF_GRANT
 * becomes a swap of that record then, the grant renewed.
 */
static bool stands(struct deal *deal)
{
    struct redis *redis = deal->job->redis;
    struct store_request *request = &deal->job->request;
    struct standing standing = {.bytes = deal->seen.bytes,
                                .length = deal->seen.length,
                                .written = deal->seen.written,
                                .now_ms = deal->seen.now_ms};
    bool renews = request->condition.kind == IF_GRANT && request->verb == VERB_STORE_SWAP;
    if (renews) /* another node may have been asked before */
        request->length = 0;
    if (standing.length == 0)
        return request->condition.kind != IF_GRANT;
    bool holds = condition_holds(request, &standing, &redis->scratch);
    if (!holds || !renews)
        return holds;
    size_t length = condition_renewal(request, &standing, &redis->scratch, redis->encoded,
                                      sizeof redis->encoded);
    free(deal->renewal);
    deal->renewal = length > 0 ? malloc(length) : NULL;
    if (deal->renewal == NULL)
        return false; /* told as a conflict: the core goes on with what stands */
    memcpy(deal->renewal, redis->encoded, length);
    request->bytes = deal->renewal;
    request->length = length;
    request->lives_ms = record_lives_ms(&redis->scratch);
    return true;
}

static bool holds_for(const struct deal *deal, const struct draft *draft)
{
    const struct condition *condition = &deal->job->request.condition;
    const struct seen *seen = &deal->seen;
    if (condition->kind == IF_ABSENT)
        return seen->length == 0 && !seen->strange;
    if (condition->ends_ms != 0 && seen->now_ms >= condition->ends_ms)
        return false;
    if (seen->length == 0)
        return seen->strange && draft->knows;
    return seen->strange == draft->knows;
}

static void say_set(struct deal *deal, const char *name, int64_t lives_ms, const char *head,
                    const char *bytes, size_t length)
{
    char value[RECORD_MAX + 64];
    struct text text;
    struct link *link = say(deal, MEANS_NOTHING, lives_ms > 0 ? 5 : 3, "SET");
    text_init(&text, value, sizeof value);
    text_add(&text, head);
    text_add_bytes(&text, bytes, length);
    link_say(link, name);
    link_word(link, value, text.length);
    if (lives_ms > 0) {
        link_say(link, "PX");
        link_number(link, lives_ms);
    }
}

static void say_record(struct deal *deal, const struct draft *draft)
{
    char head[64];
    struct text text;
    int64_t now_ms = deal->seen.now_ms, until_ms = draft->until_ms - now_ms;
    int64_t held_ms = draft->fresh_ms > until_ms ? draft->fresh_ms : until_ms;
    int64_t lives_ms = draft->lives_ms;
    if (lives_ms < 0)
        lives_ms = (held_ms > 0 ? held_ms : 0) - lives_ms;
    text_init(&text, head, sizeof head);
    text_add_i64(&text, deal->count);
    text_add(&text, " ");
    text_add_i64(&text, now_ms);
    text_add(&text, " ");
    say_set(deal, deal->names.record, lives_ms, head, draft->bytes, draft->length);
    if (deal->names.family == REDIS_WATERMARK || deal->seen.strange)
        return;
    text_init(&text, head, sizeof head);
    text_add(&text, "leasehold:");
    text_add_i64(&text, deal->count);
    text_add(&text, ":");
    if (held_ms > 0)
        say_set(deal, deal->names.plain, held_ms + 1, head, draft->by, strlen(draft->by));
    else if (deal->own)
        say_of(deal, MEANS_NOTHING, "DEL", deal->names.plain);
}

static void publish(struct link *link, const char *channel, const struct text *words)
{
    if (!link_begin_unheard(link, 3))
        return;
    link_say(link, "PUBLISH");
    link_say(link, channel);
    link_word(link, words->bytes, words->length);
}

static void write_all(struct deal *deal, const struct draft *draft)
{
    begin_stage(deal, STAGE_WRITE);
    (void)say(deal, MEANS_NOTHING, 1, "MULTI");
    if (draft->length > 0) {
        say_record(deal, draft);
    } else {
        deal->count = 0;
        say_of(deal, MEANS_NOTHING, "DEL", deal->names.record);
        if (deal->own)
            say_of(deal, MEANS_NOTHING, "DEL", deal->names.plain);
    }
    (void)say(deal, MEANS_WRITTEN, 1, "EXEC");
}

/* Those whom the write names hear what stands from now on, unless that is long, or for many. */
static void tell_named(struct deal *deal)
{
    struct redis *redis = deal->job->redis;
    const struct store_request *request = &deal->job->request;
    char words[REDIS_BESIDE_MAX + 64 + TOLD_MAX], name[CHANNEL_MAX];
    struct text text;
    text_init(&text, words, sizeof words);
    text_add(&text, deal->names.record);
    if (deal->count > 0 && !deal->strange && request->length <= TOLD_MAX &&
        request->poke_count <= TOLD_SESSIONS) {
        text_add(&text, "\n");
        text_add_i64(&text, deal->count);
        text_add(&text, " ");
        text_add_i64(&text, deal->seen.now_ms);
        text_add(&text, " ");
        text_add_bytes(&text, request->bytes, request->length);
    }
    for (size_t i = 0; i < request->poke_count; i++) {
        wake_channel(redis, request->poke[i], name);
        publish(&deal->node->link, name, &text);
    }
}

/* Only of what was written; whoever does not hear of it looks by itself. */
static void tell(struct deal *deal)
{
    char words[REDIS_BESIDE_MAX + 32];
    struct text text;
    text_init(&text, words, sizeof words);
    text_add_i64(&text, deal->count);
    text_add(&text, " ");
    text_add(&text, deal->names.record);
    publish(&deal->node->link, deal->job->redis->changes.name, &text);
    tell_named(deal);
}

static void end_with(struct deal *deal, bool wrote)
{
    struct seen *seen = &deal->seen;
    seen->wrote = wrote;
    seen->holds = wrote || deal->job->request.verb == VERB_STORE_READ;
    if (wrote) {
        deal->strange = seen->strange;
        seen->strange = false;
        seen->written = (struct stamp){.revision = (uint64_t)deal->count, .time_ms = seen->now_ms};
        tell(deal);
    } else if (seen->strange && seen->length == 0) {
        /* No record of ours has a revision above the clock that its count began with. */
        seen->written =
            (struct stamp){.revision = (uint64_t)(deal->count > 0 ? deal->count : seen->now_ms),
                           .time_ms = seen->now_ms};
    }
    end_deal(deal, NULL);
}

static void unwatch(struct deal *deal)
{
    struct link *link = &deal->node->link;
    if (link->state == LINK_READY && link_begin_unheard(link, 1))
        link_say(link, "UNWATCH");
}

static void write_or_see(struct deal *deal)
{
    struct draft draft;
    bool standing = stands(deal);
    draft_make(deal->job->redis, deal->job, &draft);
    bool holds = standing && holds_for(deal, &draft);
    if (holds && (uint64_t)deal->count > deal->seen.written.revision) {
        write_all(deal, &draft);
        return;
    }
    unwatch(deal);
    if (holds) /* the count was lost, and the clock went back */
        end_deal(deal, &(struct link_error){
                           .result = ANSWER_TROUBLE,
                           .why = "the count of revisions in Redis went back, and without "
                                  "scripts it cannot be mended"});
    else
        see(deal);
}

static void go_on(struct deal *deal)
{
    if (deal->wrong != NULL && !deal->refused) {
        deal->error = (struct link_error){
            .result = ANSWER_TROUBLE, .why = deal->wrong, .of_record = deal->unreadable};
        deal->refused = true;
    }
    if (deal->refused || deal->redirected) {
        if (deal->stage == STAGE_LOOK)
            unwatch(deal);
        end_deal(deal, &deal->error);
        return;
    }
    switch (deal->stage) {
    case STAGE_CLOCK:
        look(deal);
        return;
    case STAGE_LOOK:
        write_or_see(deal);
        return;
    case STAGE_WRITE:
        if (deal->written)
            end_with(deal, /* wrote= */ true);
        else
            see(deal);
        return;
    case STAGE_SEE:
        end_with(deal, /* wrote= */ false);
        return;
    }
    UNREACHABLE("every stage is listed");
}

bool deal_begin(struct node *node, struct job *job)
{
    struct deal *deal = calloc(1, sizeof *deal);
    if (deal == NULL ||
        !redis_names_of(&job->redis->url.templates, job->request.key, &deal->names)) {
        free(deal);
        return false;
    }
    job->link = &node->link;
    deal->node = node;
    deal->job = job;
    deal->seen.rest_ms = -1;
    node->deal = deal;
    if (job->request.verb == VERB_STORE_READ) {
        see(deal);
    } else if (node->ahead_ms == 0) {
        begin_stage(deal, STAGE_CLOCK);
        (void)say(deal, MEANS_TIME, 1, "TIME");
    } else {
        look(deal);
    }
    return true;
}
