/* SPDX-License-Identifier: Apache-2.0 */
/* See faulty_driver.h. */
#include "faulty_driver.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

enum { DEFECT_ONE_IN = 3 }; /* one of N opportunities is taken */

struct faulty {
    struct random random;
    void *inner;
    /* The first reply about the last key. */
    char key[KEY_MAX + 1];
    struct store_reply old;
    char bytes[RECORD_MAX];
};

struct pending {
    struct faulty *faulty;
    struct store_request request;
    store_done *done;
    void *caller;
};

static enum defect active_defect;
static const struct store_driver *inner_driver;

static void remember(struct faulty *faulty, const char *key, const struct store_reply *reply)
{
    if (strcmp(key, faulty->key) == 0)
        return;
    text_copy(faulty->key, sizeof faulty->key, key);
    faulty->old = *reply;
    faulty->old.result = REPLY_OK;
    faulty->old.dead_count = faulty->old.ended_count = 0;
    if (!reply->present)
        return;
    ASSERT(reply->length <= sizeof faulty->bytes);
    memcpy(faulty->bytes, reply->bytes, reply->length);
    faulty->old.bytes = faulty->bytes;
}

/* As if it had been written, by a write just after the conflicting one. */
static struct store_reply swapped(const struct store_request *request,
                                  const struct store_reply *reply)
{
    struct store_reply defect = *reply;
    defect.result = REPLY_OK;
    if (request->bytes == NULL)
        return defect;
    defect.present = true;
    defect.bytes = request->bytes;
    defect.length = request->length;
    defect.written.revision =
        reply->present ? reply->written.revision + 1 : request->condition.revision + 1;
    defect.written.time_ms = reply->now_ms;
    return defect;
}

static void pass_on(void *caller, const struct store_reply *reply)
{
    struct pending *pending = caller;
    struct faulty *faulty = pending->faulty;
    const struct store_request *request = &pending->request;
    struct store_reply notify = *reply;
    bool is_due = random_below(&faulty->random, DEFECT_ONE_IN) == 0;
    if (is_due && active_defect == DEFECT_SWAPPED && request->verb == VERB_STORE_SWAP &&
        reply->result == REPLY_CONFLICT)
        notify = swapped(request, reply);
    bool knows = strcmp(request->key, faulty->key) == 0;
    if (is_due && active_defect == DEFECT_OLD_READ && request->verb == VERB_STORE_READ && knows) {
        notify = faulty->old;
        notify.now_ms = reply->now_ms;
    }
    if (reply->result == REPLY_OK || reply->result == REPLY_CONFLICT)
        remember(faulty, request->key, reply);
    pending->done(pending->caller, &notify);
    free(pending);
}

static void submit(void *state, const struct store_request *request, store_done *done, void *caller)
{
    struct faulty *faulty = state;
    struct pending *pending = malloc(sizeof *pending);
    if (pending == NULL)
        abort();
    *pending =
        (struct pending){.faulty = faulty, .request = *request, .done = done, .caller = caller};
    inner_driver->submit(faulty->inner, request, pass_on, pending);
}

static bool faulty_open(void *state, const char *url, const struct store_callbacks *site,
                        struct text *why)
{
    struct faulty *faulty = state;
    faulty->random.state = site->session;
    faulty->inner = calloc(1, inner_driver->state_size);
    if (faulty->inner == NULL)
        abort();
    return inner_driver->open(faulty->inner, url, site, why);
}

static void faulty_close(void *state)
{
    struct faulty *faulty = state;
    inner_driver->close(faulty->inner);
    free(faulty->inner);
}

static void step(void *state)
{
    struct faulty *faulty = state;
    inner_driver->step(faulty->inner);
}

static int fd(void *state)
{
    struct faulty *faulty = state;
    return inner_driver->fd(faulty->inner);
}

const struct store_driver *faulty_driver_prepare(enum defect defect,
                                                 const struct store_driver *inner)
{
    /* Declares only what the core needs to rely on the store's clock. */
    const unsigned claims =
        STORE_TIME | STORE_ONE_CLOCK | STORE_TESTS_GRANT | STORE_RENEWS_GRANT | STORE_DELETES;
    static struct store_driver driver;
    active_defect = defect;
    inner_driver = inner;
    driver = (struct store_driver){
        .scheme = "liar",
        .capabilities = inner->capabilities & claims,
        .facts = inner->facts,
        .facts_at = inner->facts_at,
        .state_size = sizeof(struct faulty),
        .open = faulty_open,
        .close = faulty_close,
        .submit = submit,
        .step = step,
        .waits = inner->waits,
        .fd = fd,
    };
    return &driver;
}
