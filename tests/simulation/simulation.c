/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs seeds in parallel processes, by default two, and prints the counts: simulation [--seeds N]
 * [--first N] [--jobs N] [--executor 0|1] [--local-queue 0|1] [--judge any|session|heartbeat]
 * [--replay SEED] [--mutant NAME].
 * Output is TAP. A violation prints its seed; `make replay SEED=…` prints every decision that led
 * to it.
 */
#include "pollers.h"
#include "script.h"

#include "core/mutant.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { JOBS_MAX = 16 };

/* The settings and the findings of a run. */
struct plan {
    uint64_t first, seeds;
    unsigned jobs;
};

struct result {
    struct counts counts;
    uint64_t seeds, violations, bad_seed;
    char violation[512];
};

static struct world world; /* large: kept off the stack */

/* Every fifth seed has ids and watermarks. */
static void play_seed(uint64_t seed, struct counts *counts, FILE *trace)
{
    if (pollers_has(seed))
        pollers_play(&world, seed, counts, trace);
    else
        script_play(&world, seed, counts, trace);
}

static void play(uint64_t seed, struct result *result)
{
    play_seed(seed, &result->counts, NULL);
    result->seeds++;
    if (world.violation[0] == '\0')
        return;
    if (result->violations++ == 0) {
        result->bad_seed = seed;
        memcpy(result->violation, world.violation, sizeof result->violation);
    }
}

/* One of the processes: every jobs-th seed. Stops at its first violation. */
static void run_job(const struct plan *plan, unsigned job, struct result *result)
{
    time_t said = time(NULL);
    for (uint64_t i = job; i < plan->seeds && result->violations == 0; i += plan->jobs) {
        play(plan->first + i, result);
        if (job == 0 && time(NULL) - said >= 20) {
            said = time(NULL);
            (void)fprintf(stderr, "# %" PRIu64 " of %" PRIu64 " seeds\n", i, plan->seeds);
        }
    }
}

static void add_counts(struct result *sum, const struct result *part)
{
    uint64_t *to = (uint64_t *)&sum->counts;
    const uint64_t *from = (const uint64_t *)&part->counts;
    for (size_t i = 0; i < sizeof sum->counts / sizeof *to; i++)
        to[i] += from[i];
    sum->seeds += part->seeds;
    if (part->violations > 0 && (sum->violations == 0 || part->bad_seed < sum->bad_seed)) {
        sum->bad_seed = part->bad_seed;
        memcpy(sum->violation, part->violation, sizeof sum->violation);
    }
    sum->violations += part->violations;
}

/* Runs the plan in child processes; if one dies (a failed assertion), that is a violation, too. */
static void run(const struct plan *plan, struct result *sum)
{
    int pipes[JOBS_MAX][2];
    pid_t pids[JOBS_MAX];
    for (unsigned job = 0; job < plan->jobs; job++) {
        if (pipe(pipes[job]) != 0 || (pids[job] = fork()) < 0)
            abort();
        if (pids[job] == 0) {
            struct result result = {0};
            run_job(plan, job, &result);
            exit(write(pipes[job][1], &result, sizeof result) == (ssize_t)sizeof result ? 0 : 1);
        }
        (void)close(pipes[job][1]);
    }
    for (unsigned job = 0; job < plan->jobs; job++) {
        struct result part = {0};
        int status = 0;
        if (read(pipes[job][0], &part, sizeof part) != (ssize_t)sizeof part) {
            part = (struct result){.violations = 1, .bad_seed = plan->first + job};
            (void)snprintf(part.violation, sizeof part.violation, "the core's assert ended it");
        }
        (void)close(pipes[job][0]);
        (void)waitpid(pids[job], &status, 0);
        add_counts(sum, &part);
    }
}

static int replay(uint64_t seed)
{
    struct counts counts = {0};
    (void)printf("seed %" PRIu64 " (%s)\n", seed, script_is_wild(seed) ? "wild" : "tame");
    play_seed(seed, &counts, stdout);
    (void)printf("%s\n", world.violation[0] != '\0' ? world.violation : "no violation");
    return world.violation[0] != '\0' ? 1 : 0;
}

#define COUNT_LIST(X) \
    X(operations)     \
    X(grants)         \
    X(renewals)       \
    X(waits)          \
    X(offers)         \
    X(passed_on)      \
    X(passed_live)    \
    X(expiries)       \
    X(takeovers)      \
    X(told_lost)      \
    X(breaks)         \
    X(cooldowns)      \
    X(crashes)        \
    X(pauses)         \
    X(outages)        \
    X(raises)         \
    X(lost_requests)  \
    X(lost_answers)   \
    X(doubled)        \
    X(slow)           \
    X(lost_notices)   \
    X(unavailable)    \
    X(stale_attempts) \
    X(overlaps)

/* For seeds with ids and watermarks. */
#define ID_COUNT_LIST(X) \
    X(events)            \
    X(claims)            \
    X(running)           \
    X(told_done)         \
    X(retaken)           \
    X(deeds)             \
    X(abandoned)         \
    X(mismatches)        \
    X(refused_tokens)    \
    X(polls)             \
    X(advances)          \
    X(refused_advances)  \
    X(full)

#define LOCAL_QUEUE_COUNT_LIST(X) \
    X(hand_overs)                 \
    X(local_waits)                \
    X(known_busy)                 \
    X(cancels)                    \
    X(away)

/* True if the short grace is found within a few seeds: a check of the check. */
static bool short_grace_is_caught(uint64_t *out_seeds)
{
    enum { SEEDS = 500 };
    struct result result = {0};
    script_short_grace = true;
    for (uint64_t seed = 1; seed <= SEEDS && result.violations == 0; seed++)
        play(seed, &result);
    script_short_grace = false;
    *out_seeds = result.seeds;
    return strstr(result.violation, "offer grace") != NULL;
}

static int report(const struct plan *plan, const struct result *sum, double seconds)
{
    unsigned test = 0, zeros = 0;
    bool safe = sum->violations == 0 && sum->seeds == plan->seeds;
    (void)printf("# seeds %" PRIu64 " to %" PRIu64 ", every fifth with wild clocks; %.1f s\n",
                 plan->first, plan->first + plan->seeds - 1, seconds);
    (void)printf("%sok %u - %" PRIu64 " seeds, %" PRIu64 " steps, %" PRIu64 " violations\n",
                 safe ? "" : "not ", ++test, sum->seeds, sum->counts.steps, sum->violations);
    if (!safe)
        (void)printf("# seed %" PRIu64
                     ": %s\n# see it with: build/sim/tests/simulation%s%s --replay %" PRIu64 "\n",
                     sum->bad_seed, sum->violation,
                     script_with_local_queue ? " --local-queue 1"
                     : script_on_executor    ? " --executor 1"
                                             : "",
                     script_with_heartbeats ? " --judge heartbeat"
                     : script_by_session    ? " --judge session"
                                            : "",
                     sum->bad_seed);
#define PRINT_COUNT(name)                                             \
    (void)printf("#   %-16s %" PRIu64 "\n", #name, sum->counts.name); \
    zeros += sum->counts.name == 0 ? 1 : 0;
    COUNT_LIST(PRINT_COUNT)
    ID_COUNT_LIST(PRINT_COUNT)
    if (script_with_heartbeats || !script_by_session) {
        PRINT_COUNT(beats)
        PRINT_COUNT(read_renewals)
    }
    if (script_with_local_queue) {
        LOCAL_QUEUE_COUNT_LIST(PRINT_COUNT)
    } else {
        PRINT_COUNT(histories)
        PRINT_COUNT(returned)
    }
#undef PRINT_COUNT
    (void)printf("%sok %u - every kind of trouble happened\n", zeros == 0 ? "" : "not ", ++test);
    (void)printf("%sok %u - stale writes: %" PRIu64 " attempted, %" PRIu64 " accepted\n",
                 sum->counts.stale_accepted == 0 ? "" : "not ", ++test, sum->counts.stale_attempts,
                 sum->counts.stale_accepted);
    uint64_t seeds = 0;
    bool caught = short_grace_is_caught(&seeds);
    (void)printf("%sok %u - a grace of 1 s on a slow store is caught, after %" PRIu64 " seeds\n",
                 caught ? "" : "not ", ++test, seeds);
    (void)printf("1..%u\n", test);
    return safe && caught && zeros == 0 && sum->counts.stale_accepted == 0 ? 0 : 1;
}

static void choose_mutant(const char *name)
{
#ifdef LH_MUTANTS
    static const char *const names[] = {"NONE",
#define MUTANT_WORD(mutant, text) #mutant,
                                        MUTANT_LIST(MUTANT_WORD)
#undef MUTANT_WORD
    };
    for (int i = 1; i < MUTANT_COUNT; i++)
        if (strcmp(names[i], name) == 0) {
            mutant_on = (enum mutant)i;
            return;
        }
#endif
    (void)fprintf(stderr, "simulation: no mutant %s in this build\n", name);
    exit(64);
}

/* Exit status 3 and one line if the mutant was caught. */
static int hunt(const struct plan *plan, const char *name)
{
    struct plan one = {.jobs = 1};
    for (uint64_t i = 0; i < plan->seeds; i++) {
        struct result sum = {0};
        one.first = plan->first + i;
        one.seeds = 1;
        run(&one, &sum);
        if (sum.violations > 0) {
            (void)printf("caught %s by simulation after %" PRIu64 " seeds: %s\n", name, i + 1,
                         sum.violation);
            return 3;
        }
    }
    (void)printf("missed %s: simulation, %" PRIu64 " seeds\n", name, plan->seeds);
    return 0;
}

static void choose_judge(const char *name)
{
    script_with_heartbeats = strcmp(name, "heartbeat") == 0;
    script_by_session = script_with_heartbeats || strcmp(name, "session") == 0;
}

int main(int argc, char **argv)
{
    struct plan plan = {.first = 1, .seeds = 500, .jobs = 2};
    const char *mutant = NULL;
    uint64_t replayed = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        uint64_t number = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--seeds") == 0)
            plan.seeds = number;
        else if (strcmp(argv[i], "--first") == 0)
            plan.first = number;
        else if (strcmp(argv[i], "--jobs") == 0 && number > 0 && number <= JOBS_MAX)
            plan.jobs = (unsigned)number;
        else if (strcmp(argv[i], "--executor") == 0)
            script_on_executor = number != 0;
        else if (strcmp(argv[i], "--local-queue") == 0)
            script_with_local_queue = number != 0;
        else if (strcmp(argv[i], "--judge") == 0)
            choose_judge(argv[i + 1]);
        else if (strcmp(argv[i], "--replay") == 0)
            replayed = number;
        else if (strcmp(argv[i], "--mutant") == 0)
            mutant = argv[i + 1];
        else
            return 64;
    }
    if (mutant != NULL)
        choose_mutant(mutant);
    if (replayed != 0)
        return replay(replayed);
    if (mutant != NULL)
        return hunt(&plan, mutant);
    struct result sum = {0};
    struct timespec from, to;
    (void)clock_gettime(CLOCK_MONOTONIC, &from);
    run(&plan, &sum);
    (void)clock_gettime(CLOCK_MONOTONIC, &to);
    return report(&plan, &sum,
                  (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9);
}
