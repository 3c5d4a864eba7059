/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls about workloads that do not block, through the public header, on a real API server: many at
 * once, from within each other, and ended by the closing of their handle. The objects are Leases,
 * which the shipped Role may touch: one that says done=yes has ended. on-k8s.sh workload_start
 */
#include "leasehold_workload.h"

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MANY = 12, MOST = 64, PATIENCE_S = 60 };

#define LEASE(labels) \
    "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {labels: {" labels "}}}"
#define RUNS LEASE("job: restart")
#define DONE LEASE("done: 'yes'")

static unsigned cases, failed;
static struct lh_report report;
static struct lh_workload seen;

/* What a started call came to. */
struct deed {
    sem_t over;
    unsigned calls;
    struct lh_lease *lease; /* none, ever */
    struct lh_workload workload;
    struct lh_report report;
    struct lh_workloads *workloads;      /* from within done: */
    struct deed *next;                   /* … is started */
    enum lh_outcome blocking, next_says; /* … and what was answered */
};

static void check(bool good, const char *name)
{
    if (!good) {
        failed++;
        printf("# %s: %s\n", lh_outcome_name(report.outcome), report.text);
    }
    printf("%sok %u - %s\n", good ? "" : "not ", ++cases, name);
    (void)fflush(stdout);
}

static struct lh_workloads *open_as(const char *url, const char *holder)
{
    struct lh_workloads_options options = LH_WORKLOADS_OPTIONS_INIT;
    struct lh_workloads *workloads = NULL;
    options.holder = holder;
    options.done_when = ".metadata.labels.done=yes";
    if (lh_workloads_open(url, RUNS, &options, &workloads, &report) == LH_OK)
        return workloads;
    printf("Bail out! %s\n", report.text);
    exit(1);
}

static struct lh_workload_options options_of(const char *manifest, const char *request,
                                             int64_t cooldown_ms, enum lh_until until)
{
    struct lh_workload_options options = LH_WORKLOAD_OPTIONS_INIT;
    options.manifest = manifest;
    options.request_id = request;
    options.cooldown_ms = cooldown_ms;
    options.until = until;
    return options;
}

static struct deed *new_deed(void)
{
    struct deed *deed = calloc(1, sizeof *deed);
    if (deed == NULL || sem_init(&deed->over, /* pshared= */ 0, 0) != 0)
        abort();
    return deed;
}

static void on_done(void *user, struct lh_lease *lease, const struct lh_report *said)
{
    struct deed *deed = user;
    deed->calls++;
    deed->lease = lease;
    deed->report = *said;
    if (deed->workloads != NULL) {
        struct lh_workloads *again = deed->workloads;
        lh_workloads_close(&again); /* nothing happens */
        deed->blocking =
            again == NULL ? LH_OK
                          : lh_workload_look(deed->workloads, "within", &deed->workload, &report);
        deed->next_says = lh_workload_look_start(deed->workloads, "within", &deed->next->workload,
                                                 on_done, deed->next, &report);
    }
    (void)sem_post(&deed->over);
}

static bool ended(struct deed *deed)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    bool over = sem_timedwait(&deed->over, &until) == 0 && deed->calls == 1 && deed->lease == NULL;
    report = deed->report;
    return over;
}

static void drop(struct deed *deed)
{
    (void)sem_destroy(&deed->over);
    free(deed);
}

static void many_at_once(struct lh_workloads *workloads)
{
    struct deed *deeds[MANY];
    char target[32];
    unsigned good = 0;
    struct lh_workload_options options = options_of(DONE, NULL, 0, LH_UNTIL_REMOVED);
    for (unsigned i = 0; i < MANY; i++) {
        deeds[i] = new_deed();
        (void)snprintf(target, sizeof target, "many-%u", i);
        good += lh_workload_run_start(workloads, target, &options, &deeds[i]->workload, on_done,
                                      deeds[i], &report) == LH_OK;
        memset(target, 'x', sizeof target - 1); /* words are copied */
    }
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(target, sizeof target, "many-%u", i);
        good += ended(deeds[i]) && report.outcome == LH_OK && strcmp(report.key, target) == 0 &&
                deeds[i]->workload.state == LH_WORKLOAD_DONE &&
                strstr(report.text, "is done, and was removed") != NULL;
        drop(deeds[i]);
    }
    check(good == 2 * MANY, "12 objects are created, followed and removed at once");
}

static void refusals(struct lh_workloads *workloads, struct lh_workloads *others)
{
    struct lh_workload_options options = options_of(RUNS, "mine", 60000, LH_UNTIL_CREATED);
    struct deed *busy = new_deed(), *look = new_deed(), *stale = new_deed(), *gone = new_deed();
    check(lh_workload_run(others, "taken", &options, &seen, &report) == LH_OK &&
              lh_workload_run_start(workloads, "taken", NULL, &busy->workload, on_done, busy,
                                    &report) == LH_OK &&
              ended(busy) && report.outcome == LH_BUSY && strcmp(report.holder, "others") == 0,
          "who comes second hears who was first");
    check(lh_workload_look_start(workloads, "taken", &look->workload, on_done, look, &report) ==
                  LH_OK &&
              ended(look) && report.outcome == LH_BUSY && look->workload.uid[0] != '\0' &&
              !look->workload.cached,
          "a look is answered");
    check(lh_workload_remove_start(workloads, "taken", "another", &stale->workload, on_done, stale,
                                   &report) == LH_OK &&
              ended(stale) && report.outcome == LH_STALE &&
              lh_workload_remove_start(workloads, "taken", "mine", &gone->workload, on_done, gone,
                                       &report) == LH_OK &&
              ended(gone) && report.outcome == LH_OK &&
              lh_workload_look(others, "taken", &seen, &report) == LH_OK,
          "a removal names whose it is");
    check(lh_workload_run_start(workloads, "", NULL, &seen, on_done, busy, &report) == LH_USAGE &&
              lh_workload_run_start(workloads, "t", NULL, &seen, NULL, NULL, &report) == LH_USAGE &&
              lh_workload_remove_start(NULL, "t", NULL, &seen, on_done, busy, &report) == LH_USAGE,
          "a wrong call is told at once");
    drop(busy), drop(look), drop(stale), drop(gone);
}

static void from_within(struct lh_workloads *workloads)
{
    struct deed *first = new_deed(), *second = new_deed();
    first->workloads = workloads;
    first->next = second;
    check(lh_workload_look_start(workloads, "within", &first->workload, on_done, first, &report) ==
                  LH_OK &&
              ended(first) && first->blocking == LH_USAGE && first->next_says == LH_OK &&
              ended(second) && report.outcome == LH_OK,
          "from within a function others can be started, nothing can block, nothing is closed");
    drop(first), drop(second);
}

static double now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* 64 that run for ever, one too many, and the handle is closed. */
static void closed_in_the_middle(const char *url)
{
    struct lh_workloads *workloads = open_as(url, "closed"), *later = open_as(url, "later");
    struct deed *deeds[MOST + 1];
    char target[32];
    unsigned begun = 0, told = 0, there = 0;
    struct lh_workload_options options = options_of(RUNS, "again", 0, LH_UNTIL_REMOVED);
    for (unsigned i = 0; i <= MOST; i++) {
        deeds[i] = new_deed();
        (void)snprintf(target, sizeof target, "long-%02u", i);
        begun += lh_workload_run_start(workloads, target, &options, &deeds[i]->workload, on_done,
                                       deeds[i], &report) == LH_OK;
    }
    check(begun == MOST && report.outcome == LH_FAILED, "64 of them are the most");
    for (unsigned tries = 0; tries < 600 && there < MOST; tries++) {
        const struct timespec pause = {.tv_nsec = 100000000};
        (void)nanosleep(&pause, NULL);
        (void)snprintf(target, sizeof target, "long-%02u", there);
        there += lh_workload_look(later, target, &seen, &report) == LH_BUSY;
        tries -= report.outcome == LH_BUSY ? 1 : 0;
    }
    double began_s = now_s();
    lh_workloads_close(&workloads);
    printf("# 64 that were followed ended %.2f s after the handle was closed\n", now_s() - began_s);
    for (unsigned i = 0; i < MOST; i++)
        told += deeds[i]->calls == 1 && deeds[i]->report.outcome == LH_BUSY &&
                strstr(deeds[i]->report.text, "being closed") != NULL;
    check(workloads == NULL && there == MOST && told == MOST && deeds[MOST]->calls == 0,
          "all of them are told that the handle is being closed, before it is");
    options.until = LH_UNTIL_CREATED;
    check(lh_workload_run(later, "long-07", &options, &seen, &report) == LH_OK,
          "the objects stay, and the same request id goes on with one");
    for (unsigned i = 0; i <= MOST; i++)
        drop(deeds[i]);
    lh_workloads_close(&later);
}

static void in_a_child(struct lh_workloads *workloads)
{
    int status = 1;
    struct deed *deed = new_deed();
    (void)fflush(stdout);
    if (fork() == 0) {
        bool lost =
            lh_workload_look_start(workloads, "t", &seen, on_done, deed, &report) == LH_LOST &&
            deed->calls == 0;
        lh_workloads_close(&workloads);
        _exit(lost && workloads == NULL ? 0 : 1);
    }
    check(wait(&status) > 0 && status == 0 &&
              lh_workload_look(workloads, "t", &seen, &report) == LH_OK,
          "a forked child is told that it has nothing, and its closing costs the parent nothing");
    drop(deed);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 64;
    struct lh_workloads *workloads = open_as(argv[1], "ours"), *others = open_as(argv[1], "others");
    many_at_once(workloads);
    refusals(workloads, others);
    from_within(workloads);
    in_a_child(workloads);
    closed_in_the_middle(argv[1]);
    printf("1..%u\n", cases);
    lh_workloads_close(&workloads);
    lh_workloads_close(&others);
    return failed != 0;
}
