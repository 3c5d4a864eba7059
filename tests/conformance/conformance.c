/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One suite for all drivers, against the real store. Cases that a store cannot run by its
 * capability bits are skipped with a reason; another case checks that no promised bit is missing.
 *
 *   conformance URL [--processes N] [--only WORDS]    TAP; exit status 1 if a case failed
 *   conformance URL … --store-thread                  the driver in its own thread
 *   conformance memory: … --clock zero|largest|today  the start of the injected clock
 *   conformance sessions: …                           a store of the tests, without a clock
 *   conformance URL [--processes N] --mutants         TAP; every planted fault must be caught
 *   conformance URL … --mutants --turn K/N            those whose number is K modulo N
 *   conformance URL [--processes N] --mutant NAME     the suite with one of them
 */
#include "conformance.h"

#include "threaded_driver.h"
#include "parties.h"
#include "fault_injector.h"
#include "session_driver.h"

#include "base/check.h"
#include "store/admin.h"

#include <ctype.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Quick groups first: a planted fault is caught by the first case that can. */
static const struct test_group *const chapters[] = {
    &record_tests,     &key_tests,     &batch_tests, &model_tests, &watch_tests,
    &durability_tests, &session_tests, &judge_tests, &grant_tests, &rules_tests,
    &lease_tests,      &once_tests,    &epoch_tests,
};

/* The promised bits of each store. Nothing else depends on a store's name. */
static const struct {
    const char *scheme;
    int64_t ttl_least_ms;
    unsigned least;
} promises[] = {
    {"memory", 10, STORE_WATCHES | STORE_TIME | STORE_DELETES},
    {"sessions", 10, STORE_WATCHES | STORE_SESSIONS | STORE_DELETES | STORE_TELLS},
    {"file", 100,
     STORE_DURABLE | STORE_WATCHES | STORE_TIME | STORE_SESSIONS | STORE_HISTORY | STORE_DELETES |
         STORE_TOKENS_RESTART | STORE_EPOCH},
    {"redis", 500,
     STORE_DURABLE | STORE_WATCHES | STORE_TIME | STORE_DELETES | STORE_TOKENS_RESTART |
         STORE_TELLS | STORE_EPOCH},
    {"rediss", 500,
     STORE_DURABLE | STORE_WATCHES | STORE_TIME | STORE_DELETES | STORE_TOKENS_RESTART |
         STORE_TELLS | STORE_EPOCH},
    {"etcd", 0,
     STORE_DURABLE | STORE_WATCHES | STORE_SESSIONS | STORE_DELETES | STORE_TOKENS_RESTART |
         STORE_TOKENS_FAILOVER},
    {"postgres", 0,
     STORE_DURABLE | STORE_WATCHES | STORE_TIME | STORE_HISTORY | STORE_DELETES |
         STORE_TOKENS_RESTART},
    {"k8s", 1000,
     STORE_DURABLE | STORE_WATCHES | STORE_TIME | STORE_DELETES | STORE_TOKENS_RESTART |
         STORE_TOKENS_FAILOVER | STORE_EPOCH},
    {"github", 1000,
     STORE_DURABLE | STORE_SESSIONS | STORE_RENEWS_SESSION | STORE_HISTORY | STORE_TOKENS_RESTART},
};

static const char *const bit_names[] = {
#define BIT_NAME(name, message) #name,
    STORE_CAPABILITY_LIST(BIT_NAME)
#undef BIT_NAME
};

enum { BITS = sizeof bit_names / sizeof bit_names[0] };

static struct {
    const struct store_driver *driver;
    const char *url, *only;
    unsigned processes;
    unsigned turn, turns; /* the planted faults of this run */
    bool hunting;         /* for a planted fault */
    uint64_t run;         /* keys of this process only */
    size_t number, failed;
    char prefix[64];
    char failure[512], note[512];
    uint16_t epoch;      /* the highest of a reply */
    const char *lacking; /* found missing by the case itself */
    jmp_buf out;
} suite;

unsigned suite_bits(void)
{
    return suite.driver->capabilities;
}

struct store_facts suite_facts(void)
{
    return store_facts_at(suite.driver, suite.url);
}

int64_t suite_soon_ms(void)
{
    enum { IN_EARNEST_MS = 10000, IN_A_HUNT_MS = 1500 };
    /* With a coarse clock even a correct store needs longer than the limit for a planted fault. */
    struct store_facts facts = suite_facts();
    if (facts.renews_by_session) /* a killed process is dead after its last heartbeat's TTL */
        return IN_EARNEST_MS + facts.ttl_ms + facts.margin_ms;
    return suite.hunting && facts.margin_ms == 0 ? IN_A_HUNT_MS : IN_EARNEST_MS;
}

const char *run_prefix(void)
{
    static char prefix[32];
    (void)snprintf(prefix, sizeof prefix, "conform-%" PRIx64 "/", suite.run);
    return prefix;
}

const char *case_prefix(void)
{
    return suite.prefix;
}

uint16_t suite_epoch_seen(void)
{
    return suite.epoch;
}

enum reply_status suite_epoch(uint16_t least, struct epoch_state *out)
{
    char message[256];
    struct text why;
    struct epoch_options options = {.least = least};
    text_init(&why, message, sizeof message);
    enum reply_status result = suite.driver->epoch(suite.url, &options, out, &why);
    if (result != REPLY_OK)
        (void)snprintf(suite.note, sizeof suite.note, "the epoch: %s", message);
    return result;
}

void suite_note(unsigned client, const struct store_reply *reply)
{
    if (reply->present && reply->written.epoch > suite.epoch)
        suite.epoch = reply->written.epoch;
    static const char *const results[] = {
        [REPLY_OK] = "ok",         [REPLY_CONFLICT] = "conflict", [REPLY_TROUBLE] = "trouble",
        [REPLY_DENIED] = "denied", [REPLY_FULL] = "full",         [REPLY_INVALID] = "invalid"};
    (void)snprintf(suite.note, sizeof suite.note,
                   "the last answer, to client %u: %s, %s, revision %" PRIu64 ", time %" PRId64
                   ", now %" PRId64 "%s%.300s",
                   client, results[reply->result], reply->present ? "present" : "absent",
                   reply->written.revision, reply->written.time_ms, reply->now_ms,
                   reply->why != NULL ? ": " : "", reply->why != NULL ? reply->why : "");
}

void suite_fail(const char *what)
{
    (void)snprintf(suite.failure, sizeof suite.failure, "%s", what);
    longjmp(suite.out, 1);
}

void suite_fail_at(const char *what, const char *file, int line)
{
    const char *folder = strrchr(file, '/');
    (void)snprintf(suite.failure, sizeof suite.failure, "%s:%d: %s",
                   folder != NULL ? folder + 1 : file, line, what);
    longjmp(suite.out, 1);
}

void suite_skip(const char *what)
{
    suite.lacking = what;
    longjmp(suite.out, 1);
}

/* Removes the keys of the case from a store that others use. */
static void clean_up(void)
{
    if ((suite_bits() & STORE_DELETES) == 0)
        return;
    struct client_replies client_replies = list_keys(0, suite.prefix);
    for (size_t i = 0; i < client_replies.count; i++) {
        const struct store_reply *reply = &client_replies.list[i].reply;
        (void)ask(0, deleting(reply->key, if_write(&reply->written)));
    }
}

static bool attempt(void (*run)(void))
{
    suite.failure[0] = suite.note[0] = '\0';
    if (setjmp(suite.out) == 0)
        run();
    return suite.failure[0] == '\0';
}

static void open_clients(void)
{
    clients_open(suite.driver, suite.url, suite.processes);
}

static void print_failure(void)
{
    printf("# %s\n", suite.failure);
    if (suite.note[0] != '\0')
        printf("# %s\n", suite.note);
}

/* "durable, tests grant", for messages. */
static const char *text_for(unsigned bits)
{
    static char message[256];
    struct text text;
    text_init(&text, message, sizeof message);
    for (unsigned i = 0; i < BITS; i++) {
        if ((bits & 1U << i) == 0)
            continue;
        text_add(&text, text.length > 0 ? ", " : "");
        text_add(&text, bit_names[i]);
    }
    if ((bits & FAULT_NEEDS_JUDGE) != 0)
        text_add(&text, "sessions in place of a clock");
    if ((bits & FAULT_NEEDS_ALL_SESSIONS) != 0)
        text_add(&text, "sessions of unbound grants");
    for (char *letter = message; *letter != '\0'; letter++)
        *letter = (char)(*letter == '_' ? ' ' : tolower((unsigned char)*letter));
    return message;
}

static void claims_what_was_promised(void)
{
    for (size_t i = 0; i < sizeof promises / sizeof promises[0]; i++) {
        if (strcmp(promises[i].scheme, suite.driver->scheme) != 0)
            continue;
        unsigned missing = promises[i].least & ~suite_bits();
        if (missing != 0)
            suite_fail(text_for(missing));
        if (suite_facts().ttl_least_ms != promises[i].ttl_least_ms)
            suite_fail("the shortest TTL is another one than was promised");
        if ((suite_bits() & (STORE_TIME | STORE_ONE_CLOCK)) == STORE_ONE_CLOCK)
            suite_fail("one clock for all, and no clock");
        return;
    }
    suite_fail("nothing was promised for this store");
}

static const struct test_case promise = {"capabilities: the store claims those that it must have",
                                         claims_what_was_promised, 0, false};

/* Why the case cannot run here, or NULL. */
static const char *reason_to_skip(const struct test_case *test_case)
{
    static char message[300];
    unsigned missing = test_case->needs & ~suite_bits();
    if (missing == 0)
        return NULL;
    (void)snprintf(message, sizeof message, "store has no %s", text_for(missing));
    return message;
}

static const struct test_case *case_at(size_t number)
{
    if (number == 0)
        return &promise;
    number--;
    for (size_t i = 0; i < sizeof chapters / sizeof chapters[0]; i++) {
        if (number < chapters[i]->count)
            return &chapters[i]->test_cases[number];
        number -= chapters[i]->count;
    }
    return NULL;
}

/* True if it passed; otherwise suite.failure is the reason. */
static bool run_case(const struct test_case *test_case, size_t number)
{
    (void)snprintf(suite.prefix, sizeof suite.prefix, "%s%zu/", run_prefix(), number);
    suite.lacking = NULL;
    bool passed = attempt(test_case->run) && attempt(clean_up);
    parties_forget();
    suite_forget();
    return passed;
}

/* Without child processes a kill would end the suite, unless the store is in its memory. */
static bool is_of_this_run(const struct test_case *test_case)
{
    bool asked_for = suite.only == NULL || strstr(test_case->name, suite.only) != NULL;
    return asked_for && (clients_can_be_killed() || !test_case->needs_processes);
}

static void report_case(const struct test_case *test_case)
{
    if (!is_of_this_run(test_case))
        return;
    const char *skip = reason_to_skip(test_case);
    size_t number = ++suite.number;
    bool passed = skip != NULL || run_case(test_case, number);
    if (skip != NULL) {
        printf("ok %zu - %s # skip: %s\n", number, test_case->name, skip);
    } else if (passed && suite.lacking != NULL) {
        printf("ok %zu - %s # skip: store has no %s\n", number, test_case->name, suite.lacking);
    } else if (passed) {
        printf("ok %zu - %s\n", number, test_case->name);
    } else {
        printf("not ok %zu - %s\n", number, test_case->name);
        print_failure();
        suite.failed++;
        if (!attempt(clients_restart))
            print_failure();
    }
    (void)fflush(stdout);
}

static int run_all(void)
{
    if (!attempt(open_clients)) {
        printf("not ok 1 - the store can be opened\n");
        print_failure();
        return EXIT_FAILURE;
    }
    printf("# %s: %u clients%s; %s\n", suite.driver->scheme, clients_count(),
           clients_are_processes() ? " in processes of their own" : "", text_for(suite_bits()));
    for (size_t i = 0; case_at(i) != NULL; i++)
        report_case(case_at(i));
    if (!attempt(clients_close)) {
        printf("not ok %zu - the clients end well\n", ++suite.number);
        print_failure();
        suite.failed++;
    }
    suite_forget();
    printf("1..%zu\n", suite.number);
    return suite.failed == 0 && suite.number > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Planted faults. */

enum { CAUGHT = 3, HUNT_S = 600 };

/* Runs the selected cases, or all others, until the first failure. */
static void beat(const char *where, bool meant)
{
    for (size_t i = 0; case_at(i) != NULL; i++) {
        const struct test_case *test_case = case_at(i);
        bool here = strncmp(test_case->name, where, strlen(where)) == 0;
        bool runs = here == meant && is_of_this_run(test_case) && reason_to_skip(test_case) == NULL;
        if (!runs || run_case(test_case, i))
            continue;
        printf("#   by %s\n#   %s\n", test_case->name, suite.failure);
        (void)fflush(stdout);
        _exit(CAUGHT);
    }
}

/* In its own process: ends with the first case that catches the fault, and prints its name. */
_Noreturn static void hunt(enum fault fault)
{
    (void)alarm(HUNT_S);
    suite.hunting = true;
    suite.run = suite_random();
    suite.driver = inject_fault(suite.driver, fault);
    if (!attempt(open_clients))
        _exit(EXIT_FAILURE);
    beat(fault_where(fault), /* meant= */ true);
    beat(fault_where(fault), /* meant= */ false);
    _exit(EXIT_SUCCESS);
}

/* The child's exit status; 0 if the whole suite passed. */
static int status_of_hunt(enum fault fault)
{
    int status = 0;
    (void)fflush(stdout);
    pid_t hunter = fork();
    ASSERT(hunter >= 0);
    if (hunter == 0)
        hunt(fault);
    (void)waitpid(hunter, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}

/* With the lack of a clock as a bit of its own: some faults need it. */
static unsigned claimed_bits(void)
{
    /* Where heartbeats keep sessions alive, only those with bound grants are known. */
    bool all = (suite_bits() & STORE_RENEWS_SESSION) == 0;
    return suite_bits() | (suite_facts().judge == JUDGE_SESSION ? FAULT_NEEDS_JUDGE : 0) |
           (all ? FAULT_NEEDS_ALL_SESSIONS : 0);
}

/* Runs without a fault first: a suite that always fails would catch every fault. */
static int run_mutants(void)
{
    bool all = status_of_hunt(FAULT_NONE) == EXIT_SUCCESS;
    printf("%sok %zu - without a fault nothing is caught\n", all ? "" : "not ", ++suite.number);
    for (enum fault fault = FAULT_NONE + 1; fault < FAULT_COUNT; fault++) {
        if ((unsigned)fault % suite.turns != suite.turn % suite.turns)
            continue;
        unsigned missing = fault_needs(fault) & ~claimed_bits();
        const char *message = fault_text(fault);
        suite.number++;
        if (missing != 0) {
            printf("ok %zu - %s: %s # skip: store has no %s\n", suite.number, fault_name(fault),
                   message, text_for(missing));
            continue;
        }
        bool caught = status_of_hunt(fault) == CAUGHT;
        printf("%sok %zu - %s is caught: %s\n", caught ? "" : "not ", suite.number,
               fault_name(fault), message);
        all = all && caught;
    }
    printf("1..%zu\n", suite.number);
    return all ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int run_mutant(const char *name)
{
    enum fault fault = fault_named(name);
    if (fault == FAULT_COUNT) {
        (void)fprintf(stderr, "conformance: no mutant is called %s\n", name);
        return EXIT_FAILURE;
    }
    suite.driver = inject_fault(suite.driver, fault);
    return run_all();
}

static int usage(void)
{
    (void)fprintf(stderr, "usage: conformance URL [--processes N] [--store-thread] [--only WORDS]\n"
                          "                   [--clock zero|largest|today] [--mutant NAME]\n"
                          "                   [--mutants [--turn K/N]]\n"
                          "       N is 1, 2, or at least 4: so many parties meet in one case\n");
    return EXIT_FAILURE;
}

/* "K/N", with K from 1 to N. */
static bool read_turn(const char *text)
{
    char *end = NULL;
    unsigned long turn = strtoul(text, &end, 10);
    unsigned long turns = *end == '/' ? strtoul(end + 1, &end, 10) : 0;
    suite.turn = (unsigned)turn;
    suite.turns = (unsigned)turns;
    return *end == '\0' && turn >= 1 && turn <= turns && turns <= FAULT_COUNT;
}

static bool find_store(const char *clock)
{
    char message[256];
    struct text text;
    text_init(&text, message, sizeof message);
    bool of_tests = strcmp(suite.url, "sessions:") == 0;
    suite.driver = of_tests ? &session_driver : store_find(suite.url);
    if (suite.driver == NULL)
        store_describe_unknown(suite.url, &text);
    else if (suite.processes > 1 && (suite_bits() & STORE_DURABLE) == 0)
        text_add(&text, "nothing of this store is outside of its process");
    else if (clock != NULL && (suite_bits() & STORE_DURABLE) != 0)
        text_add(&text, "--clock: this store has a clock of its own");
    else if (clock != NULL && !suite_set_clock(clock))
        text_add(&text, "--clock: not a position; say zero, largest or today");
    if (text.length > 0)
        (void)fprintf(stderr, "conformance: %s\n", message);
    return text.length == 0;
}

int main(int argc, char **argv)
{
    bool mutants = false, store_thread = false;
    const char *mutant = NULL, *clock = NULL;
    suite.processes = suite.turn = suite.turns = 1;
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--processes") == 0 && more)
            suite.processes = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--only") == 0 && more)
            suite.only = argv[++i];
        else if (strcmp(argv[i], "--mutant") == 0 && more)
            mutant = argv[++i];
        else if (strcmp(argv[i], "--clock") == 0 && more)
            clock = argv[++i];
        else if (strcmp(argv[i], "--mutants") == 0)
            mutants = true;
        else if (strcmp(argv[i], "--turn") == 0 && more && read_turn(argv[i + 1]))
            i++;
        else if (strcmp(argv[i], "--store-thread") == 0)
            store_thread = true;
        else if (argv[i][0] != '-' && suite.url == NULL)
            suite.url = argv[i];
        else
            return usage();
    }
    if (suite.url == NULL || suite.processes < 1 || suite.processes > CLIENTS_MAX ||
        (suite.processes > 2 && suite.processes < CLIENTS_MIN))
        return usage();
    if (!find_store(clock))
        return EXIT_FAILURE;
    suite.run = suite_random();
    if (store_thread)
        suite.driver = threaded_driver(suite.driver);
    if (mutants)
        return run_mutants();
    return mutant != NULL ? run_mutant(mutant) : run_all();
}
