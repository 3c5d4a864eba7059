/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See fault_injector.h. A fault changes a request before it is submitted, adds a request that no
 * driver may make, or changes the reply. Only faults that need state keep any.
 */
#include "fault_injector.h"

#include "base/check.h"
#include "store/admin.h"
#include "store/translate.h"
#include "wire/record_codec.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A fault's state for a key. */
struct cached {
    struct cached *next;
    char *key;
    uint64_t base;            /* REUSED_REVISION: where its count began */
    struct store_reply reply; /* CACHED_READ */
    char *bytes;
};

/* A request in flight; kept with its bytes until the store is closed. */
struct injected {
    struct injected *next;
    struct injector *injector;
    struct store_request request; /* as it was submitted */
    store_done *done;
    void *caller;
    bool followed_up;
    size_t answers;
    char *key, *bytes;
};

struct injector {
    void *state; /* of the wrapped driver */
    struct store_callbacks site;
    struct injected *all_injected;
    struct cached *all_cached;
    enum reply_status first; /* of the batch */
    bool batch_begun;
    int64_t time_ms;
    uint16_t epoch; /* the highest of a reply */
};

static const struct store_driver *inner;
static enum fault fault_on;
static struct record record;

static const struct {
    const char *name, *where, *text;
    unsigned needs;
} faults[] = {{"NONE", "", "", 0},
#define FAULT_ROW(name, where, needs, text) {#name, where, text, needs},
              FAULT_LIST(FAULT_ROW)
#undef FAULT_ROW
};

const char *fault_name(enum fault fault)
{
    return faults[fault].name;
}

const char *fault_text(enum fault fault)
{
    return faults[fault].text;
}

const char *fault_where(enum fault fault)
{
    return faults[fault].where;
}

unsigned fault_needs(enum fault fault)
{
    return faults[fault].needs;
}

enum fault fault_named(const char *name)
{
    enum fault fault = FAULT_NONE;
    while (fault < FAULT_COUNT && strcmp(faults[fault].name, name) != 0)
        fault++;
    return fault;
}

static void *allocate(size_t size)
{
    void *memory = calloc(1, size);
    if (memory == NULL)
        abort();
    return memory;
}

static struct cached *cached_of(struct injector *injector, const char *key)
{
    struct cached *cached = injector->all_cached;
    while (cached != NULL && strcmp(cached->key, key) != 0)
        cached = cached->next;
    if (cached != NULL)
        return cached;
    cached = allocate(sizeof *cached);
    cached->key = strdup(key);
    cached->next = injector->all_cached;
    injector->all_cached = cached;
    return cached;
}

/* Requests. */

static void spoil_key(struct injected *injected)
{
    enum { CUT = 255 };
    injected->key = strdup(injected->request.key);
    ASSERT(injected->key != NULL);
    for (char *letter = injected->key; fault_on == FAULT_KEYS_FOLDED && *letter != '\0'; letter++)
        *letter = (char)tolower((unsigned char)*letter);
    if (fault_on == FAULT_KEYS_CUT && strlen(injected->key) > CUT)
        injected->key[CUT] = '\0';
    if (fault_on == FAULT_WATCH_ALL && injected->request.verb == VERB_STORE_WATCH)
        injected->key[0] = '\0';
    injected->request.key = injected->key;
}

static void compose(struct injected *injected)
{
    struct store_request *request = &injected->request;
    static const char apart[] = "e\xcc\x81", composed[] = "\xc3\xa9";
    char *at = memmem(injected->bytes, request->length, apart, strlen(apart));
    while (at != NULL) {
        char *rest = at + strlen(apart);
        size_t left = request->length - (size_t)(rest - injected->bytes);
        memcpy(at, composed, strlen(composed));
        memmove(at + strlen(composed), rest, left);
        request->length--;
        at = memmem(injected->bytes, request->length, apart, strlen(apart));
    }
}

static void spoil_bytes(struct injected *injected)
{
    enum { CUT = 32 * 1024 };
    struct store_request *request = &injected->request;
    if (request->bytes == NULL)
        return;
    injected->bytes = allocate(request->length);
    memcpy(injected->bytes, request->bytes, request->length);
    request->bytes = injected->bytes;
    if (fault_on == FAULT_RECORDS_CUT && request->length > CUT)
        request->length = CUT;
    if (fault_on == FAULT_BYTES_NORMALISED)
        compose(injected);
}

static void spoil_condition(struct injected *injected)
{
    struct condition *condition = &injected->request.condition;
    if (fault_on == FAULT_TOKEN_NOT_TESTED && condition->kind == IF_REVISION)
        condition->token = 0;
    if (fault_on == FAULT_REUSED_REVISION) {
        uint64_t base = cached_of(injected->injector, injected->request.key)->base;
        condition->revision += condition->kind == IF_REVISION ? base : 0;
        condition->token += condition->token != 0 ? base << 10 : 0;
    }
    if (fault_on == FAULT_EPOCH_NOT_TESTED && condition->kind == IF_REVISION)
        condition->revision =
            (condition->revision & REVISION_MAX) | (uint64_t)injected->injector->epoch << 45;
    if (fault_on == FAULT_WAKE_LOST)
        injected->request.wake_count = 0;
}

/* Additional requests that no driver may make. */

static bool has_token(uint64_t token)
{
    return record_grant_by_token(&record, token) != NULL;
}

static bool read_standing(const struct store_reply *reply)
{
    struct codec_error error;
    if (!reply->present || record_decode(reply->bytes, reply->length, &record, &error) != DECODE_OK)
        return false;
    record_resolve(&record, &reply->written);
    return record.grant_count > 0;
}

/* Writes the current record again, with one of its grants changed. */
static bool rewrite(struct injected *injected, uint64_t token)
{
    struct grant *grant = record_grant_by_token(&record, token);
    grant = grant != NULL ? grant : &record.grants[0];
    grant->renewed = (struct stamp){.revision = THIS_WRITE};
    grant->ttl_ms = injected->request.ttl_ms;
    if (fault_on == FAULT_RENEW_MOVES_TOKEN)
        grant->granted = grant->renewed;
    injected->bytes = allocate(RECORD_MAX + 1);
    injected->request.bytes = injected->bytes;
    injected->request.length = record_encode(&record, injected->bytes, RECORD_MAX + 1);
    summarize_record(&record, injected->request.session, &injected->request.summary);
    return injected->request.length > 0;
}

static bool follows_swap(struct injected *injected, const struct store_reply *reply)
{
    const struct condition *condition = &injected->request.condition;
    bool refused = reply->result == REPLY_CONFLICT;
    if (fault_on == FAULT_LAST_WRITER_WINS)
        return refused && condition->kind == IF_ABSENT;
    if (fault_on == FAULT_FORGETS_DONE)
        return refused && condition->kind == IF_ABSENT && !read_standing(reply);
    if (condition->kind != IF_GRANT || !read_standing(reply))
        return false;
    if (fault_on == FAULT_RENEW_MOVES_TOKEN)
        return !refused && rewrite(injected, condition->token);
    bool renews = fault_on == FAULT_BLIND_RENEW ||
                  (fault_on == FAULT_LATE_RENEW && has_token(condition->token));
    return refused && renews && rewrite(injected, condition->token);
}

static bool follows_delete(const struct injected *injected, const struct store_reply *reply)
{
    const struct condition *condition = &injected->request.condition;
    if (reply->result != REPLY_CONFLICT || !reply->present)
        return false;
    if (fault_on == FAULT_UNCONDITIONAL_DELETE)
        return true;
    return fault_on == FAULT_DELETE_WITH_ALL && condition->kind == IF_GRANT &&
           read_standing(reply) && has_token(condition->token);
}

static void on_reply(void *caller, const struct store_reply *reply);

/* True if another request follows instead of the reply. */
static bool follow_up(struct injected *injected, const struct store_reply *reply)
{
    enum store_verb verb = injected->request.verb;
    bool follows = (verb == VERB_STORE_SWAP && follows_swap(injected, reply)) ||
                   (verb == VERB_STORE_DELETE && follows_delete(injected, reply));
    if (injected->followed_up || !follows)
        return false;
    injected->followed_up = true;
    injected->request.condition =
        (struct condition){.kind = IF_REVISION, .revision = stamp_order(&reply->written)};
    inner->submit(injected->injector->state, &injected->request, on_reply, injected);
    return true;
}

/* Replies. */

static void spoil_result(struct injected *injected, struct store_reply *reply)
{
    struct injector *injector = injected->injector;
    enum store_verb verb = injected->request.verb;
    bool refused = reply->result == REPLY_CONFLICT;
    if (fault_on == FAULT_LOST_CONFLICT && verb == VERB_STORE_SWAP && refused)
        reply->result = REPLY_OK;
    if (fault_on == FAULT_BARE_CONFLICT && refused)
        reply->present = false;
    if (fault_on == FAULT_DELETE_OF_NOTHING && verb == VERB_STORE_DELETE && !reply->present)
        reply->result = REPLY_OK;
    if (fault_on == FAULT_REVISION_BEFORE && verb == VERB_STORE_SWAP && !refused)
        reply->written.revision--;
    if (fault_on == FAULT_NO_OWN_OUTCOME && verb == VERB_STORE_SWAP) {
        injector->first = injector->batch_begun ? injector->first : reply->result;
        injector->batch_begun = true;
        reply->result = injector->first;
    }
}

static void spoil_stamp(struct injected *injected, struct store_reply *reply)
{
    struct injector *injector = injected->injector;
    const char *key = reply->key != NULL ? reply->key : injected->request.key;
    if (fault_on == FAULT_REUSED_REVISION) {
        struct cached *cached = cached_of(injector, key);
        bool made = reply->result == REPLY_OK && injected->request.verb == VERB_STORE_SWAP &&
                    injected->request.condition.kind == IF_ABSENT;
        if (made)
            cached->base = reply->written.revision - 1;
        reply->written.revision -= reply->present ? cached->base : 0;
    }
    if (reply->present && reply->written.epoch > injector->epoch)
        injector->epoch = reply->written.epoch;
    if (fault_on == FAULT_EPOCH_LOST)
        reply->written.epoch = 0;
    if (reply->present && fault_on == FAULT_TIME_OF_ANSWER)
        reply->written.time_ms = reply->now_ms;
    if (reply->present && reply->written.time_ms > injector->time_ms)
        injector->time_ms = reply->written.time_ms;
    if (fault_on == FAULT_TIME_STANDS)
        reply->now_ms = injector->time_ms;
}

static void answer_from_cache(struct injected *injected, struct store_reply *reply)
{
    struct cached *cached = cached_of(injected->injector, injected->request.key);
    if (cached->bytes == NULL && reply->present) {
        cached->bytes = allocate(reply->length);
        memcpy(cached->bytes, reply->bytes, reply->length);
        cached->reply = *reply;
        cached->reply.bytes = cached->bytes;
    }
    if (cached->bytes != NULL) {
        int64_t now_ms = reply->now_ms;
        *reply = cached->reply;
        reply->now_ms = now_ms;
    }
}

static void spoil_sessions(struct store_reply *reply)
{
    static uint64_t sessions[GRANTS_MAX + WAITERS_MAX];
    if (fault_on == FAULT_NONE_DEAD)
        reply->dead_count = 0;
    if (fault_on != FAULT_ALL_DEAD || !read_standing(reply))
        return;
    reply->dead_sessions = sessions;
    reply->dead_count = 0;
    for (size_t i = 0; i < record.grant_count; i++)
        sessions[reply->dead_count++] = record.grants[i].session;
    for (size_t i = 0; i < record.waiter_count; i++)
        sessions[reply->dead_count++] = record.waiters[i].session;
}

static bool names_dead(const struct store_reply *reply, uint64_t session)
{
    for (size_t i = 0; i < reply->dead_count; i++)
        if (reply->dead_sessions[i] == session)
            return true;
    return false;
}

/* Names more tokens than the store did: of dead sessions, or all. */
static void name_ended(struct store_reply *reply, bool only_dead)
{
    static uint64_t tokens[2 * GRANTS_MAX];
    if (!read_standing(reply))
        return;
    if (reply->ended_count > 0)
        memcpy(tokens, reply->ended_tokens, reply->ended_count * sizeof tokens[0]);
    reply->ended_tokens = tokens;
    for (size_t i = 0; i < record.grant_count; i++)
        if (!only_dead || names_dead(reply, record.grants[i].session))
            tokens[reply->ended_count++] = grant_token(&record.grants[i]);
}

/* Changes the reports of a store that judges by sessions, about leases and spans. */
static void spoil_judgement(struct store_reply *reply)
{
    bool conflict = fault_on == FAULT_ENDED_READS_ONLY && reply->result == REPLY_CONFLICT;
    if (fault_on == FAULT_ENDED_UNREPORTED || conflict)
        reply->ended_count = 0;
    if (fault_on == FAULT_ENDED_EARLY || fault_on == FAULT_DEATH_ENDS_LEASE)
        name_ended(reply, fault_on == FAULT_DEATH_ENDS_LEASE);
    if (fault_on == FAULT_COOLING_UNREPORTED || fault_on == FAULT_COOLING_EARLY)
        reply->cooling_over = fault_on == FAULT_COOLING_EARLY;
    if (fault_on == FAULT_DELAY_UNREPORTED || fault_on == FAULT_DELAY_EARLY)
        reply->delay_over = fault_on == FAULT_DELAY_EARLY;
}

/* Withholds one reply of many. */
static bool is_swallowed(const struct injected *injected, const struct store_reply *reply)
{
    enum { PAGE = 100 };
    const char *prefix = injected->request.key;
    enum store_verb verb = injected->request.verb;
    if (fault_on == FAULT_UNANSWERED)
        return verb == VERB_STORE_SWAP && reply->result == REPLY_CONFLICT;
    if (!reply->more)
        return false;
    switch (fault_on) {
    case FAULT_PREFIX_EXACT:
        return verb == VERB_STORE_LIST && strcmp(reply->key, prefix) != 0;
    case FAULT_PREFIX_FOLDER:
        return verb == VERB_STORE_LIST && prefix[0] != '\0' && prefix[strlen(prefix) - 1] != '/' &&
               strchr("/", reply->key[strlen(prefix)]) == NULL;
    case FAULT_LIST_FIRST_PAGE:
        return verb == VERB_STORE_LIST && injected->answers > PAGE;
    case FAULT_WATCH_ONCE:
        return verb == VERB_STORE_WATCH && injected->answers > 2;
    case FAULT_WATCH_NO_DELETE:
        return verb == VERB_STORE_WATCH && reply->key != NULL && !reply->present;
    case FAULT_HISTORY_NO_DELETE:
        return verb == VERB_STORE_HISTORY && !reply->present;
    case FAULT_HISTORY_CUT:
        return verb == VERB_STORE_HISTORY && injected->answers > 1;
    default:
        return false;
    }
}

static void on_reply(void *caller, const struct store_reply *reply)
{
    struct injected *injected = caller;
    struct store_reply notify = *reply;
    if (follow_up(injected, reply))
        return;
    injected->answers++;
    spoil_result(injected, &notify);
    spoil_stamp(injected, &notify);
    spoil_sessions(&notify);
    spoil_judgement(&notify);
    if (fault_on == FAULT_CACHED_READ && injected->request.verb == VERB_STORE_READ)
        answer_from_cache(injected, &notify);
    if (is_swallowed(injected, &notify))
        return;
    injected->done(injected->caller, &notify);
    if (fault_on == FAULT_ANSWERED_TWICE && injected->request.verb == VERB_STORE_SWAP)
        injected->done(injected->caller, &notify);
}

/* The driver. */

static void submit(void *state, const struct store_request *request, store_done *done, void *caller)
{
    struct injector *injector = state;
    struct injected *injected = allocate(sizeof *injected);
    *injected = (struct injected){.next = injector->all_injected,
                                  .injector = injector,
                                  .request = *request,
                                  .done = done,
                                  .caller = caller};
    injector->all_injected = injected;
    spoil_key(injected);
    spoil_bytes(injected);
    spoil_condition(injected);
    inner->submit(injector->state, &injected->request, on_reply, injected);
}

static void step(void *state)
{
    struct injector *injector = state;
    injector->batch_begun = false;
    if (inner->step != NULL)
        inner->step(injector->state);
}

static int fd_of(void *state)
{
    const struct injector *injector = state;
    return inner->fd(injector->state);
}

static int liveness(void *state)
{
    const struct injector *injector = state;
    return inner->liveness(injector->state);
}

static void on_notice(void *owner, const char *key, const struct store_reply *stands)
{
    const struct injector *injector = owner;
    struct store_reply notify = stands != NULL ? *stands : (struct store_reply){0};
    if (fault_on == FAULT_WAKE_TELLS_BEFORE)
        notify.written.revision--;
    injector->site.notice(injector->site.owner, key, stands != NULL ? &notify : NULL);
    if (fault_on == FAULT_WAKE_TWICE)
        injector->site.notice(injector->site.owner, key, stands);
}

static bool injector_open(void *state, const char *url, const struct store_callbacks *site,
                          struct text *why)
{
    struct injector *injector = state;
    *injector = (struct injector){.site = *site, .state = allocate(inner->state_size)};
    struct store_callbacks own = *site;
    own.notice = on_notice;
    own.owner = injector;
    if (inner->open(injector->state, url, &own, why))
        return true;
    free(injector->state);
    return false;
}

static void injector_close(void *state)
{
    struct injector *injector = state;
    inner->close(injector->state);
    free(injector->state);
    while (injector->all_injected != NULL) {
        struct injected *injected = injector->all_injected;
        injector->all_injected = injected->next;
        free(injected->key);
        free(injected->bytes);
        free(injected);
    }
    while (injector->all_cached != NULL) {
        struct cached *cached = injector->all_cached;
        injector->all_cached = cached->next;
        free(cached->key);
        free(cached->bytes);
        free(cached);
    }
}

static enum reply_status epoch(const char *url, const struct epoch_options *options,
                               struct epoch_state *out, struct text *why)
{
    struct epoch_options spoiled = *options;
    if (fault_on == FAULT_RAISE_IGNORED)
        spoiled.least = 0;
    enum reply_status result = inner->epoch(url, &spoiled, out, why);
    out->epoch = options->least > out->epoch ? options->least : out->epoch;
    return result;
}

const struct store_driver *inject_fault(const struct store_driver *driver, enum fault fault)
{
    static struct store_driver planted;
    unsigned unclaimed = fault == FAULT_CLAIMS_LESS ? STORE_TIME : 0;
    bool steps = driver->step != NULL || fault == FAULT_NO_OWN_OUTCOME;
    inner = driver;
    fault_on = fault;
    planted = (struct store_driver){.scheme = driver->scheme,
                                    .facts = driver->facts,
                                    .facts_at = driver->facts_at,
                                    .capabilities = driver->capabilities & ~unclaimed,
                                    .state_size = sizeof(struct injector),
                                    .open = injector_open,
                                    .close = injector_close,
                                    .submit = submit,
                                    .step = steps ? step : NULL,
                                    .fd = driver->fd != NULL ? fd_of : NULL,
                                    .liveness = driver->liveness != NULL ? liveness : NULL,
                                    .epoch = driver->epoch != NULL ? epoch : NULL};
    return &planted;
}
