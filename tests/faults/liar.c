/* SPDX-License-Identifier: Apache-2.0 */
/* See liar.h. */
#include "liar.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

enum { LIES_IN = 3 }; /* one of so many chances is taken */

struct liar {
    struct random random;
    void *honest;
    /* What was first heard of the last key. */
    char key[KEY_MAX + 1];
    struct store_answer old;
    char bytes[RECORD_MAX];
};

struct errand {
    struct liar *liar;
    struct store_request request;
    store_done *done;
    void *caller;
};

static enum lie the_lie;
static const struct store_driver *honest_driver;

static void remember(struct liar *liar, const char *key, const struct store_answer *answer)
{
    if (strcmp(key, liar->key) == 0)
        return;
    text_copy(liar->key, sizeof liar->key, key);
    liar->old = *answer;
    liar->old.result = ANSWER_OK;
    liar->old.dead_count = liar->old.ended_count = 0;
    if (!answer->present)
        return;
    ASSERT(answer->length <= sizeof liar->bytes);
    memcpy(liar->bytes, answer->bytes, answer->length);
    liar->old.bytes = liar->bytes;
}

/* As if it had been written, by a write just after the one that was in its way. */
static struct store_answer swapped(const struct store_request *request,
                                   const struct store_answer *answer)
{
    struct store_answer lie = *answer;
    lie.result = ANSWER_OK;
    if (request->bytes == NULL)
        return lie;
    lie.present = true;
    lie.bytes = request->bytes;
    lie.length = request->length;
    lie.written.revision =
        answer->present ? answer->written.revision + 1 : request->condition.revision + 1;
    lie.written.time_ms = answer->now_ms;
    return lie;
}

static void pass_on(void *caller, const struct store_answer *answer)
{
    struct errand *errand = caller;
    struct liar *liar = errand->liar;
    const struct store_request *request = &errand->request;
    struct store_answer told = *answer;
    bool lies = random_below(&liar->random, LIES_IN) == 0;
    if (lies && the_lie == LIE_SWAPPED && request->verb == VERB_STORE_SWAP &&
        answer->result == ANSWER_CONFLICT)
        told = swapped(request, answer);
    bool knows = strcmp(request->key, liar->key) == 0;
    if (lies && the_lie == LIE_OLD_READ && request->verb == VERB_STORE_READ && knows) {
        told = liar->old;
        told.now_ms = answer->now_ms;
    }
    if (answer->result == ANSWER_OK || answer->result == ANSWER_CONFLICT)
        remember(liar, request->key, answer);
    errand->done(errand->caller, &told);
    free(errand);
}

static void submit(void *state, const struct store_request *request, store_done *done, void *caller)
{
    struct liar *liar = state;
    struct errand *errand = malloc(sizeof *errand);
    if (errand == NULL)
        abort();
    *errand = (struct errand){.liar = liar, .request = *request, .done = done, .caller = caller};
    honest_driver->submit(liar->honest, request, pass_on, errand);
}

static bool open_liar(void *state, const char *url, const struct store_site *site, struct text *why)
{
    struct liar *liar = state;
    liar->random.state = site->session;
    liar->honest = calloc(1, honest_driver->state_size);
    if (liar->honest == NULL)
        abort();
    return honest_driver->open(liar->honest, url, site, why);
}

static void close_liar(void *state)
{
    struct liar *liar = state;
    honest_driver->close(liar->honest);
    free(liar->honest);
}

static void step(void *state)
{
    struct liar *liar = state;
    honest_driver->step(liar->honest);
}

static int fd(void *state)
{
    struct liar *liar = state;
    return honest_driver->fd(liar->honest);
}

const struct store_driver *liar_prepare(enum lie lie, const struct store_driver *honest)
{
    /* Claims no more than the core needs to be one that relies on the store's clock. */
    const unsigned claims = STORE_TIME | STORE_ONE_CLOCK | STORE_TESTS_GRANT | STORE_DELETES;
    static struct store_driver driver;
    the_lie = lie;
    honest_driver = honest;
    driver = (struct store_driver){
        .scheme = "liar",
        .capabilities = honest->capabilities & claims,
        .state_size = sizeof(struct liar),
        .open = open_liar,
        .close = close_liar,
        .submit = submit,
        .step = step,
        .waits = honest->waits,
        .fd = fd,
    };
    return &driver;
}
