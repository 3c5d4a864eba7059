/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See plant.h. A fault spoils a request before it is submitted, follows it up with another one that
 * should never be, or spoils the answer. State is kept only where a fault needs a memory.
 */
#include "plant.h"

#include "base/check.h"
#include "wire/record_codec.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* What a fault remembers of a key. */
struct memo {
    struct memo *next;
    char *key;
    uint64_t base;              /* REUSED_REVISION: where its count began */
    struct store_answer answer; /* CACHED_READ */
    char *bytes;
};

/* A request on its way; kept until the store is closed, as are its bytes. */
struct graft {
    struct graft *next;
    struct plant *plant;
    struct store_request request; /* as it was submitted */
    store_done *done;
    void *caller;
    bool followed_up;
    size_t answers;
    char *key, *bytes;
};

struct plant {
    void *state; /* of the driver behind */
    struct store_site site;
    struct graft *grafts;
    struct memo *memos;
    enum answer first; /* of the batch */
    bool batch_begun;
    int64_t time_ms;
};

static const struct store_driver *inner;
static enum fault fault_on;
static struct record record;

static const struct {
    const char *name, *where, *words;
    unsigned needs;
} faults[] = {{"NONE", "", "", 0},
#define FAULT_ROW(name, where, needs, words) {#name, where, words, needs},
              FAULT_LIST(FAULT_ROW)
#undef FAULT_ROW
};

const char *fault_name(enum fault fault)
{
    return faults[fault].name;
}

const char *fault_words(enum fault fault)
{
    return faults[fault].words;
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

static struct memo *memo_of(struct plant *plant, const char *key)
{
    struct memo *memo = plant->memos;
    while (memo != NULL && strcmp(memo->key, key) != 0)
        memo = memo->next;
    if (memo != NULL)
        return memo;
    memo = allocate(sizeof *memo);
    memo->key = strdup(key);
    memo->next = plant->memos;
    plant->memos = memo;
    return memo;
}

/* Requests. */

static void spoil_key(struct graft *graft)
{
    enum { CUT = 255 };
    graft->key = strdup(graft->request.key);
    ASSERT(graft->key != NULL);
    for (char *letter = graft->key; fault_on == FAULT_KEYS_FOLDED && *letter != '\0'; letter++)
        *letter = (char)tolower((unsigned char)*letter);
    if (fault_on == FAULT_KEYS_CUT && strlen(graft->key) > CUT)
        graft->key[CUT] = '\0';
    if (fault_on == FAULT_WATCH_ALL && graft->request.verb == VERB_STORE_WATCH)
        graft->key[0] = '\0';
    graft->request.key = graft->key;
}

static void compose(struct graft *graft)
{
    struct store_request *request = &graft->request;
    static const char apart[] = "e\xcc\x81", composed[] = "\xc3\xa9";
    char *at = memmem(graft->bytes, request->length, apart, strlen(apart));
    while (at != NULL) {
        char *rest = at + strlen(apart);
        size_t left = request->length - (size_t)(rest - graft->bytes);
        memcpy(at, composed, strlen(composed));
        memmove(at + strlen(composed), rest, left);
        request->length--;
        at = memmem(graft->bytes, request->length, apart, strlen(apart));
    }
}

static void spoil_bytes(struct graft *graft)
{
    enum { CUT = 32 * 1024 };
    struct store_request *request = &graft->request;
    if (request->bytes == NULL)
        return;
    graft->bytes = allocate(request->length);
    memcpy(graft->bytes, request->bytes, request->length);
    request->bytes = graft->bytes;
    if (fault_on == FAULT_RECORDS_CUT && request->length > CUT)
        request->length = CUT;
    if (fault_on == FAULT_BYTES_NORMALISED)
        compose(graft);
}

static void spoil_condition(struct graft *graft)
{
    struct condition *condition = &graft->request.condition;
    if (fault_on == FAULT_TOKEN_NOT_TESTED && condition->kind == IF_REVISION)
        condition->token = 0;
    if (fault_on == FAULT_REUSED_REVISION) {
        uint64_t base = memo_of(graft->plant, graft->request.key)->base;
        condition->revision += condition->kind == IF_REVISION ? base : 0;
        condition->token += condition->token != 0 ? base << 10 : 0;
    }
    if (fault_on == FAULT_POKE_LOST)
        graft->request.poke_count = 0;
}

/* Further requests that no driver may make. */

static bool has_token(uint64_t token)
{
    return record_grant_by_token(&record, token) != NULL;
}

static bool read_standing(const struct store_answer *answer)
{
    struct codec_error error;
    if (!answer->present ||
        record_decode(answer->bytes, answer->length, &record, &error) != DECODE_OK)
        return false;
    record_resolve(&record, &answer->written);
    return record.grant_count > 0;
}

/* The standing record once more, one of its grants spoiled. */
static bool rewrite(struct graft *graft, uint64_t token)
{
    struct grant *grant = record_grant_by_token(&record, token);
    grant = grant != NULL ? grant : &record.grants[0];
    grant->renewed = (struct stamp){.revision = THIS_WRITE};
    grant->ttl_ms = graft->request.ttl_ms;
    if (fault_on == FAULT_RENEW_MOVES_TOKEN)
        grant->granted = grant->renewed;
    graft->bytes = allocate(RECORD_MAX + 1);
    graft->request.bytes = graft->bytes;
    graft->request.length = record_encode(&record, graft->bytes, RECORD_MAX + 1);
    return graft->request.length > 0;
}

static bool follows_swap(struct graft *graft, const struct store_answer *answer)
{
    const struct condition *condition = &graft->request.condition;
    bool refused = answer->result == ANSWER_CONFLICT;
    if (fault_on == FAULT_LAST_WRITER_WINS)
        return refused && condition->kind == IF_ABSENT;
    if (fault_on == FAULT_FORGETS_DONE)
        return refused && condition->kind == IF_ABSENT && !read_standing(answer);
    if (condition->kind != IF_GRANT || !read_standing(answer))
        return false;
    if (fault_on == FAULT_RENEW_MOVES_TOKEN)
        return !refused && rewrite(graft, condition->token);
    bool renews = fault_on == FAULT_BLIND_RENEW ||
                  (fault_on == FAULT_LATE_RENEW && has_token(condition->token));
    return refused && renews && rewrite(graft, condition->token);
}

static bool follows_delete(const struct graft *graft, const struct store_answer *answer)
{
    const struct condition *condition = &graft->request.condition;
    if (answer->result != ANSWER_CONFLICT || !answer->present)
        return false;
    if (fault_on == FAULT_UNCONDITIONAL_DELETE)
        return true;
    return fault_on == FAULT_DELETE_WITH_ALL && condition->kind == IF_GRANT &&
           read_standing(answer) && has_token(condition->token);
}

static void hear(void *caller, const struct store_answer *answer);

/* True when the request goes on with another one instead of being answered. */
static bool follow_up(struct graft *graft, const struct store_answer *answer)
{
    enum store_verb verb = graft->request.verb;
    bool follows = (verb == VERB_STORE_SWAP && follows_swap(graft, answer)) ||
                   (verb == VERB_STORE_DELETE && follows_delete(graft, answer));
    if (graft->followed_up || !follows)
        return false;
    graft->followed_up = true;
    graft->request.condition =
        (struct condition){.kind = IF_REVISION, .revision = answer->written.revision};
    inner->submit(graft->plant->state, &graft->request, hear, graft);
    return true;
}

/* Answers. */

static void spoil_result(struct graft *graft, struct store_answer *answer)
{
    struct plant *plant = graft->plant;
    enum store_verb verb = graft->request.verb;
    bool refused = answer->result == ANSWER_CONFLICT;
    if (fault_on == FAULT_LOST_CONFLICT && verb == VERB_STORE_SWAP && refused)
        answer->result = ANSWER_OK;
    if (fault_on == FAULT_BARE_CONFLICT && refused)
        answer->present = false;
    if (fault_on == FAULT_DELETE_OF_NOTHING && verb == VERB_STORE_DELETE && !answer->present)
        answer->result = ANSWER_OK;
    if (fault_on == FAULT_REVISION_BEFORE && verb == VERB_STORE_SWAP && !refused)
        answer->written.revision--;
    if (fault_on == FAULT_NO_OWN_OUTCOME && verb == VERB_STORE_SWAP) {
        plant->first = plant->batch_begun ? plant->first : answer->result;
        plant->batch_begun = true;
        answer->result = plant->first;
    }
}

static void spoil_stamp(struct graft *graft, struct store_answer *answer)
{
    struct plant *plant = graft->plant;
    const char *key = answer->key != NULL ? answer->key : graft->request.key;
    if (fault_on == FAULT_REUSED_REVISION) {
        struct memo *memo = memo_of(plant, key);
        bool made = answer->result == ANSWER_OK && graft->request.verb == VERB_STORE_SWAP &&
                    graft->request.condition.kind == IF_ABSENT;
        if (made)
            memo->base = answer->written.revision - 1;
        answer->written.revision -= answer->present ? memo->base : 0;
    }
    if (answer->present && fault_on == FAULT_TIME_OF_ANSWER)
        answer->written.time_ms = answer->now_ms;
    if (answer->present && answer->written.time_ms > plant->time_ms)
        plant->time_ms = answer->written.time_ms;
    if (fault_on == FAULT_TIME_STANDS)
        answer->now_ms = plant->time_ms;
}

static void answer_from_cache(struct graft *graft, struct store_answer *answer)
{
    struct memo *memo = memo_of(graft->plant, graft->request.key);
    if (memo->bytes == NULL && answer->present) {
        memo->bytes = allocate(answer->length);
        memcpy(memo->bytes, answer->bytes, answer->length);
        memo->answer = *answer;
        memo->answer.bytes = memo->bytes;
    }
    if (memo->bytes != NULL) {
        int64_t now_ms = answer->now_ms;
        *answer = memo->answer;
        answer->now_ms = now_ms;
    }
}

static void spoil_sessions(struct store_answer *answer)
{
    static uint64_t sessions[GRANTS_MAX + PLACES_MAX];
    if (fault_on == FAULT_NONE_DEAD)
        answer->dead_count = 0;
    if (fault_on != FAULT_ALL_DEAD || !read_standing(answer))
        return;
    answer->dead_sessions = sessions;
    answer->dead_count = 0;
    for (size_t i = 0; i < record.grant_count; i++)
        sessions[answer->dead_count++] = record.grants[i].session;
    for (size_t i = 0; i < record.place_count; i++)
        sessions[answer->dead_count++] = record.places[i].session;
}

/* One answer of many that is kept from the caller. */
static bool is_swallowed(const struct graft *graft, const struct store_answer *answer)
{
    enum { PAGE = 100 };
    const char *prefix = graft->request.key;
    enum store_verb verb = graft->request.verb;
    if (fault_on == FAULT_UNANSWERED)
        return verb == VERB_STORE_SWAP && answer->result == ANSWER_CONFLICT;
    if (!answer->more)
        return false;
    switch (fault_on) {
    case FAULT_PREFIX_EXACT:
        return verb == VERB_STORE_LIST && strcmp(answer->key, prefix) != 0;
    case FAULT_PREFIX_FOLDER:
        return verb == VERB_STORE_LIST && prefix[0] != '\0' && prefix[strlen(prefix) - 1] != '/' &&
               strchr("/", answer->key[strlen(prefix)]) == NULL;
    case FAULT_LIST_FIRST_PAGE:
        return verb == VERB_STORE_LIST && graft->answers > PAGE;
    case FAULT_WATCH_ONCE:
        return verb == VERB_STORE_WATCH && graft->answers > 2;
    case FAULT_WATCH_NO_DELETE:
        return verb == VERB_STORE_WATCH && answer->key != NULL && !answer->present;
    case FAULT_HISTORY_NO_DELETE:
        return verb == VERB_STORE_HISTORY && !answer->present;
    case FAULT_HISTORY_CUT:
        return verb == VERB_STORE_HISTORY && graft->answers > 1;
    default:
        return false;
    }
}

static void hear(void *caller, const struct store_answer *answer)
{
    struct graft *graft = caller;
    struct store_answer told = *answer;
    if (follow_up(graft, answer))
        return;
    graft->answers++;
    spoil_result(graft, &told);
    spoil_stamp(graft, &told);
    spoil_sessions(&told);
    if (fault_on == FAULT_CACHED_READ && graft->request.verb == VERB_STORE_READ)
        answer_from_cache(graft, &told);
    if (is_swallowed(graft, &told))
        return;
    graft->done(graft->caller, &told);
    if (fault_on == FAULT_ANSWERED_TWICE && graft->request.verb == VERB_STORE_SWAP)
        graft->done(graft->caller, &told);
}

/* The driver. */

static void submit(void *state, const struct store_request *request, store_done *done, void *caller)
{
    struct plant *plant = state;
    struct graft *graft = allocate(sizeof *graft);
    *graft = (struct graft){
        .next = plant->grafts, .plant = plant, .request = *request, .done = done, .caller = caller};
    plant->grafts = graft;
    spoil_key(graft);
    spoil_bytes(graft);
    spoil_condition(graft);
    inner->submit(plant->state, &graft->request, hear, graft);
}

static void step(void *state)
{
    struct plant *plant = state;
    plant->batch_begun = false;
    if (inner->step != NULL)
        inner->step(plant->state);
}

static int fd_of(void *state)
{
    const struct plant *plant = state;
    return inner->fd(plant->state);
}

static int liveness(void *state)
{
    const struct plant *plant = state;
    return inner->liveness(plant->state);
}

static void hear_notice(void *owner, const char *key, const struct store_answer *stands)
{
    const struct plant *plant = owner;
    struct store_answer told = stands != NULL ? *stands : (struct store_answer){0};
    if (fault_on == FAULT_POKE_TELLS_BEFORE)
        told.written.revision--;
    plant->site.notice(plant->site.owner, key, stands != NULL ? &told : NULL);
    if (fault_on == FAULT_POKE_TWICE)
        plant->site.notice(plant->site.owner, key, stands);
}

static bool open_plant(void *state, const char *url, const struct store_site *site,
                       struct text *why)
{
    struct plant *plant = state;
    *plant = (struct plant){.site = *site, .state = allocate(inner->state_size)};
    struct store_site own = *site;
    own.notice = hear_notice;
    own.owner = plant;
    if (inner->open(plant->state, url, &own, why))
        return true;
    free(plant->state);
    return false;
}

static void close_plant(void *state)
{
    struct plant *plant = state;
    inner->close(plant->state);
    free(plant->state);
    while (plant->grafts != NULL) {
        struct graft *graft = plant->grafts;
        plant->grafts = graft->next;
        free(graft->key);
        free(graft->bytes);
        free(graft);
    }
    while (plant->memos != NULL) {
        struct memo *memo = plant->memos;
        plant->memos = memo->next;
        free(memo->key);
        free(memo->bytes);
        free(memo);
    }
}

const struct store_driver *plant_fault(const struct store_driver *driver, enum fault fault)
{
    static struct store_driver planted;
    unsigned unclaimed = fault == FAULT_CLAIMS_LESS ? STORE_TIME : 0;
    bool steps = driver->step != NULL || fault == FAULT_NO_OWN_OUTCOME;
    inner = driver;
    fault_on = fault;
    planted = (struct store_driver){.scheme = driver->scheme,
                                    .ttl_least_ms = driver->ttl_least_ms,
                                    .capabilities = driver->capabilities & ~unclaimed,
                                    .state_size = sizeof(struct plant),
                                    .open = open_plant,
                                    .close = close_plant,
                                    .submit = submit,
                                    .step = steps ? step : NULL,
                                    .fd = driver->fd != NULL ? fd_of : NULL,
                                    .liveness = driver->liveness != NULL ? liveness : NULL,
                                    .margin_ms = driver->margin_ms};
    return &planted;
}
