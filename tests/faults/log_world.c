/* SPDX-License-Identifier: Apache-2.0 */
/* See log_world.h. */
#include "log_world.h"

#include "base/check.h"

#include <errno.h>
#include <string.h>

enum { LARGE = 3000 };

static const char *const keys[ACTOR_KEYS] = {"a", "b"};
static const char *const values[] = {"one",    "two",    "three",    "four",     "five",
                                     "six",    "seven",  "eight",    "nine",     "ten",
                                     "eleven", "twelve", "thirteen", "fourteen", "fifteen"};
static char large[LARGE + 1];

static void wrong(struct world *world, const char *what)
{
    if (world->wrong == NULL)
        world->wrong = what;
}

void log_world_begin(struct world *world)
{
    memset(large, 'x', LARGE);
    fake_disk_init(&world->disk);
    world->disk.boot_ms = 1000;
    world->disk.wall_ms = 1000000;
    world->boot = 1;
    world->change_count = 0;
    world->wrong = NULL;
    for (int i = 0; i < ACTORS; i++) {
        fake_process_init(&world->actors[i].process, &world->disk);
        world->actors[i].log = NULL;
    }
}

void log_world_end(struct world *world)
{
    for (int i = 0; i < ACTORS; i++)
        log_close(&world->actors[i].log);
    fake_disk_done(&world->disk);
}

void log_world_boot(struct world *world)
{
    for (int i = 0; i < ACTORS; i++)
        log_close(&world->actors[i].log);
    world->boot++;
    world->disk.boot_ms = 100;
    world->disk.wall_ms += 5000;
}

static bool open_log(struct world *world, struct actor *actor)
{
    actor->result = LOG_OK;
    if (actor->log == NULL)
        actor->log = kit_open(&actor->process.table, world->boot, &actor->result, NULL);
    return actor->log != NULL;
}

void op_open(struct world *world, struct actor *actor)
{
    log_close(&actor->log);
    (void)open_log(world, actor);
}

void op_find_index(struct world *world, struct actor *actor)
{
    log_close(&actor->log);
    fake_disk_remove(&world->disk, ".index");
    (void)open_log(world, actor);
}

static enum log_result append(struct world *world, struct log *log, unsigned key, const char *value,
                              bool urgent)
{
    struct stamp written;
    ASSERT(world->change_count < CHANGES);
    enum log_result result = kit_append(log, keys[key], value, urgent, &written);
    if (result == LOG_OK)
        world->changes[world->change_count++] = (struct log_change){
            .key = key, .value = value, .revision = written.revision, .state = CHANGE_MAYBE};
    return result;
}

/* Changes in one turn, from the left; an empty string erases. */
static void change(struct world *world, struct actor *actor, const unsigned *key,
                   const char *const *new_values, unsigned count, bool urgent)
{
    uint64_t need = 0;
    unsigned first = world->change_count;
    if (!open_log(world, actor))
        return;
    for (unsigned i = 0; i < count; i++)
        need += log_record_size(1, new_values[i] != NULL ? strlen(new_values[i]) : 0);
    actor->result = log_begin(actor->log, need, kit_deadline(&actor->process.table));
    if (actor->result != LOG_OK)
        return;
    enum log_result result = LOG_OK;
    for (unsigned i = 0; i < count && result == LOG_OK; i++)
        result = append(world, actor->log, key[i], new_values[i], urgent);
    actor->result = log_end(actor->log);
    for (unsigned i = first; i < world->change_count && actor->result == LOG_OK; i++)
        if (!actor->process.dead)
            world->changes[i].state = CHANGE_DONE;
    if (actor->result == LOG_OK)
        actor->result = result;
}

static const char *next_value(const struct world *world)
{
    return values[world->change_count % (sizeof values / sizeof *values)];
}

/* Everything that it has read is on the disk now, and is reported to its caller. */
static void report(struct world *world, struct actor *actor)
{
    if (actor->result != LOG_OK)
        return;
    unsigned known = world->change_count;
    uint64_t revision = log_revision(actor->log);
    actor->result = kit_sync(&actor->process.table, actor->log);
    for (unsigned i = 0; i < known && actor->result == LOG_OK && !actor->process.dead; i++)
        if (world->changes[i].state == CHANGE_DONE && world->changes[i].revision <= revision)
            world->changes[i].state = CHANGE_REPORTED;
}

void op_put(struct world *world, struct actor *actor)
{
    unsigned key = 1;
    const char *value = next_value(world);
    change(world, actor, &key, &value, 1, /* urgent= */ false);
}

void op_put_told(struct world *world, struct actor *actor)
{
    unsigned key = 0;
    const char *value = next_value(world);
    change(world, actor, &key, &value, 1, /* urgent= */ false);
    report(world, actor);
}

void op_put_large(struct world *world, struct actor *actor)
{
    unsigned key[] = {0, 1};
    const char *const new_values[] = {large, large};
    change(world, actor, key, new_values, 2, /* urgent= */ false);
    report(world, actor);
}

void op_index_put(struct world *world, struct actor *actor)
{
    unsigned key = 0;
    const char *value = large;
    op_find_index(world, actor);
    if (actor->log == NULL)
        return;
    change(world, actor, &key, &value, 1, /* urgent= */ false);
    report(world, actor);
}

void op_turn(struct world *world, struct actor *actor)
{
    unsigned key[] = {0, 0, 1};
    const char *const new_values[] = {next_value(world), NULL, next_value(world)};
    change(world, actor, key, new_values, 3, /* urgent= */ false);
    report(world, actor);
}

void op_erase(struct world *world, struct actor *actor)
{
    unsigned key = 0;
    const char *nothing = NULL;
    change(world, actor, &key, &nothing, 1, /* urgent= */ false);
    report(world, actor);
}

void op_release(struct world *world, struct actor *actor)
{
    unsigned key = 1;
    const char *nothing = NULL;
    change(world, actor, &key, &nothing, 1, /* urgent= */ true);
    report(world, actor);
}

void op_make_garbage(struct world *world, struct actor *actor)
{
    if (open_log(world, actor))
        actor->result = kit_make_garbage(&actor->process.table, actor->log);
}

void op_tend(struct world *world, struct actor *actor)
{
    if (!open_log(world, actor))
        return;
    actor->result = kit_tend(actor->log);
    if (actor->result == LOG_LOCKED) /* conflict with others: retry later */
        actor->result = LOG_OK;
    report(world, actor);
}

void op_read(struct world *world, struct actor *actor)
{
    struct kit_value seen_value;
    if (!open_log(world, actor))
        return;
    kit_read(&actor->process.table, actor->log, keys[0], &seen_value);
    actor->result = seen_value.result;
}

void op_ask(struct world *world, struct actor *actor)
{
    op_read(world, actor);
    if (actor->log != NULL)
        report(world, actor);
}

void log_world_doubt(struct world *world)
{
    for (unsigned i = 0; i < world->change_count; i++)
        if (world->changes[i].state == CHANGE_DONE)
            world->changes[i].state = CHANGE_MAYBE;
}

void log_world_discard(struct world *world, struct actor *actor)
{
    log_close(&actor->log);
    fake_process_discard(&actor->process);
    fake_process_init(&actor->process, &world->disk);
}

static void die_in_sync(struct world *world)
{
    struct actor *last = &world->actors[ACTORS - 1];
    if (last->log == NULL)
        return;
    last->process.crashes_on_sync = true;
    world->disk.fail_sync_at = world->disk.syncs + 1;
    (void)kit_sync(&last->process.table, last->log);
    world->disk.fail_sync_at = 0;
    last->process.crashes_on_sync = false;
    if (last->process.dead)
        log_world_discard(world, last);
}

void op_bad_sync(struct world *world, struct actor *actor)
{
    op_put(world, actor);
    if (actor->result == LOG_OK)
        op_read(world, &world->actors[ACTORS - 1]);
    if (actor->result == LOG_OK)
        die_in_sync(world);
}

void op_bad_sync_told(struct world *world, struct actor *actor)
{
    op_bad_sync(world, actor);
    if (actor->result == LOG_OK)
        report(world, actor);
}

void op_bad_sync_alone(struct world *world, struct actor *actor)
{
    die_in_sync(world);
    actor->result = LOG_OK;
    if (actor->log != NULL)
        report(world, actor);
}

/* The last change of the key that has at least this state; −1: none. */
static int last_certain(const struct world *world, unsigned key, enum change_state least)
{
    int last = -1;
    for (unsigned i = 0; i < world->change_count; i++) {
        const struct log_change *log_change = &world->changes[i];
        if (log_change->key == key && log_change->state >= least &&
            (last < 0 || log_change->revision > world->changes[last].revision))
            last = (int)i;
    }
    return last;
}

/* True if this is the value after the last certain change, or after one that may have happened. */
static bool can_stand(const struct world *world, unsigned key, enum change_state least,
                      const struct kit_value *seen_value)
{
    int last = last_certain(world, key, least);
    uint64_t floor = last >= 0 ? world->changes[last].revision : 0;
    if (seen_value->revision == 0 && (last < 0 || world->changes[last].value == NULL))
        return true;
    for (unsigned i = 0; i < world->change_count; i++) {
        const struct log_change *log_change = &world->changes[i];
        if (log_change->key != key || log_change->revision < floor)
            continue;
        if (seen_value->revision == 0 && log_change->value == NULL)
            return true;
        if (log_change->value != NULL && log_change->revision == seen_value->revision &&
            strlen(log_change->value) == seen_value->length &&
            strcmp(log_change->value, seen_value->value) == 0)
            return true;
    }
    return false;
}

static bool agrees(struct world *world, const struct disk *disk, struct log *log,
                   enum change_state least)
{
    bool fine = true;
    for (unsigned key = 0; key < ACTOR_KEYS; key++) {
        struct kit_value seen_value;
        kit_read(disk, log, keys[key], &seen_value);
        if (seen_value.result == LOG_LOCKED)
            return true;
        if (seen_value.result != LOG_OK)
            wrong(world, "it cannot be read");
        else if (!can_stand(world, key, least, &seen_value))
            wrong(world, "what stands cannot be there");
        fine &= seen_value.result == LOG_OK && can_stand(world, key, least, &seen_value);
    }
    if (fine && !kit_agrees(disk, log))
        wrong(world, "the index says something else than the log");
    return fine && world->wrong == NULL;
}

bool log_world_agrees(struct world *world, struct actor *actor)
{
    if (!open_log(world, actor)) {
        wrong(world, "it does not open");
        return false;
    }
    return agrees(world, &actor->process.table, actor->log, CHANGE_DONE);
}

bool log_world_survives(struct world *world, struct fake_disk *image, bool clean)
{
    enum log_result result;
    struct log *log = kit_open(&image->table, world->boot + 1, &result, NULL);
    if (log == NULL) {
        wrong(world, "it does not open after a loss");
        return false;
    }
    if (clean && log_cuts(log) > 0)
        wrong(world, "something is left to be cut");
    bool fine = agrees(world, &image->table, log, CHANGE_REPORTED);
    log_close(&log);
    return fine;
}
