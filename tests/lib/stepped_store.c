/* SPDX-License-Identifier: Apache-2.0 */
/* See stepped_store.h. */
#include "stepped_store.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { ROOM = 1024 };

struct in_flight {
    struct store_request request;
    store_done *done;
    void *caller;
};

struct stepped {
    int event_fd;
    atomic_bool busy;
    void *records;
    struct in_flight queued[ROOM], sent[ROOM];
    size_t queued_count, sent_count;
};

struct stepped_notes stepped_notes;

static struct stepped *last_opened;
static _Thread_local char this_thread;
static _Atomic(const void *) stepper;

void stepped_forget(void)
{
    memset(&stepped_notes, 0, sizeof stepped_notes);
    atomic_store(&stepper, NULL);
}

static void note_thread(void)
{
    const void *nobody = NULL;
    if (!atomic_compare_exchange_strong(&stepper, &nobody, &this_thread) && nobody != &this_thread)
        atomic_fetch_add(&stepped_notes.other_threads, 1);
}

static bool stepped_open(void *state, const char *url, const struct store_callbacks *site,
                         struct text *why)
{
    struct stepped *stepped = state;
    memset(stepped, 0, sizeof *stepped);
    (void)url;
    stepped->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    stepped->records = malloc(memory_driver.state_size);
    if (stepped->event_fd >= 0 && stepped->records != NULL &&
        memory_driver.open(stepped->records, "memory:", site, why)) {
        last_opened = stepped;
        return true;
    }
    free(stepped->records);
    return false;
}

static void stepped_close(void *state)
{
    struct stepped *stepped = state;
    memory_driver.close(stepped->records);
    free(stepped->records);
    (void)close(stepped->event_fd);
}

static void stepped_submit(void *state, const struct store_request *request, store_done *done,
                           void *caller)
{
    struct stepped *stepped = state;
    note_thread();
    ASSERT(stepped->queued_count < ROOM);
    stepped->queued[stepped->queued_count++] =
        (struct in_flight){.request = *request, .done = done, .caller = caller};
    atomic_fetch_add(&stepped_notes.requests, 1);
}

static void on_write(void *caller, const struct store_reply *reply)
{
    *(bool *)caller = reply->result == REPLY_OK;
}

void stepped_write(const char *key, const char *bytes)
{
    bool wrote = false;
    struct store_request request = {.verb = VERB_STORE_SWAP,
                                    .key = key,
                                    .condition = {.kind = IF_ABSENT},
                                    .bytes = bytes,
                                    .length = strlen(bytes)};
    memory_driver.submit(last_opened->records, &request, on_write, &wrote);
    ASSERT(wrote);
}

static void answer_all(struct stepped *stepped)
{
    static struct in_flight arrived[ROOM];
    size_t count = stepped->sent_count;
    memcpy(arrived, stepped->sent, count * sizeof arrived[0]);
    stepped->sent_count = 0;
    for (size_t i = 0; i < count; i++)
        memory_driver.submit(stepped->records, &arrived[i].request, arrived[i].done,
                             arrived[i].caller);
}

static void send_all(struct stepped *stepped)
{
    uint64_t one = 1;
    if (stepped->queued_count == 0)
        return;
    ASSERT(stepped->sent_count + stepped->queued_count <= ROOM);
    memcpy(stepped->sent + stepped->sent_count, stepped->queued,
           stepped->queued_count * sizeof stepped->sent[0]);
    stepped->sent_count += stepped->queued_count;
    if (stepped->queued_count > atomic_load(&stepped_notes.most_together))
        atomic_store(&stepped_notes.most_together, (unsigned)stepped->queued_count);
    atomic_fetch_add(&stepped_notes.round_trips, 1);
    stepped->queued_count = 0;
    ssize_t rung = write(stepped->event_fd, &one, sizeof one);
    ASSERT(rung == sizeof one);
}

static void stepped_step(void *state)
{
    struct stepped *stepped = state;
    uint64_t count;
    note_thread();
    if (atomic_exchange(&stepped->busy, true))
        atomic_fetch_add(&stepped_notes.collisions, 1);
    bool rung = read(stepped->event_fd, &count, sizeof count) > 0;
    if (rung && !atomic_load(&stepped_notes.silent))
        answer_all(stepped);
    send_all(stepped);
    atomic_store(&stepped->busy, false);
}

static int stepped_fd(void *state)
{
    return ((struct stepped *)state)->event_fd;
}

const struct store_driver stepped_driver = {
    .scheme = "stepped",
    .capabilities =
        STORE_WATCHES | STORE_TIME | STORE_TESTS_GRANT | STORE_RENEWS_GRANT | STORE_DELETES,
    .state_size = sizeof(struct stepped),
    .facts = {STORE_USUAL_FACTS(WAITERS_MAX), .answer_ms = 1},
    .open = stepped_open,
    .close = stepped_close,
    .submit = stepped_submit,
    .step = stepped_step,
    .fd = stepped_fd,
};
