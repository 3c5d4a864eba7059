/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See hostile.h: selects the cases, distributes them and reports. First every verb runs on a good
 * server, which counts its replies; then the planted faults must be found; then the cases run on
 * several workers with a server each. Prints TAP.
 *
 *   hostile_X [PROGRAM] [--sample N | --all] [--seed N] [--jobs N] [--timeout MS]
 *   hostile_X [PROGRAM] --one VARIANT VERB NTH|NTH+ [MODE]     one case, with the program's output
 */
#include "hostile.h"

#include "base/random.h"
#include "base/text.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

enum {
    VERBS_MAX = 64,
    NTH_MAX = 6,
    ALWAYS_MAX = 3,
    JOBS_MAX = 16,
    SHOWN = 1600,
    SHOWN_FAULTS = 60,
    USUAL_TIMEOUT_MS = 10000,
};

struct result {
    unsigned faults;
    int64_t took_ms, most_ms;
    long resident_kb;
    bool done, hit;
};

struct plan {
    const struct suite *suite;
    const char *program, *self;
    uint64_t seed, sample; /* UINT64_MAX: all */
    size_t jobs;
    int64_t usual_ms; /* the timeout of a program without --store-timeout */
    unsigned replies[VERBS_MAX][MODES_MAX];
    struct hostile_case *cases;
    size_t case_count;
    unsigned tap, failed;
};

/* Shared by all workers. */
struct board {
    atomic_size_t next, shown;
    struct result results[];
};

static void tap(struct plan *plan, bool ok, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void tap(struct plan *plan, bool ok, const char *format, ...)
{
    va_list arguments;
    char buffer[512];
    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it is, above */
    (void)vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    printf("%sok %u - %s\n", ok ? "" : "not ", ++plan->tap, buffer);
    (void)fflush(stdout);
    plan->failed += ok ? 0 : 1;
}

static const char *name_faults(unsigned faults)
{
    static const struct {
        unsigned fault;
        const char *name;
    } names[] = {{FAULT_CRASH, " crash"},   {FAULT_LATE, " late"},
                 {FAULT_STATUS, " status"}, {FAULT_CONTROL, " control character"},
                 {FAULT_MEMORY, " memory"}, {FAULT_TRUST, " trust"}};
    static char buffer[80];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if ((faults & names[i].fault) != 0)
            text_add(&text, names[i].name);
    }
    return buffer;
}

static bool is_of(const struct hostile_verb *verb, const struct suite *suite)
{
    return (verb->stores & suite->store) != 0;
}

static bool is_planted(const struct hostile_verb *verb, const struct suite *suite)
{
    return verb->plants != 0 && (verb->planted_on == 0 || (verb->planted_on & suite->store) != 0);
}

/* ---- printing one case ---- */

/* Printed at once: workers print concurrently. */
static void show(const struct plan *plan, const struct hostile_case *one, const struct run *run)
{
    const struct suite *suite = plan->suite;
    struct bytes text = {0};
    char line[1024];
    (void)snprintf(line, sizeof line,
                   "#%s: %s --one '%s' '%s' %u%s%s %zu%s\n#   status %d, %" PRId64 " of %" PRId64
                   " ms, %ld KB\n#   ",
                   name_faults(run->faults), suite->name, suite->variants[one->variant].name,
                   hostile_verbs[one->verb].name, one->nth, one->always ? "+" : "",
                   one->json ? "j" : "", one->mode, "", run->status, run->took_ms, run->most_ms,
                   run->resident_kb);
    bytes_add_text(&text, line);
    for (size_t i = 0; i < run->said.length && i < SHOWN; i++) {
        unsigned char byte = (unsigned char)run->said.at[i];
        if (byte == '\n')
            (void)snprintf(line, sizeof line, "\n#   ");
        else
            (void)snprintf(line, sizeof line, byte < 0x20 || byte > 0x7e ? "<%02x>" : "%c", byte);
        bytes_add_text(&text, line);
    }
    bytes_add_text(&text, "\n");
    (void)fwrite(text.at, 1, text.length, stdout);
    (void)fflush(stdout);
    bytes_free(&text);
}

/* ---- a good server, and planted faults ---- */

static void try_good(struct plan *plan, struct worker *worker)
{
    for (size_t i = 0; i < hostile_verb_count; i++) {
        const struct hostile_verb *verb = &hostile_verbs[i];
        bool good = true;
        for (size_t mode = 0; is_of(verb, plan->suite) && mode < plan->suite->mode_count; mode++) {
            struct hostile_case one = {.verb = i, .mode = mode};
            struct run run;
            worker_run(worker, &one, /* good= */ true, &run);
            plan->replies[i][mode] = run.replies;
            bool fine = run.faults == 0 && run.status == verb->good;
            if (!fine)
                show(plan, &one, &run);
            good = good && fine;
            bytes_free(&run.said);
        }
        if (is_of(verb, plan->suite))
            tap(plan, good, "%s: as usual on a good server, %u replies", verb->name,
                plan->replies[i][0]);
    }
}

/* Until the fault is found. */
static void find_planted(struct plan *plan, struct worker *worker, size_t number)
{
    const struct hostile_verb *verb = &hostile_verbs[number];
    bool found = false;
    size_t variant = 0;
    for (; variant < plan->suite->variant_count && !found; variant++) {
        struct hostile_case one = {.verb = number, .variant = variant, .nth = 1};
        struct run run;
        worker_run(worker, &one, /* good= */ false, &run);
        found = (run.faults & verb->plants) != 0;
        bytes_free(&run.said);
    }
    tap(plan, found, "%s: found by '%s'", verb->name,
        found ? plan->suite->variants[variant - 1].name : "none");
}

/* ---- cases ---- */

static void add_case(struct plan *plan, size_t variant, size_t verb, unsigned nth, bool always)
{
    size_t modes = plan->suite->mode_count, mode = (variant + verb + nth) % modes;
    if (plan->replies[verb][mode] < nth)
        mode = (mode + 1) % modes;
    if (plan->replies[verb][mode] < nth)
        return;
    if (plan->cases != NULL)
        plan->cases[plan->case_count] = (struct hostile_case){.variant = variant,
                                                              .verb = verb,
                                                              .mode = mode,
                                                              .nth = nth,
                                                              .always = always,
                                                              .json = (variant + nth) % 2 == 0};
    plan->case_count++;
}

static void add_all(struct plan *plan)
{
    plan->case_count = 0;
    for (size_t variant = 0; variant < plan->suite->variant_count; variant++) {
        for (size_t verb = 0; verb < hostile_verb_count; verb++) {
            if (!is_of(&hostile_verbs[verb], plan->suite))
                continue;
            for (unsigned nth = 1; nth <= NTH_MAX; nth++)
                add_case(plan, variant, verb, nth, /* always= */ false);
            for (unsigned nth = 1; nth <= ALWAYS_MAX; nth++)
                add_case(plan, variant, verb, nth, /* always= */ true);
        }
    }
}

static void swap_cases(struct hostile_case *one, struct hostile_case *other)
{
    struct hostile_case kept = *one;
    *one = *other;
    *other = kept;
}

/* All cases, or a sample in which every variant occurs equally often. */
static void choose_cases(struct plan *plan)
{
    struct random random = {.state = plan->seed};
    size_t chosen = 0, begin = 0;
    add_all(plan);
    plan->cases = calloc(plan->case_count + 1, sizeof *plan->cases);
    if (plan->cases == NULL)
        abort();
    add_all(plan);
    size_t all = plan->case_count;
    if (plan->sample >= all)
        return;
    size_t each = (size_t)(plan->sample / plan->suite->variant_count) + 1;
    for (size_t end = 0; end < all && chosen < plan->sample; begin = end) {
        while (end < all && plan->cases[end].variant == plan->cases[begin].variant)
            end++;
        for (size_t i = 0; i < each && begin + i < end && chosen < plan->sample; i++) {
            size_t left = end - begin - i;
            swap_cases(&plan->cases[begin + i],
                       &plan->cases[begin + i + random_below(&random, left)]);
            swap_cases(&plan->cases[chosen++], &plan->cases[begin + i]);
        }
    }
    plan->case_count = chosen;
}

static void work(const struct plan *plan, struct board *board, size_t number)
{
    struct worker worker;
    size_t index;
    if (!worker_open(&worker, plan->suite, plan->program, plan->self, number, plan->usual_ms))
        return;
    while ((index = atomic_fetch_add(&board->next, 1)) < plan->case_count) {
        struct run run;
        const struct hostile_case *one = &plan->cases[index];
        worker_run(&worker, one, /* good= */ false, &run);
        if (run.faults != 0 && atomic_fetch_add(&board->shown, 1) < SHOWN_FAULTS)
            show(plan, one, &run);
        board->results[index] = (struct result){.faults = run.faults,
                                                .took_ms = run.took_ms,
                                                .most_ms = run.most_ms,
                                                .resident_kb = run.resident_kb,
                                                .done = true,
                                                .hit = run.hit};
        bytes_free(&run.said);
    }
    worker_close(&worker);
}

static void report_verb(struct plan *plan, const struct board *board, size_t verb)
{
    unsigned runs = 0, hits = 0, faulty = 0, lost = 0;
    int64_t slowest_ms = 0;
    long most_kb = 0;
    for (size_t i = 0; i < plan->case_count; i++) {
        const struct result *result = &board->results[i];
        if (plan->cases[i].verb != verb)
            continue;
        runs++;
        lost += result->done ? 0 : 1;
        hits += result->hit ? 1 : 0;
        faulty += result->faults != 0 ? 1 : 0;
        slowest_ms = result->took_ms > slowest_ms ? result->took_ms : slowest_ms;
        most_kb = result->resident_kb > most_kb ? result->resident_kb : most_kb;
    }
    if (runs > 0)
        tap(plan, faulty == 0 && lost == 0,
            "%s: %u runs, %u met a hostile reply, %u faults, %u not run; %.1f s and %ld MB at most",
            hostile_verbs[verb].name, runs, hits, faulty, lost, (double)slowest_ms / 1000,
            most_kb / 1024);
}

static void run_cases(struct plan *plan)
{
    size_t size = sizeof(struct board) + plan->case_count * sizeof(struct result);
    struct board *board =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, /* fd= */ 0, 0);
    pid_t pids[JOBS_MAX];
    if (board == MAP_FAILED)
        abort();
    (void)fflush(stdout);
    for (size_t i = 0; i < plan->jobs; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            work(plan, board, i + 1);
            _exit(0);
        }
    }
    for (size_t i = 0; i < plan->jobs; i++)
        (void)waitpid(pids[i], NULL, 0);
    for (size_t i = 0; i < hostile_verb_count; i++)
        report_verb(plan, board, i);
    (void)munmap(board, size);
}

/* ---- the program ---- */

static size_t find_name(const struct plan *plan, const char *name, bool variant)
{
    size_t count = variant ? plan->suite->variant_count : hostile_verb_count;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, variant ? plan->suite->variants[i].name : hostile_verbs[i].name) == 0)
            return i;
    }
    fprintf(stderr, "no such %s: %s\n", variant ? "variant" : "verb", name);
    exit(64);
}

static int run_one(const struct plan *plan, char **buffer)
{
    struct worker worker;
    struct run run;
    struct hostile_case one = {.variant = find_name(plan, buffer[0], true),
                               .verb = find_name(plan, buffer[1], false),
                               .nth = (unsigned)strtoul(buffer[2], NULL, 10),
                               .always = strchr(buffer[2], '+') != NULL,
                               .json = strchr(buffer[2], 'j') != NULL,
                               .mode = buffer[3] != NULL ? strtoul(buffer[3], NULL, 10) : 0};
    if (!worker_open(&worker, plan->suite, plan->program, plan->self, 0, plan->usual_ms))
        return 1;
    worker_run(&worker, &one, /* good= */ one.nth == 0, &run);
    show(plan, &one, &run);
    printf("# %u replies%s\n", run.replies, run.hit ? "" : ", none of them hostile");
    bytes_free(&run.said);
    worker_close(&worker);
    return run.faults != 0 ? 1 : 0;
}

static int run_suite(struct plan *plan)
{
    struct worker worker;
    int64_t began_ms = wire_now_ms();
    if (!worker_open(&worker, plan->suite, plan->program, plan->self, 0, plan->usual_ms)) {
        tap(plan, false, "the server starts");
        return 1;
    }
    try_good(plan, &worker);
    for (size_t i = 0; i < hostile_verb_count; i++) {
        if (is_planted(&hostile_verbs[i], plan->suite))
            find_planted(plan, &worker, i);
    }
    worker_close(&worker);
    choose_cases(plan);
    printf("# %zu variants, seed %" PRIu64 ", %zu cases, %zu at a time, timeout %" PRId64 " ms\n",
           plan->suite->variant_count, plan->seed, plan->case_count, plan->jobs, worker.timeout_ms);
    run_cases(plan);
    free(plan->cases);
    printf("# %.0f s\n1..%u\n", (double)(wire_now_ms() - began_ms) / 1000, plan->tap);
    return plan->failed > 0 ? 1 : 0;
}

int hostile_main(const struct suite *suite, int argc, char **argv)
{
    static char self[PATH_MAX], program[PATH_MAX];
    struct plan plan = {.suite = suite,
                        .seed = 1,
                        .sample = 300,
                        .jobs = 3,
                        .usual_ms = USUAL_TIMEOUT_MS,
                        .self = self};
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (argc >= 5 && strcmp(argv[1], "--client") == 0)
        return hostile_client(argv + 2);
    if (length <= 0)
        return 70;
    (void)signal(SIGPIPE, SIG_IGN);
    (void)snprintf(program, sizeof program, "%.*s/../leasehold", (int)(strrchr(self, '/') - self),
                   self);
    plan.program = program;
    for (int i = 1; i < argc; i++) {
        uint64_t number = i + 1 < argc ? strtoull(argv[i + 1], NULL, 10) : 0;
        if (strcmp(argv[i], "--all") == 0)
            plan.sample = UINT64_MAX;
        else if (strcmp(argv[i], "--one") == 0 && i + 3 < argc)
            return run_one(&plan, argv + i + 1);
        else if (strcmp(argv[i], "--sample") == 0 && i++ < argc)
            plan.sample = number;
        else if (strcmp(argv[i], "--seed") == 0 && i++ < argc)
            plan.seed = number;
        else if (strcmp(argv[i], "--timeout") == 0 && i++ < argc)
            plan.usual_ms = (int64_t)number;
        else if (strcmp(argv[i], "--jobs") == 0 && i++ < argc)
            plan.jobs = number < 1 ? 1 : number > JOBS_MAX ? JOBS_MAX : (size_t)number;
        else if (argv[i][0] != '-' && realpath(argv[i], program) != NULL)
            continue;
        else
            return 64;
    }
    return run_suite(&plan);
}
