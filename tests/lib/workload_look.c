/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lh_workload_look() with a watch, through the public header, on a real API server: results from
 * the watch cache send no request, by the server's audit log, and only the create decides. The
 * objects are Leases, which the shipped Role allows; one with done=yes has ended. on-k8s.sh
 * workload_look
 */
#include "leasehold_workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOOKS = 1000, ROUNDS = 30 };

#define LEASE(labels) \
    "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {labels: {" labels "}}}"
#define RUNS LEASE("job: restart")
#define DONE LEASE("done: 'yes'")

static unsigned cases, failed;
static struct lh_report report = LH_REPORT_INIT;
static struct lh_workload seen = LH_WORKLOAD_INIT;

static void check(bool good, const char *name)
{
    if (!good) {
        failed++;
        printf("# %s: %s\n", lh_outcome_name(report.outcome), report.text);
    }
    printf("%sok %u - %s\n", good ? "" : "not ", ++cases, name);
}

static struct lh_workloads *open_as(const char *url, const char *holder, bool watch)
{
    struct lh_workloads_options options = LH_WORKLOADS_OPTIONS_INIT;
    struct lh_workloads *workloads = NULL;
    options.holder = holder;
    options.done_when = ".metadata.labels.done=yes";
    options.watch = watch;
    if (lh_workloads_open(url, RUNS, &options, &workloads, &report) == LH_OK)
        return workloads;
    printf("Bail out! %s\n", report.text);
    exit(1);
}

static enum lh_outcome create(struct lh_workloads *workloads, const char *target,
                              const char *manifest, int64_t cooldown_ms)
{
    struct lh_workload_options options = LH_WORKLOAD_OPTIONS_INIT;
    options.manifest = manifest;
    options.cooldown_ms = cooldown_ms;
    options.until = LH_UNTIL_CREATED;
    return lh_workload_run(workloads, target, &options, &seen, &report);
}

/* Creates, follows and removes an object. */
static bool run_whole(struct lh_workloads *workloads, const char *target)
{
    struct lh_workload_options options = LH_WORKLOAD_OPTIONS_INIT;
    options.manifest = DONE;
    options.cooldown_ms = 0;
    return lh_workload_run(workloads, target, &options, &seen, &report) == LH_OK &&
           strstr(report.text, "is done, and was removed") != NULL;
}

/* Polls until the watch cache has that outcome. */
static bool becomes(struct lh_workloads *workloads, const char *target, enum lh_outcome outcome)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    for (unsigned i = 0; i < 5000; i++) {
        if (lh_workload_look(workloads, target, &seen, &report) == outcome)
            return true;
        (void)nanosleep(&pause, NULL);
    }
    return false;
}

/* Finished requests in the server's audit log. */
static unsigned ended(bool watches)
{
    unsigned count = 0;
    char *line = NULL;
    size_t size = 0;
    FILE *file = fopen(getenv("K8S_AUDIT"), "re");
    while (file != NULL && getline(&line, &size, file) > 0)
        count += (strstr(line, "\"verb\":\"watch\"") != NULL) == watches;
    free(line);
    if (file != NULL)
        (void)fclose(file);
    return count;
}

static unsigned requests(void)
{
    return ended(/* watches= */ false);
}

/* A child's copy of the handle shares the parent's connections. */
static void fork_and_close(struct lh_workloads *workloads)
{
    const struct timespec pause = {.tv_nsec = 500000000};
    unsigned watches = ended(/* watches= */ true);
    int status = 1;
    (void)fflush(stdout);
    if (fork() == 0) {
        bool lost = lh_workload_look(workloads, "t1", &seen, &report) == LH_LOST;
        lh_workloads_close(&workloads);
        _exit(lost && workloads == NULL ? 0 : 1);
    }
    check(wait(&status) > 0 && status == 0, "a forked child is told that it has nothing");
    (void)nanosleep(&pause, NULL);
    check(lh_workload_look(workloads, "t5", &seen, &report) == LH_OK && seen.cached &&
              ended(/* watches= */ true) == watches,
          "that the child closes it does not end the parent's watch");
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 64;
    struct lh_workloads *mine = open_as(argv[1], "wfe-mine", /* watch= */ true);
    struct lh_workloads *others = open_as(argv[1], "wfe-other", /* watch= */ false);
    check(lh_workload_look(mine, "t1", &seen, &report) == LH_OK && seen.cached,
          "a free target is free in the watched copy");

    check(create(others, "t1", RUNS, 60000) == LH_OK && becomes(mine, "t1", LH_BUSY) &&
              seen.cached && strcmp(report.holder, "wfe-other") == 0,
          "what others create is told by the watch");
    unsigned before = requests();
    unsigned busy = 0;
    for (unsigned i = 0; i < LOOKS; i++)
        busy += lh_workload_look(mine, "t1", &seen, &report) == LH_BUSY && seen.cached &&
                strstr(report.text, "ResourceBusy (held by wfe-other)") != NULL;
    busy += create(mine, "t1", RUNS, 60000) == LH_BUSY && seen.cached;
    check(before > 0 && busy == LOOKS + 1 && requests() == before,
          "checkResourceLock() finds Running: 1001 answers, no request");

    check(create(others, "t2", DONE, 60000) == LH_OK && becomes(mine, "t2", LH_COOLING),
          "an object that has ended cools down");
    before = requests();
    bool cooling = create(mine, "t2", RUNS, 60000) == LH_COOLING && seen.cached &&
                   strstr(report.text, "RecentlyRemediated (by wfe-other, ") != NULL &&
                   report.ends_in_ms > 0 && report.ends_in_ms <= 61000;
    check(cooling && requests() == before, "checkResourceLock() finds Cooldown: no request");

    /* An outdated cache grants nothing: this handle has received no event since. */
    struct lh_workloads *late = open_as(argv[1], "wfe-late", /* watch= */ true);
    check(lh_workload_look(late, "t3", &seen, &report) == LH_OK && seen.cached &&
              create(others, "t3", RUNS, 0) == LH_OK && create(late, "t3", RUNS, 0) == LH_BUSY &&
              strcmp(report.holder, "wfe-other") == 0,
          "the create decides, whatever the copy says");

    check(lh_workload_remove(others, "t1", NULL, &seen, &report) == LH_OK &&
              becomes(mine, "t1", LH_OK) && create(mine, "t1", RUNS, 0) == LH_OK && !seen.cached,
          "what others remove is free, and can be taken");
    check(create(others, "t4", DONE, 0) == LH_OK && create(mine, "t4", RUNS, 0) == LH_OK,
          "what is over is removed by whoever comes next");
    check(create(mine, "t6", DONE, 60000) == LH_OK &&
              lh_workload_look(mine, "t6", &seen, &report) == LH_COOLING && seen.cached &&
              lh_workload_remove(mine, "t6", NULL, &seen, &report) == LH_OK &&
              create(mine, "t6", RUNS, 0) == LH_OK,
          "what one does oneself is in the copy at once");
    unsigned whole = 0;
    for (unsigned i = 0; i < ROUNDS; i++)
        whole += run_whole(mine, "t5");
    check(whole == ROUNDS, "one that watches all follows its own, also before the watch tells it");
    fork_and_close(mine);
    printf("1..%u\n", cases);
    lh_workloads_close(&mine);
    lh_workloads_close(&others);
    lh_workloads_close(&late);
    return failed != 0;
}
