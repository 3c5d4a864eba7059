/* SPDX-License-Identifier: Apache-2.0 */
/* See actors.h. */
#include "actors.h"

#include "base/check.h"

#include <errno.h>
#include <string.h>

enum { LARGE = 3000 };

static const char *const keys[ACTOR_KEYS] = {"a", "b"};
static const char *const values[] = {"one",    "two",    "three",    "four",     "five",
                                     "six",    "seven",  "eight",    "nine",     "ten",
                                     "eleven", "twelve", "thirteen", "fourteen", "fifteen"};
static char large[LARGE + 1];

static void wrong(struct stage *stage, const char *what)
{
    if (stage->wrong == NULL)
        stage->wrong = what;
}

void stage_begin(struct stage *stage)
{
    memset(large, 'x', LARGE);
    fake_disk_init(&stage->disk);
    stage->disk.boot_ms = 1000;
    stage->disk.wall_ms = 1000000;
    stage->boot = 1;
    stage->act_count = 0;
    stage->wrong = NULL;
    for (int i = 0; i < ACTORS; i++) {
        mortal_init(&stage->actors[i].process, &stage->disk);
        stage->actors[i].log = NULL;
    }
}

void stage_end(struct stage *stage)
{
    for (int i = 0; i < ACTORS; i++)
        log_close(&stage->actors[i].log);
    fake_disk_done(&stage->disk);
}

void stage_boot(struct stage *stage)
{
    for (int i = 0; i < ACTORS; i++)
        log_close(&stage->actors[i].log);
    stage->boot++;
    stage->disk.boot_ms = 100;
    stage->disk.wall_ms += 5000;
}

static bool open_log(struct stage *stage, struct actor *actor)
{
    actor->result = LOG_OK;
    if (actor->log == NULL)
        actor->log = kit_open(&actor->process.table, stage->boot, &actor->result, NULL);
    return actor->log != NULL;
}

void deed_open(struct stage *stage, struct actor *actor)
{
    log_close(&actor->log);
    (void)open_log(stage, actor);
}

void deed_find_index(struct stage *stage, struct actor *actor)
{
    log_close(&actor->log);
    fake_disk_remove(&stage->disk, ".index");
    (void)open_log(stage, actor);
}

static enum log_result append(struct stage *stage, struct log *log, unsigned key, const char *value,
                              bool urgent)
{
    struct stamp written;
    ASSERT(stage->act_count < ACTS);
    enum log_result result = kit_append(log, keys[key], value, urgent, &written);
    if (result == LOG_OK)
        stage->acts[stage->act_count++] = (struct act){
            .key = key, .value = value, .revision = written.revision, .state = ACT_MAYBE};
    return result;
}

/* Changes in one turn, from the left; an empty word erases. */
static void change(struct stage *stage, struct actor *actor, const unsigned *key,
                   const char *const *words, unsigned count, bool urgent)
{
    uint64_t need = 0;
    unsigned first = stage->act_count;
    if (!open_log(stage, actor))
        return;
    for (unsigned i = 0; i < count; i++)
        need += log_record_size(1, words[i] != NULL ? strlen(words[i]) : 0);
    actor->result = log_begin(actor->log, need, kit_deadline(&actor->process.table));
    if (actor->result != LOG_OK)
        return;
    enum log_result result = LOG_OK;
    for (unsigned i = 0; i < count && result == LOG_OK; i++)
        result = append(stage, actor->log, key[i], words[i], urgent);
    actor->result = log_end(actor->log);
    for (unsigned i = first; i < stage->act_count && actor->result == LOG_OK; i++)
        if (!actor->process.dead)
            stage->acts[i].state = ACT_DONE;
    if (actor->result == LOG_OK)
        actor->result = result;
}

static const char *next_value(const struct stage *stage)
{
    return values[stage->act_count % (sizeof values / sizeof *values)];
}

/* All that it can see is on the disk now, and its caller is told. */
static void tell(struct stage *stage, struct actor *actor)
{
    if (actor->result != LOG_OK)
        return;
    unsigned known = stage->act_count;
    uint64_t revision = log_revision(actor->log);
    actor->result = kit_sync(&actor->process.table, actor->log);
    for (unsigned i = 0; i < known && actor->result == LOG_OK && !actor->process.dead; i++)
        if (stage->acts[i].state == ACT_DONE && stage->acts[i].revision <= revision)
            stage->acts[i].state = ACT_TOLD;
}

void deed_put(struct stage *stage, struct actor *actor)
{
    unsigned key = 1;
    const char *value = next_value(stage);
    change(stage, actor, &key, &value, 1, /* urgent= */ false);
}

void deed_put_told(struct stage *stage, struct actor *actor)
{
    unsigned key = 0;
    const char *value = next_value(stage);
    change(stage, actor, &key, &value, 1, /* urgent= */ false);
    tell(stage, actor);
}

void deed_put_large(struct stage *stage, struct actor *actor)
{
    unsigned key[] = {0, 1};
    const char *const words[] = {large, large};
    change(stage, actor, key, words, 2, /* urgent= */ false);
    tell(stage, actor);
}

void deed_index_put(struct stage *stage, struct actor *actor)
{
    unsigned key = 0;
    const char *value = large;
    deed_find_index(stage, actor);
    if (actor->log == NULL)
        return;
    change(stage, actor, &key, &value, 1, /* urgent= */ false);
    tell(stage, actor);
}

void deed_turn(struct stage *stage, struct actor *actor)
{
    unsigned key[] = {0, 0, 1};
    const char *const words[] = {next_value(stage), NULL, next_value(stage)};
    change(stage, actor, key, words, 3, /* urgent= */ false);
    tell(stage, actor);
}

void deed_erase(struct stage *stage, struct actor *actor)
{
    unsigned key = 0;
    const char *nothing = NULL;
    change(stage, actor, &key, &nothing, 1, /* urgent= */ false);
    tell(stage, actor);
}

void deed_release(struct stage *stage, struct actor *actor)
{
    unsigned key = 1;
    const char *nothing = NULL;
    change(stage, actor, &key, &nothing, 1, /* urgent= */ true);
    tell(stage, actor);
}

void deed_litter(struct stage *stage, struct actor *actor)
{
    if (open_log(stage, actor))
        actor->result = kit_litter(&actor->process.table, actor->log);
}

void deed_tend(struct stage *stage, struct actor *actor)
{
    if (!open_log(stage, actor))
        return;
    actor->result = kit_tend(actor->log);
    if (actor->result == LOG_LOCKED) /* others were in the way: some other time */
        actor->result = LOG_OK;
    tell(stage, actor);
}

void deed_look(struct stage *stage, struct actor *actor)
{
    struct kit_sight sight;
    if (!open_log(stage, actor))
        return;
    kit_look(&actor->process.table, actor->log, keys[0], &sight);
    actor->result = sight.result;
}

void deed_ask(struct stage *stage, struct actor *actor)
{
    deed_look(stage, actor);
    if (actor->log != NULL)
        tell(stage, actor);
}

void stage_doubt(struct stage *stage)
{
    for (unsigned i = 0; i < stage->act_count; i++)
        if (stage->acts[i].state == ACT_DONE)
            stage->acts[i].state = ACT_MAYBE;
}

void stage_bury(struct stage *stage, struct actor *actor)
{
    log_close(&actor->log);
    mortal_bury(&actor->process);
    mortal_init(&actor->process, &stage->disk);
}

static void die_in_sync(struct stage *stage)
{
    struct actor *last = &stage->actors[ACTORS - 1];
    if (last->log == NULL)
        return;
    last->process.dies_of_sync = true;
    stage->disk.fail_sync_at = stage->disk.syncs + 1;
    (void)kit_sync(&last->process.table, last->log);
    stage->disk.fail_sync_at = 0;
    last->process.dies_of_sync = false;
    if (last->process.dead)
        stage_bury(stage, last);
}

void deed_bad_sync(struct stage *stage, struct actor *actor)
{
    deed_put(stage, actor);
    if (actor->result == LOG_OK)
        deed_look(stage, &stage->actors[ACTORS - 1]);
    if (actor->result == LOG_OK)
        die_in_sync(stage);
}

void deed_bad_sync_told(struct stage *stage, struct actor *actor)
{
    deed_bad_sync(stage, actor);
    if (actor->result == LOG_OK)
        tell(stage, actor);
}

void deed_bad_sync_alone(struct stage *stage, struct actor *actor)
{
    die_in_sync(stage);
    actor->result = LOG_OK;
    if (actor->log != NULL)
        tell(stage, actor);
}

/* The last change of the key that is there for certain, at least in this state; −1: none. */
static int last_certain(const struct stage *stage, unsigned key, enum act_state least)
{
    int last = -1;
    for (unsigned i = 0; i < stage->act_count; i++) {
        const struct act *act = &stage->acts[i];
        if (act->key == key && act->state >= least &&
            (last < 0 || act->revision > stage->acts[last].revision))
            last = (int)i;
    }
    return last;
}

/* Is this what stands after the last certain change, or after one that may have happened? */
static bool can_stand(const struct stage *stage, unsigned key, enum act_state least,
                      const struct kit_sight *sight)
{
    int last = last_certain(stage, key, least);
    uint64_t floor = last >= 0 ? stage->acts[last].revision : 0;
    if (sight->revision == 0 && (last < 0 || stage->acts[last].value == NULL))
        return true;
    for (unsigned i = 0; i < stage->act_count; i++) {
        const struct act *act = &stage->acts[i];
        if (act->key != key || act->revision < floor)
            continue;
        if (sight->revision == 0 && act->value == NULL)
            return true;
        if (act->value != NULL && act->revision == sight->revision &&
            strlen(act->value) == sight->length && strcmp(act->value, sight->value) == 0)
            return true;
    }
    return false;
}

static bool agrees(struct stage *stage, const struct disk *disk, struct log *log,
                   enum act_state least)
{
    bool fine = true;
    for (unsigned key = 0; key < ACTOR_KEYS; key++) {
        struct kit_sight sight;
        kit_look(disk, log, keys[key], &sight);
        if (sight.result == LOG_LOCKED)
            return true;
        if (sight.result != LOG_OK)
            wrong(stage, "it cannot be read");
        else if (!can_stand(stage, key, least, &sight))
            wrong(stage, "what stands cannot be there");
        fine &= sight.result == LOG_OK && can_stand(stage, key, least, &sight);
    }
    if (fine && !kit_agrees(disk, log))
        wrong(stage, "the index says something else than the log");
    return fine && stage->wrong == NULL;
}

bool stage_agrees(struct stage *stage, struct actor *actor)
{
    if (!open_log(stage, actor)) {
        wrong(stage, "it does not open");
        return false;
    }
    return agrees(stage, &actor->process.table, actor->log, ACT_DONE);
}

bool stage_survives(struct stage *stage, struct fake_disk *image, bool clean)
{
    enum log_result result;
    struct log *log = kit_open(&image->table, stage->boot + 1, &result, NULL);
    if (log == NULL) {
        wrong(stage, "it does not open after a loss");
        return false;
    }
    if (clean && log_cuts(log) > 0)
        wrong(stage, "something is left to be cut");
    bool fine = agrees(stage, &image->table, log, ACT_TOLD);
    log_close(&log);
    return fine;
}
