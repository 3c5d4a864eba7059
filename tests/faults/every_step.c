/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stops a process at each of its steps, file calls and stores to the shared page alike. First it
 * dies there and others go on; then it only stands still while another does something from
 * beginning to end, and goes on itself. Nothing that is certain may be missing then, nothing be
 * there twice, and nobody be stuck; also after a boot, and after a power loss. Speaks TAP.
 */
#include "actors.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { STEPS_MOST = 2000 };

/* What the log is like when the first actor begins. */
enum setting {
    SET_EMPTY,    /* no log */
    SET_OPEN,     /* two keys, one change that is not synced, a compaction is due */
    SET_BOOTED,   /* the same, after a boot */
    SET_POISONED, /* the same, after a sync that failed */
    SET_GROWN,    /* the same, after a growth that failed half way */
};

struct scene {
    enum setting setting;
    deed *first;
    const char *name;
};

static const struct scene scenes[] = {
    {SET_EMPTY, deed_open, "makes a log"},
    {SET_OPEN, deed_open, "opens"},
    {SET_OPEN, deed_find_index, "opens a log without an index"},
    {SET_OPEN, deed_put, "puts"},
    {SET_OPEN, deed_put_told, "puts and syncs"},
    {SET_OPEN, deed_put_large, "puts what makes the file grow"},
    {SET_OPEN, deed_turn, "changes a key twice in a turn"},
    {SET_OPEN, deed_erase, "erases"},
    {SET_OPEN, deed_ask, "reads and syncs"},
    {SET_OPEN, deed_tend, "compacts"},
    {SET_BOOTED, deed_open, "opens after a boot"},
    {SET_POISONED, deed_put_told, "puts after a failed sync"},
    {SET_POISONED, deed_tend, "compacts after a failed sync"},
    {SET_GROWN, deed_put_large, "grows after a growth that failed"},
};

static const struct scene others[] = {
    {SET_OPEN, deed_put_told, "puts and syncs"},
    {SET_OPEN, deed_put_large, "makes the file grow"},
    {SET_OPEN, deed_turn, "changes a key twice"},
    {SET_OPEN, deed_ask, "reads and syncs"},
    {SET_OPEN, deed_tend, "compacts"},
    {SET_OPEN, deed_open, "opens"},
    {SET_OPEN, deed_find_index, "opens without an index"},
    {SET_OPEN, deed_index_put, "opens without an index and puts"},
    {SET_OPEN, deed_bad_sync, "puts, and a third dies in a sync that failed"},
    {SET_OPEN, deed_bad_sync_told, "puts, a third dies in a sync that failed, it syncs"},
    {SET_OPEN, deed_bad_sync_alone, "syncs, after a third died in a sync that failed"},
};

static struct stage stage; /* large */
static struct actor *const first = &stage.actors[0], *const other = &stage.actors[1],
                           *const third = &stage.actors[2];
static unsigned images;

static bool must(enum log_result result)
{
    if (result != LOG_OK && stage.wrong == NULL)
        stage.wrong = "something failed, and nobody had done any harm";
    return result == LOG_OK;
}

static void set(enum setting setting)
{
    stage_begin(&stage);
    if (setting == SET_EMPTY)
        return;
    deed_put_told(&stage, other);
    deed_put(&stage, other);
    (void)must(other->result);
    (void)must(kit_sync(&other->process.table, other->log));
    deed_litter(&stage, other);
    (void)must(other->result);
    deed_ask(&stage, other);
    deed_put(&stage, other);
    (void)must(other->result);
    deed_look(&stage, third);
    (void)must(third->result);
    if (setting == SET_BOOTED)
        stage_boot(&stage);
    else
        deed_open(&stage, first);
    if (setting == SET_POISONED) {
        stage.disk.fail_at = stage.disk.calls + 2;
        stage.disk.error = EIO;
        deed_ask(&stage, other);
        stage_doubt(&stage);
    }
    if (setting == SET_GROWN) {
        stage.disk.size_limit = fake_disk_file(&stage.disk, "")->size + DISK_PAGE;
        deed_put_large(&stage, other);
        stage.disk.size_limit = 0;
    }
}

/* A loss at this moment: nothing, all, each alone and all but each of what was not synced. */
static void lose_power(bool clean)
{
    static struct fake_disk image;
    int pending[FAKE_PENDING];
    size_t moment = stage.disk.event_count, count = fake_disk_pending(&stage.disk, moment, pending);
    uint64_t all = ((uint64_t)1 << count) - 1;
    for (size_t i = 0; i < 2 * count + 2 && stage.wrong == NULL; i++) {
        uint64_t bit = i < 2 * count ? (uint64_t)1 << i / 2 : 0;
        struct fake_choice choice = {
            .kept = i % 2 == 0 ? bit : all & ~bit, .torn = -1, .fleeting = i % FLEETING_COUNT};
        fake_disk_image(&stage.disk, &stage.base, moment, &choice, &image);
        (void)stage_survives(&stage, &image, clean && choice.kept == all);
        fake_disk_done(&image);
        images++;
    }
}

/* Those who live go on, and see the same; also compacted, and after a boot. */
static void go_on(void)
{
    lose_power(/* clean= */ false);
    deed_put_told(&stage, other);
    (void)must(other->result);
    lose_power(/* clean= */ true);
    deed_ask(&stage, third);
    (void)must(third->result);
    (void)stage_agrees(&stage, third);
    deed_tend(&stage, third);
    (void)must(third->result);
    (void)stage_agrees(&stage, other);
    deed_turn(&stage, other);
    (void)must(other->result);
    (void)stage_agrees(&stage, third);
    stage.disk.recording = false;
    stage_boot(&stage);
    (void)stage_agrees(&stage, third);
    if (must(third->result) && log_cuts(third->log) > 0 && stage.wrong == NULL)
        stage.wrong = "something is left to be cut";
}

static void begin(enum setting setting)
{
    set(setting);
    fake_disk_copy(&stage.base, &stage.disk);
    stage.disk.recording = true;
    first->process.steps = 0;
}

static void end(void)
{
    stage.disk.recording = false;
    fake_disk_done(&stage.base);
    stage_end(&stage);
}

/* What goes wrong besides; the number of a sync fails. */
static struct {
    bool halves;
    unsigned fail_sync;
} besides;

static bool kill_at(const struct scene *scene, unsigned step)
{
    begin(scene->setting);
    first->process.stop_at = step;
    first->process.halves = besides.halves;
    stage.disk.syncs = 0;
    stage.disk.fail_sync_at = besides.fail_sync;
    scene->first(&stage, first);
    bool reached = first->process.dead, failed = besides.fail_sync != 0;
    stage.disk.fail_sync_at = 0;
    first->process.halves = false;
    if (reached)
        stage_bury(&stage, first);
    else if (!failed)
        (void)must(first->result);
    if (failed)
        stage_doubt(&stage);
    go_on();
    return reached;
}

static struct {
    deed *deed;
    bool ran;
} meanwhile;

/* A sync failed, and whoever was just writing cannot know whether that was about it. */
static bool is_excused(enum log_result result)
{
    bool excused = result == LOG_POISONED && meanwhile.deed == deed_bad_sync_alone;
    if (excused)
        stage_doubt(&stage);
    return excused;
}

static void act_meanwhile(void *owner)
{
    (void)owner;
    meanwhile.deed(&stage, other);
    meanwhile.ran = true;
    if (other->result != LOG_LOCKED)
        (void)must(is_excused(other->result) ? LOG_OK : other->result);
}

static bool pause_at(const struct scene *scene, deed *others_deed, unsigned step)
{
    begin(scene->setting);
    meanwhile.deed = others_deed;
    meanwhile.ran = false;
    first->process.stop_at = step;
    first->process.meanwhile = act_meanwhile;
    scene->first(&stage, first);
    bool reached = meanwhile.ran;
    bool gave_up = scene->first == deed_tend && first->result == LOG_LOCKED; /* and says so */
    (void)must(gave_up || is_excused(first->result) ? LOG_OK : first->result);
    (void)is_excused(other->result); /* what was done since then is in doubt, too */
    (void)stage_agrees(&stage, first);
    go_on();
    return reached;
}

static unsigned number;
static int status;

static void report(const char *what, const char *more, unsigned steps)
{
    bool good = stage.wrong == NULL && steps > 0 && steps < STEPS_MOST;
    printf("%s %u - %s%s: %u steps, %u images\n", good ? "ok" : "not ok", ++number, what, more,
           steps, images);
    if (!good) {
        printf("# at step %u: %s\n", steps + 1, stage.wrong != NULL ? stage.wrong : "no end");
        status = 1;
    }
    images = 0;
    stage.wrong = NULL;
}

static void kill_everywhere(const struct scene *scene, const char *more)
{
    char what[128];
    unsigned step = 0;
    while (step < STEPS_MOST && kill_at(scene, step + 1) && stage.wrong == NULL) {
        end();
        step++;
    }
    end();
    (void)snprintf(what, sizeof what, "killed while it %s", scene->name);
    report(what, more, step);
}

static void pause_everywhere(const struct scene *scene, const struct scene *meanwhile_scene)
{
    char what[128];
    unsigned step = 0;
    while (step < STEPS_MOST && pause_at(scene, meanwhile_scene->first, step + 1) &&
           stage.wrong == NULL) {
        end();
        step++;
    }
    end();
    (void)snprintf(what, sizeof what, "%s, and meanwhile another ", scene->name);
    report(what, meanwhile_scene->name, step);
}

int main(void)
{
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        kill_everywhere(&scenes[i], "");
        besides.halves = true;
        kill_everywhere(&scenes[i], " in small parts");
        besides.halves = false;
        for (besides.fail_sync = 1; besides.fail_sync <= 2; besides.fail_sync++)
            kill_everywhere(&scenes[i], besides.fail_sync == 1 ? ", its first sync failing"
                                                               : ", its second sync failing");
        besides.fail_sync = 0;
        for (size_t j = 0; j < sizeof others / sizeof *others; j++)
            pause_everywhere(&scenes[i], &others[j]);
    }
    printf("1..%u\n", number);
    return status;
}
