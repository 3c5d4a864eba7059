/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every file call of the log fails once, and from some moment on permanently, with each error that
 * a disk has, or transfers less; every allocation fails; the disk is full. Required: a defined
 * result, no reply about missing changes, no open descriptor left, and the same processes continue
 * as soon as the disk works again. Prints TAP; run it with AddressSanitizer.
 */
#include "log_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS_MOST = 20000 };

/* The operations, in this order. */
static const struct {
    unsigned actor;
    log_operation *log_operation;
} plan[] = {
    {0, op_open},       {1, op_put_told}, {0, op_put},   {1, op_turn},
    {1, op_put_large},  {0, op_ask},      {0, op_erase}, {1, op_make_garbage},
    {0, op_tend},       {1, op_put_told}, {2, op_open},  {2, op_put_large},
    {0, op_find_index}, {1, op_put_told}, {2, op_turn},  {0, op_make_garbage},
    {0, op_tend},       {1, op_ask},
};

static struct world world; /* large */
static unsigned failures, results[LOG_IO + 1];
static const char *const result_names[] = {
#define RESULT_NAME(name, text) #name,
    LOG_RESULTS(RESULT_NAME)
#undef RESULT_NAME
};

/* Allocations of the log alone. */
static struct {
    unsigned requests, refused_at; /* 0: never */
    bool for_good;
} memory;

static bool is_refused(void)
{
    memory.requests++;
    return memory.refused_at != 0 && (memory.requests == memory.refused_at ||
                                      (memory.for_good && memory.requests > memory.refused_at));
}

void *failing_malloc(size_t size);
void *failing_calloc(size_t count, size_t size);
void *failing_realloc(void *before, size_t size);

void *failing_malloc(size_t size)
{
    return is_refused() ? NULL : malloc(size);
}

void *failing_calloc(size_t count, size_t size)
{
    return is_refused() ? NULL : calloc(count, size);
}

void *failing_realloc(void *before, size_t size)
{
    return is_refused() ? NULL : realloc(before, size);
}

static void wrong(const char *what)
{
    if (world.wrong == NULL)
        world.wrong = what;
}

/* Faults met so far. */
static bool is_met(void)
{
    return (world.disk.fail_at != 0 && world.disk.calls >= world.disk.fail_at) ||
           (memory.refused_at != 0 && memory.requests >= memory.refused_at);
}

static void act(struct actor *actor, log_operation *what)
{
    bool before = is_met();
    what(&world, actor);
    results[actor->result]++;
    if (actor->result == LOG_OK)
        return;
    failures++;
    log_world_doubt(&world);
    if (before && !world.disk.for_good && !memory.for_good)
        wrong("one call failed, and later something else did not work");
    if (!is_met())
        wrong("something failed, and no call had");
}

/* The disk works again: all processes continue, and read the same, also after a boot. */
static void judge(void)
{
    world.disk.fail_at = memory.refused_at = 0;
    world.disk.for_good = memory.for_good = false;
    for (unsigned i = 0; i < ACTORS && world.wrong == NULL; i++) {
        op_put_told(&world, &world.actors[i]);
        if (world.actors[i].result != LOG_OK)
            wrong("it does not go on");
        (void)log_world_agrees(&world, &world.actors[(i + 1) % ACTORS]);
    }
    for (unsigned boots = 0; boots < 2 && world.wrong == NULL; boots++) {
        log_world_boot(&world);
        if (fake_disk_open_files(&world.disk) != 0)
            wrong("a file was left open");
        (void)log_world_agrees(&world, &world.actors[boots]);
    }
}

/* False when there are fewer calls. */
static bool play(unsigned call, int error, bool for_good, bool refused)
{
    log_world_begin(&world);
    memory.requests = 0;
    if (refused)
        memory.refused_at = call;
    else
        world.disk.fail_at = call;
    world.disk.error = error;
    world.disk.for_good = for_good && !refused;
    memory.for_good = for_good && refused;
    for (size_t i = 0; i < sizeof plan / sizeof *plan && world.wrong == NULL; i++)
        act(&world.actors[plan[i].actor], plan[i].log_operation);
    bool reached = is_met();
    judge();
    log_world_end(&world);
    return reached;
}

static unsigned number;
static int status;

static void report(const char *what, bool good, unsigned call)
{
    printf("%s %u - %s\n", good ? "ok" : "not ok", ++number, what);
    if (!good) {
        printf("# call %u: %s\n", call,
               world.wrong != NULL ? world.wrong : "no end, or no failure");
        status = 1;
    }
    world.wrong = NULL;
    (void)fflush(stdout);
}

static void fail_every_call(const char *name, int error, bool for_good, bool refused)
{
    char what[128];
    unsigned call = 1;
    failures = 0;
    while (play(call, error, for_good, refused) && world.wrong == NULL && call < CALLS_MOST)
        call++;
    bool good = world.wrong == NULL && call > 1 && call < CALLS_MOST &&
                (failures > 0) == (error != 0 || refused);
    (void)snprintf(what, sizeof what, "%s%s at each of %u calls: %u deeds failed", name,
                   for_good ? ", for good," : "", call - 1, failures);
    report(what, good, call);
}

/* Only urgent writes succeed, and there is room for some of them. */
static void fill_disk(void)
{
    char what[128];
    struct actor *one = &world.actors[0], *two = &world.actors[1], *late = &world.actors[2];
    log_world_begin(&world);
    op_open(&world, one);
    op_put_told(&world, two);
    world.disk.full = true;
    unsigned puts = 0, releases = 0;
    while (puts < 60 && one->result == LOG_OK) {
        op_put_told(&world, one);
        puts++;
    }
    if (one->result != LOG_FULL)
        wrong("a full disk is not noticed");
    for (; releases < KIT_RESERVE / 80 && world.wrong == NULL; releases++) {
        struct actor *actor = releases % 2 == 0 ? two : late;
        op_release(&world, actor);
        if (actor->result != LOG_OK)
            wrong("what is urgent does not get through");
        op_put_told(&world, one);
        if (one->result != LOG_FULL)
            wrong("what is not urgent takes the reserve");
        op_ask(&world, late);
        if (late->result != LOG_OK)
            wrong("it cannot be read");
    }
    op_tend(&world, two);
    world.disk.full = false;
    judge();
    log_world_end(&world);
    (void)snprintf(what, sizeof what, "full disk after %u puts: %u releases get through", puts,
                   releases);
    report(what, world.wrong == NULL, 0);
}

int main(void)
{
    static const struct {
        int error;
        const char *name;
    } errors[] = {
        {EIO, "EIO"},       {ENOSPC, "ENOSPC"}, {EDQUOT, "EDQUOT"},           {EMFILE, "EMFILE"},
        {ENFILE, "ENFILE"}, {ENOMEM, "ENOMEM"}, {0, "a short read or write"},
    };
    for (unsigned way = 0; way < 2 * sizeof errors / sizeof *errors; way++)
        fail_every_call(errors[way / 2].name, errors[way / 2].error, way % 2 != 0, false);
    fail_every_call("no memory", 0, /* for_good= */ false, /* refused= */ true);
    fail_every_call("no memory", 0, /* for_good= */ true, /* refused= */ true);
    fill_disk();
    for (unsigned i = 0; i <= LOG_IO; i++)
        if (results[i] > 0)
            printf("# %u times %s\n", results[i], result_names[i]);
    printf("1..%u\n", number);
    return status;
}
