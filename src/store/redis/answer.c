/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the seam and the script: what a request says there, and what the script said as an
 * answer. While a stranger's value stands under the plain name, the core is shown a record in which
 * the stranger holds; that grant is taken out again of whatever the core writes, for it is not ours
 * to keep. Decides nothing: whom the stranger blocks, the core says.
 */
#include "store/redis/redis_inside.h"

#include "base/check.h"
#include "wire/record_codec.h"
#include "wire/redis_message.h"

#include <string.h>

#define DAY_MS ((int64_t)24 * 3600 * 1000)

/* ---- requests ---- */

static void hold_for(struct draft *draft, const struct stamp *since, int64_t length_ms,
                     const char *by)
{
    int64_t *to = since->revision == THIS_WRITE ? &draft->fresh_ms : &draft->until_ms;
    int64_t end_ms = since->revision == THIS_WRITE ? length_ms : since->time_ms + length_ms;
    if (end_ms > *to)
        *to = end_ms;
    if (draft->by[0] == '\0')
        draft->by = by;
}

/* A cooldown is known to us alone; but an id that was done is done for everybody. */
static void hold_of(const struct record *record, struct draft *out)
{
    const struct span *delay = &record->delay, *cooling = &record->cooling;
    for (size_t i = 0; i < record->grant_count; i++) {
        const struct grant *grant = &record->grants[i];
        hold_for(out, &grant->renewed, grant->ttl_ms + grant->lock_delay_ms, grant->holder);
    }
    if (delay->length_ms > 0)
        hold_for(out, &delay->since, delay->length_ms, delay->by);
    if (record->kind == KIND_ONCE && cooling->length_ms > 0)
        hold_for(out, &cooling->since, cooling->length_ms, cooling->by);
}

/*
 * How long the server keeps the record: as long as the core said; for ever (0) what waits for a
 * watermark, and watermarks; what crashed processes left behind, a day longer than it can hold.
 */
static int64_t life_of(const struct record *record, int64_t lives_ms)
{
    if (record_awaits(record) || record->kind == KIND_WATERMARK)
        return 0;
    if (lives_ms > 0)
        return lives_ms + 1;
    return -(DAY_MS + record->cooling.length_ms + record->delay.length_ms);
}

static bool is_first_in_line(const struct redis *redis, struct record *record)
{
    const struct place *next = queue_next(record);
    return next != NULL && next->session == redis->site.session;
}

uint64_t redis_hash_of(const char *key)
{
    uint64_t hash = 0xcbf29ce484222325U;
    for (; *key != '\0'; key++)
        hash = (hash ^ (unsigned char)*key) * 0x100000001b3U;
    return hash ^ (hash >> 29);
}

/* The request of a stranger who is shown; of a semaphore, in each slot another one. */
static void name_request(const struct redis *redis, uint32_t slot, char *out)
{
    struct text text;
    text_init(&text, out, REQUEST_MAX + 1);
    text_add(&text, "stranger ");
    text_add_hex(&text, redis->stranger_session + slot);
}

static bool is_stranger(const struct redis *redis, const struct grant *grant)
{
    char request[REQUEST_MAX + 1];
    name_request(redis, grant->n, request);
    return strcmp(grant->request, request) == 0;
}

/* Takes the stranger out, if he is in it. Whoever renews him by a token takes him home. */
static bool take_out_stranger(const struct redis *redis, struct record *record, bool *out_broken)
{
    bool found = false;
    for (size_t i = record->grant_count; i-- > 0;) {
        if (!is_stranger(redis, &record->grants[i]))
            continue;
        *out_broken = record->grants[i].broken || *out_broken ||
                      record->grants[i].session != redis->stranger_session;
        record_remove_grant(record, &record->grants[i]);
        found = true;
    }
    return found;
}

static void send_names(struct link *link, const struct redis_names *names)
{
    link_made(link, redis_script_call);
    link_say(link, names->family == REDIS_WATERMARK ? names->record : names->plain);
    link_say(link, names->record);
    link_say(link, names->counter);
}

void draft_make(struct redis *redis, struct job *job, struct draft *out)
{
    const struct store_request *request = &job->request;
    struct codec_error error;
    struct record *record = &redis->scratch;
    *out = (struct draft){.bytes = request->bytes, .by = ""};
    out->length = request->verb == VERB_STORE_SWAP ? request->length : 0;
    job->lets_nobody = out->length == 0;
    if (out->length == 0 || record_decode(out->bytes, out->length, record, &error) != DECODE_OK)
        return;
    out->knows = take_out_stranger(redis, record, &job->breaks);
    job->lets_nobody = record->grant_count == 0 && !out->knows;
    job->waits_behind = out->knows && is_first_in_line(redis, record);
    hold_of(record, out);
    out->lives_ms = life_of(record, request->lives_ms);
    if (job->breaks) {
        out->knows = false; /* that is not for us to write: it shall be refused */
    } else if (out->knows) {
        bool needed = record_needed(record);
        out->length = needed ? record_encode(record, redis->encoded, sizeof redis->encoded) : 0;
        out->bytes = redis->encoded;
    }
}

static void say_condition(struct link *link, const struct store_request *request)
{
    const struct condition *condition = &request->condition;
    bool renews = condition->kind == IF_GRANT && request->verb == VERB_STORE_SWAP;
    if (condition->kind == IF_REVISION)
        link_number(link, (int64_t)condition->revision);
    else
        link_say(link, condition->kind == IF_ABSENT ? "" : renews ? "renew" : "grant");
}

void wake_channel(const struct redis *redis, uint64_t session, char *out)
{
    struct text text;
    text_init(&text, out, CHANNEL_MAX);
    text_add_bytes(&text, redis->wake.name,
                   (size_t)(strrchr(redis->wake.name, ':') - redis->wake.name) + 1);
    text_add_hex(&text, session);
}

/* In parts, as Lua has no number for it: "epoch revision n"; nothing when there is none. */
static void say_token(struct link *link, uint64_t token)
{
    char digits[64];
    struct text text;
    text_init(&text, digits, sizeof digits);
    if (token != 0) {
        text_add_u64(&text, token >> 55);
        text_add(&text, " ");
        text_add_u64(&text, token >> 10 & REVISION_MAX);
        text_add(&text, " ");
        text_add_u64(&text, token & 1023);
    }
    link_word(link, digits, text.length);
}

/* One more, as the server's own clock may be a little behind the one that the script reads. */
static int64_t with_one_more(int64_t ms)
{
    return ms > 0 ? ms + 1 : 0;
}

/* What the script need not count, because all of it begins with this write, is counted here. */
static void say_draft(const struct draft *draft, struct link *link)
{
    int64_t held_ms = with_one_more(draft->fresh_ms), lives_ms = draft->lives_ms;
    if (draft->until_ms == 0 && lives_ms < 0)
        lives_ms = held_ms - lives_ms;
    link_word(link, draft->bytes, draft->length);
    link_number(link, held_ms);
    link_number(link, lives_ms);
    link_say(link, draft->by);
}

/* The script makes the record of it, and what draft_make() would say of that; but an id that nobody
 * finishes also stays for a day. */
static void say_renewal(const struct store_request *request, struct link *link)
{
    char session[24];
    struct text text;
    text_init(&text, session, sizeof session);
    text_add_hex(&text, request->session);
    link_say(link, session);
    link_number(link, request->ttl_ms);
    link_number(link, -DAY_MS);
    link_say(link, request->bound ? ",\"bound\":true" : "");
}

static void say_number_if_any(struct link *link, int64_t number)
{
    if (number != 0)
        link_number(link, number);
    else
        link_say(link, "");
}

/* Every word costs the server time: those behind the last one that says anything are left out. */
static void send_write(struct redis *redis, struct job *job, struct link *link,
                       const struct redis_names *names)
{
    enum { NAMES = 6, ENDS = 3, BY = 7, UNTIL = 8, BESIDE = 10 };
    const struct store_request *request = &job->request;
    const struct condition *condition = &request->condition;
    bool renews = condition->kind == IF_GRANT && request->verb == VERB_STORE_SWAP;
    struct draft draft = {0};
    if (!renews)
        draft_make(redis, job, &draft);
    /* Who knows when the grant ends has seen it: at that revision it stands. */
    uint64_t token = condition->ends_ms == 0 ? condition->token : 0;
    bool all = request->poke_count > 0 || token != 0 || draft.knows;
    size_t last = all ? BESIDE : draft.until_ms != 0 ? UNTIL : draft.length > 0 ? BY : ENDS;
    link_begin(link, &job->call, NAMES + last + request->poke_count);
    send_names(link, names);
    say_condition(link, request);
    link_say(link, redis->changes.name);
    say_number_if_any(link, condition->ends_ms);
    if (last >= BY && renews)
        say_renewal(request, link);
    else if (last >= BY)
        say_draft(&draft, link);
    if (last >= UNTIL)
        say_number_if_any(link, with_one_more(draft.until_ms));
    if (last >= BESIDE) {
        say_token(link, token);
        link_say(link, draft.knows ? "beside" : "");
    }
    for (size_t i = 0; i < request->poke_count; i++) {
        char name[CHANNEL_MAX];
        wake_channel(redis, request->poke[i], name);
        link_say(link, name);
    }
}

bool command_send(struct redis *redis, struct job *job, struct link *link)
{
    struct redis_names names;
    if (!redis_names_of(&redis->url.templates, job->request.key, &names))
        return false;
    job->link = link;
    if (job->asking && link_begin_unheard(link, 1))
        link_say(link, "ASKING");
    if (job->request.verb == VERB_STORE_READ) {
        link_begin(link, &job->call, 7);
        send_names(link, &names);
        link_say(link, "read");
    } else {
        send_write(redis, job, link, &names);
    }
    return true;
}

/* ---- answers ---- */

static bool next_number(struct resp_walk *walk, int64_t *out)
{
    struct resp_item item;
    if (!resp_next(walk, &item) || item.kind != RESP_NUMBER)
        return false;
    *out = item.number;
    return true;
}

/* What was written begins as a record does; of a deleted one, the revision is 0. */
static bool read_written(const struct resp_item *item, struct seen *out)
{
    out->holds = out->wrote = true;
    size_t end = redis_record_read(item->text, item->length, /* from= */ 0, &out->written.revision,
                                   &out->written.time_ms);
    out->now_ms = out->written.time_ms;
    return end > 0 && end == item->length;
}

/* Revision and time are looked at by exchange.c, like those of any store. */
bool seen_read(const struct resp_item *item, struct resp_walk *walk, struct seen *out)
{
    enum { SAW = 6 };
    int64_t holds, count;
    struct resp_item kept, value;
    *out = (struct seen){.rest_ms = -1};
    if (item->kind == RESP_TEXT)
        return read_written(item, out);
    if (item->kind != RESP_LIST || item->count != SAW || !next_number(walk, &holds) ||
        !next_number(walk, &out->now_ms) || !resp_next(walk, &kept) || kept.kind != RESP_TEXT ||
        !resp_next(walk, &value) || !next_number(walk, &out->rest_ms) || !next_number(walk, &count))
        return false;
    size_t begin = redis_record_read(kept.text, kept.length, /* from= */ 0, &out->written.revision,
                                     &out->written.time_ms);
    out->unreadable = kept.length > 0 && (begin == 0 || out->written.revision == 0);
    if (out->unreadable)
        return false;
    out->holds = holds != 0;
    out->bytes = kept.text + begin;
    out->length = kept.length - begin;
    out->strange = value.kind == RESP_TEXT;
    out->value = value.text;
    out->value_length = value.length;
    if (out->strange && out->written.revision == 0)
        out->written = (struct stamp){.revision = (uint64_t)count, .time_ms = out->now_ms};
    return true;
}

bool seen_fits(const struct job *job, const struct seen *seen)
{
    const struct store_request *request = &job->request;
    bool renews = request->condition.kind == IF_GRANT && request->verb == VERB_STORE_SWAP;
    if (request->verb == VERB_STORE_READ)
        return seen->holds && !seen->wrote;
    return !seen->holds || seen->wrote != renews;
}

/* The value, when it can be shown, and as much of it. */
static void name_stranger(const struct seen *seen, char *out, size_t size)
{
    size_t length = 0;
    struct text text;
    text_init(&text, out, size);
    while (length < seen->value_length && length < STRANGER_SHOWN) {
        size_t sequence = text_sequence(seen->value + length, seen->value_length - length);
        if (sequence == 0)
            break;
        length += sequence;
    }
    if (length > 0 && text_is_clean(seen->value, length))
        text_add_bytes(&text, seen->value, length);
    else
        text_add(&text, "a stranger");
}

/* One who holds it all: of a semaphore, every slot. His tokens are below all that are ours, so that
 * nobody who held before takes his grant for its own. */
static void add_stranger(const struct redis *redis, const struct seen *seen, struct record *record)
{
    uint32_t slots = record->limit > 0 ? record->limit : 1;
    bool endless = seen->rest_ms < 0 || seen->rest_ms > TTL_MAX_MS;
    for (uint32_t i = 0; i < slots && i < GRANTS_MAX; i++) {
        struct grant *grant = record_add_grant(record);
        name_stranger(seen, grant->holder, sizeof grant->holder);
        name_request(redis, i, grant->request);
        grant->session = redis->stranger_session;
        grant->mode = record->limit > 0 ? MODE_SLOT : MODE_EXCLUSIVE;
        grant->n = (uint16_t)i;
        grant->granted = (struct stamp){.revision = 1, .time_ms = seen->now_ms};
        grant->renewed =
            (struct stamp){.revision = seen->written.revision, .time_ms = seen->now_ms};
        grant->ttl_ms = endless ? TTL_MAX_MS : seen->rest_ms > 0 ? seen->rest_ms : 1;
    }
}

/* Our record with the stranger as its holder; false when ours cannot be read. */
static bool put_in_stranger(struct redis *redis, const char *key, const struct seen *seen)
{
    struct codec_error error;
    struct record *record = &redis->scratch;
    if (seen->length == 0) {
        record_init(record, key);
        if (strncmp(key, ONCE_PREFIX, sizeof ONCE_PREFIX - 1) == 0)
            record_become(record, KIND_ONCE);
    } else if (record_decode(seen->bytes, seen->length, record, &error) != DECODE_OK) {
        return false;
    }
    record_resolve(record, &seen->written);
    record->grant_count = 0;
    if (record->kind == KIND_ONCE)
        record_end_cooling(record);
    for (size_t i = 0; i < record->place_count; i++)
        record->places[i].offered = false; /* nobody may enter now */
    add_stranger(redis, seen, record);
    return record_broken(record) == NULL;
}

/* Stamps of the record that shows the foreign holder are made of these. */
static bool stamp_is_sane(const struct seen *seen)
{
    const struct stamp *written = &seen->written;
    return written->revision > 0 && written->revision <= REVISION_MAX && written->time_ms >= 0 &&
           written->time_ms <= TIME_MAX_MS && seen->now_ms >= 0 && seen->now_ms <= TIME_MAX_MS;
}

/* False, with the reason in the answer, when the record cannot be shown. */
static bool show_stranger(struct redis *redis, const char *key, const struct seen *seen,
                          struct store_answer *out)
{
    struct redis_names names;
    struct text why;
    out->result = ANSWER_TROUBLE;
    if (!stamp_is_sane(seen)) {
        text_init(&why, redis->why, sizeof redis->why);
        text_add(&why, "the server's time or its revision counter is out of bounds");
        if (redis_names_of(&redis->url.templates, key, &names)) {
            text_add(&why, "; delete ");
            text_add(&why, names.counter);
            text_add(&why, " in Redis if another program wrote it");
        }
        out->why = redis->why;
        return false;
    }
    if (!put_in_stranger(redis, key, seen)) {
        out->why = "another program holds the key, and what stands beside it cannot be read";
        return false;
    }
    out->result = seen->holds ? ANSWER_OK : ANSWER_CONFLICT;
    return true;
}

/* Did the core know of him, and write as if it could send him away? Nobody but he can. */
static bool is_break(const struct redis *redis, const struct job *job)
{
    uint64_t hash = redis_hash_of(job->request.key), slot = hash % SHOWN_SLOTS;
    bool knew = redis->shown[slot].key == hash &&
                redis->shown[slot].revision == job->request.condition.revision;
    return job->request.condition.kind == IF_REVISION && knew && (job->lets_nobody || job->breaks);
}

void seen_answer(struct redis *redis, const struct job *job, const char *key,
                 const struct seen *seen, struct store_answer *out)
{
    *out = (struct store_answer){.result = seen->holds ? ANSWER_OK : ANSWER_CONFLICT,
                                 .now_ms = seen->now_ms,
                                 .present = seen->length > 0 || seen->strange,
                                 .written = seen->written,
                                 .bytes = seen->bytes,
                                 .length = seen->length};
    if (seen->wrote && job != NULL) { /* a look writes nothing */
        out->present = job->request.verb == VERB_STORE_SWAP;
        if (out->written.revision == 0) /* of what the core wrote, only the stranger is left */
            out->written.revision = job->request.condition.revision;
        out->bytes = job->request.bytes;
        out->length = job->request.length;
        if (job->waits_behind)
            stranger_note(redis, key);
    }
    if (seen->strange && !show_stranger(redis, key, seen, out))
        return;
    if (seen->strange && job != NULL && !seen->holds && is_break(redis, job)) {
        *out = (struct store_answer){.result = ANSWER_DENIED,
                                     .now_ms = seen->now_ms,
                                     .why = "a program that is not leasehold holds the key: end "
                                            "it there, or delete its value in Redis"};
        return;
    }
    uint64_t hash = redis_hash_of(key);
    if (!seen->strange && redis->shown[hash % SHOWN_SLOTS].key == hash)
        redis->shown[hash % SHOWN_SLOTS].key = 0; /* the core knows that the foreign lock is gone */
    if (seen->strange) {
        redis->shown[hash % SHOWN_SLOTS].key = hash;
        redis->shown[hash % SHOWN_SLOTS].revision = seen->written.revision;
        out->bytes = redis->encoded;
        out->length = record_encode(&redis->scratch, redis->encoded, sizeof redis->encoded);
        if (is_first_in_line(redis, &redis->scratch))
            stranger_note(redis, key);
    }
    if (!out->present)
        out->written = (struct stamp){0};
}

void look_answer(struct redis *redis, const char *key, const struct seen *seen,
                 const struct link_error *error, struct store_answer *out)
{
    if (error == NULL)
        seen_answer(redis, NULL, key, seen, out);
    else
        *out = (struct store_answer){
            .result = error->result, .now_ms = TIME_UNKNOWN, .why = error->why};
}
