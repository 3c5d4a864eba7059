/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stops a process at each of its steps: file calls and stores to the shared page. First it dies
 * there and others continue; then it is only suspended while another process runs a whole
 * operation, and continues. No certain change may be missing then, none be duplicated, and no
 * process be stuck; also after a boot, and after a power loss. Prints TAP.
 */
#include "log_world.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { STEPS_MOST = 2000 };

/* The log when the first actor begins. */
enum setting {
    SET_EMPTY,    /* no log */
    SET_OPEN,     /* two keys, one change that is not synced, a compaction is due */
    SET_BOOTED,   /* the same, after a boot */
    SET_POISONED, /* the same, after a sync that failed */
    SET_GROWN,    /* the same, after a growth that failed half way */
};

struct scenario {
    enum setting setting;
    log_operation *first;
    const char *name;
};

static const struct scenario scenarios[] = {
    {SET_EMPTY, op_open, "makes a log"},
    {SET_OPEN, op_open, "opens"},
    {SET_OPEN, op_find_index, "opens a log without an index"},
    {SET_OPEN, op_put, "puts"},
    {SET_OPEN, op_put_told, "puts and syncs"},
    {SET_OPEN, op_put_large, "puts what makes the file grow"},
    {SET_OPEN, op_turn, "changes a key twice in a turn"},
    {SET_OPEN, op_erase, "erases"},
    {SET_OPEN, op_ask, "reads and syncs"},
    {SET_OPEN, op_tend, "compacts"},
    {SET_BOOTED, op_open, "opens after a boot"},
    {SET_POISONED, op_put_told, "puts after a failed sync"},
    {SET_POISONED, op_tend, "compacts after a failed sync"},
    {SET_GROWN, op_put_large, "grows after a growth that failed"},
};

static const struct scenario others[] = {
    {SET_OPEN, op_put_told, "puts and syncs"},
    {SET_OPEN, op_put_large, "makes the file grow"},
    {SET_OPEN, op_turn, "changes a key twice"},
    {SET_OPEN, op_ask, "reads and syncs"},
    {SET_OPEN, op_tend, "compacts"},
    {SET_OPEN, op_open, "opens"},
    {SET_OPEN, op_find_index, "opens without an index"},
    {SET_OPEN, op_index_put, "opens without an index and puts"},
    {SET_OPEN, op_bad_sync, "puts, and a third dies in a sync that failed"},
    {SET_OPEN, op_bad_sync_told, "puts, a third dies in a sync that failed, it syncs"},
    {SET_OPEN, op_bad_sync_alone, "syncs, after a third died in a sync that failed"},
};

static struct world world; /* large */
static struct actor *const first = &world.actors[0], *const other = &world.actors[1],
                           *const third = &world.actors[2];
static unsigned images;

static bool must(enum log_result result)
{
    if (result != LOG_OK && world.wrong == NULL)
        world.wrong = "something failed, and nobody had done any harm";
    return result == LOG_OK;
}

static void set(enum setting setting)
{
    log_world_begin(&world);
    if (setting == SET_EMPTY)
        return;
    op_put_told(&world, other);
    op_put(&world, other);
    (void)must(other->result);
    (void)must(kit_sync(&other->process.table, other->log));
    op_make_garbage(&world, other);
    (void)must(other->result);
    op_ask(&world, other);
    op_put(&world, other);
    (void)must(other->result);
    op_read(&world, third);
    (void)must(third->result);
    if (setting == SET_BOOTED)
        log_world_boot(&world);
    else
        op_open(&world, first);
    if (setting == SET_POISONED) {
        world.disk.fail_at = world.disk.calls + 2;
        world.disk.error = EIO;
        op_ask(&world, other);
        log_world_doubt(&world);
    }
    if (setting == SET_GROWN) {
        world.disk.size_limit = fake_disk_file(&world.disk, "")->size + DISK_PAGE;
        op_put_large(&world, other);
        world.disk.size_limit = 0;
    }
}

/* A power loss at this moment: none, all, each alone and all but each of the unsynced writes. */
static void lose_power(bool clean)
{
    static struct fake_disk image;
    int pending[FAKE_PENDING];
    size_t moment = world.disk.event_count, count = fake_disk_pending(&world.disk, moment, pending);
    uint64_t all = ((uint64_t)1 << count) - 1;
    for (size_t i = 0; i < 2 * count + 2 && world.wrong == NULL; i++) {
        uint64_t bit = i < 2 * count ? (uint64_t)1 << i / 2 : 0;
        struct fake_choice choice = {
            .kept = i % 2 == 0 ? bit : all & ~bit, .torn = -1, .unsynced = i % UNSYNCED_COUNT};
        fake_disk_image(&world.disk, &world.base, moment, &choice, &image);
        (void)log_world_survives(&world, &image, clean && choice.kept == all);
        fake_disk_done(&image);
        images++;
    }
}

/* The live processes continue, and read the same; also compacted, and after a boot. */
static void go_on(void)
{
    lose_power(/* clean= */ false);
    op_put_told(&world, other);
    (void)must(other->result);
    lose_power(/* clean= */ true);
    op_ask(&world, third);
    (void)must(third->result);
    (void)log_world_agrees(&world, third);
    op_tend(&world, third);
    (void)must(third->result);
    (void)log_world_agrees(&world, other);
    op_turn(&world, other);
    (void)must(other->result);
    (void)log_world_agrees(&world, third);
    world.disk.recording = false;
    log_world_boot(&world);
    (void)log_world_agrees(&world, third);
    if (must(third->result) && log_cuts(third->log) > 0 && world.wrong == NULL)
        world.wrong = "something is left to be cut";
}

static void begin(enum setting setting)
{
    set(setting);
    fake_disk_copy(&world.base, &world.disk);
    world.disk.recording = true;
    first->process.steps = 0;
}

static void end(void)
{
    world.disk.recording = false;
    fake_disk_done(&world.base);
    log_world_end(&world);
}

/* Additional faults; the number of a sync fails. */
static struct {
    bool halves;
    unsigned fail_sync;
} besides;

static bool kill_at(const struct scenario *scenario, unsigned step)
{
    begin(scenario->setting);
    first->process.stop_at = step;
    first->process.halves = besides.halves;
    world.disk.syncs = 0;
    world.disk.fail_sync_at = besides.fail_sync;
    scenario->first(&world, first);
    bool reached = first->process.dead, failed = besides.fail_sync != 0;
    world.disk.fail_sync_at = 0;
    first->process.halves = false;
    if (reached)
        log_world_discard(&world, first);
    else if (!failed)
        (void)must(first->result);
    if (failed)
        log_world_doubt(&world);
    go_on();
    return reached;
}

static struct {
    log_operation *log_operation;
    bool ran;
} meanwhile;

/* A sync failed, and the current writer cannot know whether the failure was about its own write. */
static bool is_excused(enum log_result result)
{
    bool excused = result == LOG_POISONED && meanwhile.log_operation == op_bad_sync_alone;
    if (excused)
        log_world_doubt(&world);
    return excused;
}

static void act_meanwhile(void *owner)
{
    (void)owner;
    meanwhile.log_operation(&world, other);
    meanwhile.ran = true;
    if (other->result != LOG_LOCKED)
        (void)must(is_excused(other->result) ? LOG_OK : other->result);
}

static bool pause_at(const struct scenario *scenario, log_operation *others_operation,
                     unsigned step)
{
    begin(scenario->setting);
    meanwhile.log_operation = others_operation;
    meanwhile.ran = false;
    first->process.stop_at = step;
    first->process.meanwhile = act_meanwhile;
    scenario->first(&world, first);
    bool reached = meanwhile.ran;
    bool gave_up = scenario->first == op_tend && first->result == LOG_LOCKED; /* and reports it */
    (void)must(gave_up || is_excused(first->result) ? LOG_OK : first->result);
    (void)is_excused(other->result); /* changes since then are in doubt, too */
    (void)log_world_agrees(&world, first);
    go_on();
    return reached;
}

static unsigned number;
static int status;

static void report(const char *what, const char *more, unsigned steps)
{
    bool good = world.wrong == NULL && steps > 0 && steps < STEPS_MOST;
    printf("%s %u - %s%s: %u steps, %u images\n", good ? "ok" : "not ok", ++number, what, more,
           steps, images);
    if (!good) {
        printf("# at step %u: %s\n", steps + 1, world.wrong != NULL ? world.wrong : "no end");
        status = 1;
    }
    images = 0;
    world.wrong = NULL;
}

static void kill_everywhere(const struct scenario *scenario, const char *more)
{
    char what[128];
    unsigned step = 0;
    while (step < STEPS_MOST && kill_at(scenario, step + 1) && world.wrong == NULL) {
        end();
        step++;
    }
    end();
    (void)snprintf(what, sizeof what, "killed while it %s", scenario->name);
    report(what, more, step);
}

static void pause_everywhere(const struct scenario *scenario,
                             const struct scenario *meanwhile_scene)
{
    char what[128];
    unsigned step = 0;
    while (step < STEPS_MOST && pause_at(scenario, meanwhile_scene->first, step + 1) &&
           world.wrong == NULL) {
        end();
        step++;
    }
    end();
    (void)snprintf(what, sizeof what, "%s, and meanwhile another ", scenario->name);
    report(what, meanwhile_scene->name, step);
}

int main(void)
{
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        kill_everywhere(&scenarios[i], "");
        besides.halves = true;
        kill_everywhere(&scenarios[i], " in small parts");
        besides.halves = false;
        for (besides.fail_sync = 1; besides.fail_sync <= 2; besides.fail_sync++)
            kill_everywhere(&scenarios[i], besides.fail_sync == 1 ? ", its first sync failing"
                                                                  : ", its second sync failing");
        besides.fail_sync = 0;
        for (size_t j = 0; j < sizeof others / sizeof *others; j++)
            pause_everywhere(&scenarios[i], &others[j]);
    }
    printf("1..%u\n", number);
    return status;
}
