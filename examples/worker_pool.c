/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool of workers that share a list of jobs and never do one twice: worker_pool URL JOBS. Each
 * job is a key. The worker that acquires it does the job, and releases it with a cooldown, so that
 * the others get LH_COOLING and skip it. Several processes on one shared store do every job once.
 * Prints one line for each job that it did.
 */
#include <leasehold.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORKERS = 4 };

struct pool {
    struct lh_client *client;
    int jobs;
};

struct worker {
    const struct pool *pool;
    pthread_t thread;
    int number;
    int troubles;
};

/* True if this worker need not try the job again. */
static bool try_job(struct worker *worker, int job)
{
    char key[64];
    struct lh_lease *lease = NULL;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    options.cooldown_ms = 600000;
    (void)snprintf(key, sizeof key, "job/%d", job);
    switch (lh_acquire(worker->pool->client, key, &options, &lease, &report)) {
    case LH_OK:
        printf("job %d by worker %d\n", job, worker->number);
        break;
    case LH_BUSY:    /* another worker does it */
    case LH_COOLING: /* another worker has done it */
        return true;
    default: /* the state of the job is unknown */
        fprintf(stderr, "worker_pool: %s\n", report.text);
        return false;
    }
    /* The job is done only if the lease was held until the end. */
    return lh_release(&lease, &report) == LH_OK;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    for (int i = 0; i < worker->pool->jobs; i++) {
        int job = (i + worker->number * worker->pool->jobs / WORKERS) % worker->pool->jobs;
        if (!try_job(worker, job))
            worker->troubles++;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct worker workers[WORKERS];
    struct pool pool = {NULL, argc == 3 ? (int)strtol(argv[2], NULL, 10) : 0};
    struct lh_report report = LH_REPORT_INIT;
    int troubles = 0, started = 0;
    if (pool.jobs <= 0) {
        fprintf(stderr, "usage: worker_pool URL JOBS\n");
        return 64;
    }
    if (lh_open(argv[1], NULL, &pool.client, &report) != LH_OK) {
        fprintf(stderr, "worker_pool: %s\n", report.text);
        return 69;
    }
    for (; started < WORKERS; started++) {
        workers[started] = (struct worker){.pool = &pool, .number = started};
        if (pthread_create(&workers[started].thread, NULL, work, &workers[started]) != 0)
            break;
    }
    for (int i = 0; i < started; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        troubles += workers[i].troubles;
    }
    lh_close(&pool.client);
    return started == WORKERS && troubles == 0 ? 0 : 1;
}
