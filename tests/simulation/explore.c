/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search: depth first over copied worlds, each canonical state once, until no state within the
 * bound is left. From every state the fair run is followed as well, without further faults: every
 * waiter must be granted, and every client must end. A violation is replayed from the start and
 * printed as a path with the core's own trace lines.
 *
 *   explore [--proof] [--scenario NAME]    TAP; exit status 1 after a violation
 *   explore --mutant NAME                  3 if the planted bug is caught, 0 if not
 */
#include "explore.h"

#include "base/check.h"
#include "core/mutant.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEPTH_MAX = 1000, FAIR_STEPS_MAX = 600, FAIR_TTLS_MAX = 20, STORY_MAX = 1 << 20 };

#define TEST_STATES_MAX  ((size_t)4000000)
#define PROOF_STATES_MAX ((size_t)48000000)

/* A set of digests: open addressing, doubling. The bits outside the mask are for the caller. */
struct table {
    uint64_t mask; /* of b */
    struct digest *slots;
    size_t size, count;
};

struct frame {
    struct world world;
    struct choice choices[CHOICES_MAX];
    uint8_t count, next;
};

enum leaf { LEAF_ENDED, LEAF_WAITING, LEAF_OTHER, LEAF_COUNT };

struct search {
    const struct bound *bound;
    size_t states_max;
    struct table visited, live;
    uint64_t transitions, fair_runs, leaves[LEAF_COUNT];
    size_t depth, deepest;
    bool fair; /* on the fair run from the last frame */
    struct frame frames[DEPTH_MAX];
};

static struct search search;
static sigjmp_buf asserted;

static bool is_empty(const struct digest *slot)
{
    return slot->a == 0 && slot->b == 0;
}

static struct digest *table_slot(const struct table *table, const struct digest *digest)
{
    size_t at = digest->a & (table->size - 1);
    while (!is_empty(&table->slots[at]) && (table->slots[at].a != digest->a ||
                                            ((table->slots[at].b ^ digest->b) & table->mask) != 0))
        at = (at + 1) & (table->size - 1);
    return &table->slots[at];
}

static void table_grow(struct table *table)
{
    enum { FIRST = 1 << 16 };
    struct table old = *table;
    table->size = old.size == 0 ? FIRST : old.size * 2;
    table->slots = calloc(table->size, sizeof *table->slots);
    ASSERT(table->slots != NULL);
    for (size_t i = 0; i < old.size; i++)
        if (!is_empty(&old.slots[i]))
            *table_slot(table, &old.slots[i]) = old.slots[i];
    free(old.slots);
}

/* True if it was absent; otherwise `digest` becomes the stored one. */
static bool table_add(struct table *table, struct digest *digest)
{
    if (table->count >= table->size / 4 * 3)
        table_grow(table);
    struct digest *slot = table_slot(table, digest);
    bool added = is_empty(slot);
    table->count += added ? 1 : 0;
    if (added)
        *slot = *digest;
    *digest = *slot;
    return added;
}

static enum leaf leaf_of(const struct world *world)
{
    enum leaf leaf = LEAF_ENDED;
    for (size_t i = 0; i < ACTORS_MAX; i++) {
        if (!actor_at_work(&world->actors[i]))
            continue;
        if (world->actors[i].lease.state != LEASE_WAITING)
            return LEAF_OTHER;
        leaf = LEAF_WAITING;
    }
    return leaf;
}

/* The next step of a fair run; false at its end, good or bad. */
static bool step_fairly(struct world *world)
{
    struct choice choice;
    if (world_fair_choice(world, &choice)) {
        world_apply(world, &choice);
        return violation == NULL;
    }
    for (size_t i = 0; i < ACTORS_MAX; i++)
        check_that(!actor_at_work(&world->actors[i]), "stuck: nothing will ever wake it (rule 4)");
    return false;
}

/*
 * Without further faults every run ends well, and soon. A state from which another run ended well
 * is not followed again, so most runs have one or two steps.
 */
static void run_fairly(const struct world *from)
{
    static struct world world;
    world = *from;
    search.fair = true;
    search.fair_runs++;
    for (size_t steps = 0;; steps++) {
        struct digest digest = world_digest(&world, false);
        digest.b = (digest.b & search.live.mask) | (search.fair_runs & ~search.live.mask);
        uint64_t run = digest.b;
        if (!table_add(&search.live, &digest)) {
            check_that(digest.b != run, "without faults it goes round in circles (rule 4)");
            break;
        }
        check_that(steps < FAIR_STEPS_MAX &&
                       world.now_ms < from->now_ms + FAIR_TTLS_MAX * playing->facts.ttl_ms,
                   "without faults it does not come to an end (rule 4)");
        if (violation != NULL || !step_fairly(&world))
            break;
    }
    search.fair = violation != NULL;
}

/* Enters a state that was not visited before; false if it was, or after a violation. */
static bool enter(struct frame *frame)
{
    struct digest digest = world_digest(&frame->world, true);
    if (violation != NULL || !table_add(&search.visited, &digest))
        return false;
    check_that(search.visited.count <= search.states_max, "bound too wide: too many states");
    check_that(search.depth + 1 < DEPTH_MAX, "bound too wide: too long a path");
    if (violation == NULL)
        world_probe(&frame->world);
    if (violation == NULL)
        run_fairly(&frame->world);
    frame->count = (uint8_t)world_choices(&frame->world, frame->choices);
    if (frame->count == 0)
        search.leaves[leaf_of(&frame->world)]++;
    search.deepest = search.depth > search.deepest ? search.depth : search.deepest;
    return violation == NULL;
}

static void explore(void)
{
    struct frame *frame = search.frames;
    world_begin(&frame->world, search.bound);
    frame->next = 0;
    if (!enter(frame))
        return;
    while (violation == NULL) {
        frame = &search.frames[search.depth];
        if (frame->next == frame->count) {
            if (search.depth-- == 0)
                return;
            continue;
        }
        struct frame *child = frame + 1;
        child->world = frame->world;
        child->next = child->count = 0;
        search.transitions++;
        world_apply(&child->world, &frame->choices[frame->next++]);
        search.depth++;
        if (!enter(child))
            search.depth--;
    }
}

/* A failed assertion of the core is a violation: abort() is caught. */
static void on_abort(int number)
{
    (void)number;
    siglongjmp(asserted, 1);
}

static void catch_asserts(void)
{
    struct sigaction action = {.sa_handler = on_abort, .sa_flags = SA_NODEFER};
    ASSERT(sigaction(SIGABRT, &action, NULL) == 0);
}

static void search_scenario(const struct scenario *scenario, bool proof)
{
    playing = scenario;
    violation = NULL;
    search.bound = proof ? &scenario->proof : &scenario->test;
    search.states_max = proof ? PROOF_STATES_MAX : TEST_STATES_MAX;
    search.visited = (struct table){.mask = UINT64_MAX};
    search.live = (struct table){.mask = UINT64_MAX << 32};
    search.transitions = search.fair_runs = 0;
    search.depth = search.deepest = 0;
    search.fair = false;
    memset(search.leaves, 0, sizeof search.leaves);
    if (sigsetjmp(asserted, 1) == 0)
        explore();
    else
        violation = "an assertion of the core failed";
}

static void forget_scenario(void)
{
    free(search.visited.slots);
    free(search.live.slots);
    pages_forget();
}

/* Replays the path from the start and prints it. */
static void replay(struct world *world)
{
    world_begin(world, search.bound);
    for (size_t i = 0; i < DEPTH_MAX && search.frames[i].next > 0; i++)
        world_apply(world, &search.frames[i].choices[search.frames[i].next - 1]);
    if (violation == NULL)
        world_probe(world);
    text_add(story, search.fair ? "    from here on without faults\n" : "");
    for (size_t steps = 0; search.fair && steps < FAIR_STEPS_MAX; steps++)
        if (!step_fairly(world))
            return;
}

static void print_path(void)
{
    static char bytes[STORY_MAX];
    static struct world world;
    struct text text;
    const char *what = violation;
    text_init(&text, bytes, sizeof bytes);
    story = &text;
    violation = NULL;
    if (sigsetjmp(asserted, 1) == 0)
        replay(&world);
    story = NULL;
    violation = what;
    printf("# violation: %s\n%s\n", what, bytes);
    if (world.page != NULL)
        printf("    the store, revision %llu: %.*s\n", (unsigned long long)world.written.revision,
               (int)world.page->length, world.page->bytes);
}

/* The report */

static void print_bound(const struct scenario *scenario, const struct bound *bound)
{
    printf("%u clients, %u acquisitions each", scenario->clients, bound->lives);
    const struct {
        const char *summary;
        uint8_t count;
    } rest[] = {{"lost", bound->lost},          {"doubled", bound->doubled},
                {"time steps", bound->ticks},   {"crashes", bound->crashes},
                {"called off", bound->cancels}, {"operations", bound->operations}};
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++)
        if (rest[i].count > 0)
            printf(", %u %s", rest[i].count, rest[i].summary);
}

static void print_scenario(const struct scenario *scenario, size_t number, double took_s)
{
    printf("%sok %zu - %s: ", violation == NULL ? "" : "not ", number, scenario->name);
    print_bound(scenario, search.bound);
    printf(": %zu states, %llu transitions, %d violations\n", search.visited.count,
           (unsigned long long)search.transitions, violation == NULL ? 0 : 1);
    printf("# %s; deepest path %zu; leaves: %llu all ended, %llu waiting, %llu other; "
           "fair runs %llu, %zu records, %.1f s\n",
           scenario->summary, search.deepest, (unsigned long long)search.leaves[LEAF_ENDED],
           (unsigned long long)search.leaves[LEAF_WAITING],
           (unsigned long long)search.leaves[LEAF_OTHER], (unsigned long long)search.fair_runs,
           pages_kept(), took_s);
}

static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Every kind of event must have occurred, so that no check passes untested. */
static bool print_seen(size_t number)
{
    static const char *const summary[] = {
#define SEEN_WORDS(name, text) text,
        SEEN_LIST(SEEN_WORDS)
#undef SEEN_WORDS
    };
    bool all = true;
    for (size_t i = 0; i < SEEN_COUNT; i++) {
        printf("# seen: %llu %s\n", (unsigned long long)seen[i], summary[i]);
        all = all && seen[i] > 0;
    }
    printf("%sok %zu - everything that is checked also happened\n", all ? "" : "not ", number);
    return all;
}

static int run_all(const char *only, bool proof)
{
    size_t number = 0, states = 0;
    uint64_t transitions = 0;
    bool good = true;
    for (size_t i = 0; i < scenario_count; i++) {
        if (only != NULL && strcmp(only, scenarios[i].name) != 0)
            continue;
        double began_s = seconds();
        search_scenario(&scenarios[i], proof);
        print_scenario(&scenarios[i], ++number, seconds() - began_s);
        if (violation != NULL)
            print_path();
        (void)fflush(stdout);
        good = good && violation == NULL;
        states += search.visited.count;
        transitions += search.transitions;
        forget_scenario();
    }
    if (only == NULL)
        good = print_seen(++number) && good;
    printf("# %zu states, %llu transitions\n1..%zu\n", states, (unsigned long long)transitions,
           number);
    return good && number > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#ifdef LH_MUTANTS
static enum mutant mutant_named(const char *name)
{
    static const char *const names[] = {"NONE",
#define MUTANT_WORD(word, summary) #word,
                                        MUTANT_LIST(MUTANT_WORD)
#undef MUTANT_WORD
    };
    for (enum mutant mutant = MUTANT_NONE; mutant < MUTANT_COUNT; mutant++)
        if (strcmp(name, names[mutant]) == 0)
            return mutant;
    return MUTANT_COUNT;
}

static int run_mutant(const char *name)
{
    enum { CAUGHT = 3 };
    size_t states = 0;
    mutant_on = mutant_named(name);
    if (mutant_on == MUTANT_COUNT) {
        (void)fprintf(stderr, "explore: no mutant is called %s\n", name);
        return EXIT_FAILURE;
    }
    for (size_t i = 0; i < scenario_count; i++) {
        search_scenario(&scenarios[i], /* proof= */ false);
        states += search.visited.count;
        if (violation != NULL) {
            printf("caught %s by exploration after %zu states: %s (%s)\n", name, states, violation,
                   scenarios[i].name);
            return CAUGHT;
        }
        forget_scenario();
    }
    printf("not caught %s by exploration in %zu states\n", name, states);
    return EXIT_SUCCESS;
}
#else
static int run_mutant(const char *name)
{
    (void)fprintf(stderr, "explore: %s is not in this build\n", name);
    return EXIT_FAILURE;
}
#endif

int main(int argc, char **argv)
{
    bool proof = false;
    const char *only = NULL, *mutant = NULL;
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--proof") == 0) {
            proof = true;
        } else if (strcmp(argv[i], "--scenario") == 0 && more) {
            only = argv[++i];
        } else if (strcmp(argv[i], "--mutant") == 0 && more) {
            mutant = argv[++i];
        } else {
            (void)fprintf(stderr, "usage: explore [--proof] [--scenario NAME] [--mutant NAME]\n");
            return EXIT_FAILURE;
        }
    }
    catch_asserts();
    return mutant != NULL ? run_mutant(mutant) : run_all(only, proof);
}
