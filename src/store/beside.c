/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See beside.h. Two queues under one mutex: requests on their way to the thread, and what it has to
 * tell. Only the thread touches the store once it runs.
 */
#include "store/beside.h"

#include "base/check.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { BESIDE_MAGIC = 0xbe51de, REQUESTS_MAX = 1024, UNHEARD_MAX = 4096 };

/* A request of somebody's, until its last answer is told. */
struct errand {
    struct errand *next, *before;
    struct beside *beside;
    struct store_request request;
    store_done *done;
    void *caller;
    struct news *spare; /* for the answer that memory is short */
};

/* An answer with copies of all it points to, or a notice, which has no errand. */
struct news {
    struct news *next;
    struct errand *errand;
    struct store_answer answer;
    char bytes[];
};

struct beside {
    uint32_t magic;
    const struct store_driver *driver;
    void *state;
    struct store_site site; /* the caller's */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t heard;
    int work, tell; /* eventfds: to the thread, to the caller */
    bool ending;
    size_t errand_count, unheard;
    struct errand *errands[REQUESTS_MAX]; /* not yet taken by the thread */
    struct errand *all;
    struct news *first, **last;
};

static void ring(int bell)
{
    uint64_t one = 1;
    while (write(bell, &one, sizeof one) < 0 && errno == EINTR) {
    }
}

static void quiet(int bell)
{
    uint64_t count;
    while (read(bell, &count, sizeof count) < 0 && errno == EINTR) {
    }
}

static void free_errand(struct errand *errand)
{
    free(errand->spare);
    free(errand);
}

/* Under the mutex. */
static void forget(struct beside *beside, struct errand *errand)
{
    if (errand->next != NULL)
        errand->next->before = errand->before;
    if (errand->before != NULL)
        errand->before->next = errand->next;
    else
        beside->all = errand->next;
    free_errand(errand);
}

/* In the thread. Somebody who does not listen holds up the store, not the memory. */
static void tell(struct beside *beside, struct news *news)
{
    (void)pthread_mutex_lock(&beside->mutex);
    while (beside->unheard >= UNHEARD_MAX && !beside->ending)
        (void)pthread_cond_wait(&beside->heard, &beside->mutex);
    *beside->last = news;
    beside->last = &news->next;
    if (beside->unheard++ == 0)
        ring(beside->tell);
    (void)pthread_mutex_unlock(&beside->mutex);
}

static void *keep(char **at, const void *from, size_t length)
{
    void *kept = *at;
    if (length > 0)
        memcpy(kept, from, length);
    *at += (length + 7) / 8 * 8;
    return kept;
}

/* NULL when memory is short. */
static struct news *copy_of(const struct store_answer *answer)
{
    size_t key = answer->key != NULL ? strlen(answer->key) + 1 : 0;
    size_t why = answer->why != NULL ? strlen(answer->why) + 1 : 0;
    size_t dead = answer->dead_count * sizeof *answer->dead_sessions;
    size_t ended = answer->ended_count * sizeof *answer->ended_tokens;
    size_t length = answer->present ? answer->length : 0;
    struct news *news =
        malloc(sizeof *news + key + why + dead + ended + length + 5 * sizeof(uint64_t));
    if (news == NULL)
        return NULL;
    char *at = news->bytes;
    news->next = NULL;
    news->errand = NULL;
    news->answer = *answer;
    news->answer.dead_sessions = keep(&at, answer->dead_sessions, dead);
    news->answer.ended_tokens = keep(&at, answer->ended_tokens, ended);
    news->answer.bytes = keep(&at, answer->bytes, length);
    news->answer.key = key > 0 ? keep(&at, answer->key, key) : NULL;
    news->answer.why = why > 0 ? keep(&at, answer->why, why) : NULL;
    return news;
}

static const struct store_answer short_of_memory = {
    .result = ANSWER_TROUBLE, .now_ms = TIME_UNKNOWN, .why = "memory is short"};

static void answered(void *caller, const struct store_answer *answer)
{
    struct errand *errand = caller;
    struct news *news = copy_of(answer);
    if (errand->spare == NULL) /* of a list or a watch: for the next time */
        errand->spare = copy_of(&short_of_memory);
    if (news == NULL && errand->spare == NULL)
        return; /* it was told so already */
    if (news == NULL) {
        news = errand->spare;
        errand->spare = NULL;
        news->answer.more = answer->more;
    }
    news->errand = errand;
    tell(errand->beside, news);
}

static void noticed(void *owner, const char *key, const struct store_answer *stands)
{
    struct store_answer answer = stands != NULL ? *stands : (struct store_answer){0};
    answer.key = key;
    struct news *news = copy_of(&answer);
    if (news != NULL)
        tell(owner, news);
}

static void *work(void *argument)
{
    struct beside *beside = argument;
    const struct store_driver *driver = beside->driver;
    struct pollfd waits[2] = {{.fd = beside->work, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
    struct errand *errands[REQUESTS_MAX];
    if (driver->fd != NULL)
        waits[1].fd = driver->fd(beside->state);
    for (;;) {
        (void)poll(waits, 2, /* timeout= */ -1);
        quiet(beside->work);
        (void)pthread_mutex_lock(&beside->mutex);
        size_t count = beside->errand_count;
        bool ending = beside->ending;
        memcpy(errands, beside->errands, count * sizeof(struct errand *));
        beside->errand_count = 0;
        (void)pthread_mutex_unlock(&beside->mutex);
        if (ending)
            return NULL;
        for (size_t i = 0; i < count; i++)
            driver->submit(beside->state, &errands[i]->request, answered, errands[i]);
        if (driver->step != NULL)
            driver->step(beside->state);
    }
}

static bool start(struct beside *beside)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    bool runs = pthread_create(&beside->thread, NULL, work, beside) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return runs;
}

static void free_all(struct beside *beside)
{
    if (beside->work >= 0)
        (void)close(beside->work);
    if (beside->tell >= 0)
        (void)close(beside->tell);
    (void)pthread_mutex_destroy(&beside->mutex);
    (void)pthread_cond_destroy(&beside->heard);
    free(beside->state);
    free(beside);
}

struct beside *beside_new(const struct store_driver *driver, const char *url,
                          const struct store_site *site, struct text *why)
{
    struct beside *beside = calloc(1, sizeof *beside);
    if (beside == NULL) {
        text_add(why, "memory is short");
        return NULL;
    }
    struct store_site inner = *site;
    inner.notice = noticed;
    inner.owner = beside;
    *beside = (struct beside){.magic = BESIDE_MAGIC,
                              .driver = driver,
                              .state = malloc(driver->state_size),
                              .site = *site,
                              .work = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                              .tell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                              .last = &beside->first};
    (void)pthread_mutex_init(&beside->mutex, NULL);
    (void)pthread_cond_init(&beside->heard, NULL);
    if (beside->state == NULL || beside->work < 0 || beside->tell < 0)
        text_add(why, "no memory or no descriptor is left");
    else if (driver->open(beside->state, url, &inner, why)) {
        if (start(beside))
            return beside;
        text_add(why, "no thread can be started");
        driver->close(beside->state);
    }
    free_all(beside);
    return NULL;
}

void beside_free(struct beside **beside_pointer)
{
    struct beside *beside = *beside_pointer;
    if (beside == NULL)
        return;
    ASSERT(beside->magic == BESIDE_MAGIC);
    (void)pthread_mutex_lock(&beside->mutex);
    beside->ending = true;
    (void)pthread_cond_broadcast(&beside->heard);
    (void)pthread_mutex_unlock(&beside->mutex);
    ring(beside->work);
    (void)pthread_join(beside->thread, NULL);
    beside->driver->close(beside->state);
    while (beside->first != NULL) {
        struct news *news = beside->first;
        beside->first = news->next;
        free(news);
    }
    while (beside->all != NULL) {
        struct errand *errand = beside->all;
        beside->all = errand->next;
        free_errand(errand);
    }
    beside->magic = 0;
    free_all(beside);
    *beside_pointer = NULL;
}

void beside_submit(struct beside *beside, const struct store_request *request, store_done *done,
                   void *caller)
{
    ASSERT(beside->magic == BESIDE_MAGIC);
    struct errand *errand = malloc(sizeof *errand);
    struct news *spare = copy_of(&short_of_memory);
    bool taken = false;
    (void)pthread_mutex_lock(&beside->mutex);
    if (errand != NULL && spare != NULL && beside->errand_count < REQUESTS_MAX) {
        *errand = (struct errand){.next = beside->all,
                                  .beside = beside,
                                  .request = *request,
                                  .done = done,
                                  .caller = caller,
                                  .spare = spare};
        if (beside->all != NULL)
            beside->all->before = errand;
        beside->all = errand;
        beside->errands[beside->errand_count] = errand;
        taken = true;
        if (beside->errand_count++ == 0)
            ring(beside->work);
    }
    (void)pthread_mutex_unlock(&beside->mutex);
    if (taken)
        return;
    struct store_answer answer = {.result = ANSWER_TROUBLE,
                                  .now_ms = TIME_UNKNOWN,
                                  .why = "too many requests at once, or memory is short"};
    free(spare);
    free(errand);
    done(caller, &answer);
}

int beside_fd(const struct beside *beside)
{
    return beside->tell;
}

int beside_liveness(struct beside *beside)
{
    return beside->driver->liveness != NULL ? beside->driver->liveness(beside->state) : -1;
}

void beside_step(struct beside *beside)
{
    ASSERT(beside->magic == BESIDE_MAGIC);
    (void)pthread_mutex_lock(&beside->mutex);
    struct news *news = beside->first, *next;
    beside->first = NULL;
    beside->last = &beside->first;
    beside->unheard = 0;
    quiet(beside->tell);
    (void)pthread_cond_signal(&beside->heard);
    (void)pthread_mutex_unlock(&beside->mutex);
    for (; news != NULL; news = next) {
        next = news->next;
        struct errand *errand = news->errand;
        if (errand != NULL)
            errand->done(errand->caller, &news->answer);
        else if (beside->site.notice != NULL)
            beside->site.notice(beside->site.owner, news->answer.key,
                                news->answer.present ? &news->answer : NULL);
        if (errand != NULL && !news->answer.more) {
            (void)pthread_mutex_lock(&beside->mutex);
            forget(beside, errand);
            (void)pthread_mutex_unlock(&beside->mutex);
        }
        free(news);
    }
}
