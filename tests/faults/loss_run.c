/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a workload: up to three verbs on two keys by two processes, each followed by nothing, by a
 * sync, or by the other process that reads and syncs; a compaction before any of them or at the
 * end. Every reply is recorded in the stream of the disk's writes.
 */
#include "power_loss.h"

#include "base/check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    PROCESSES = 2,
    KINDS = 3,  /* put small, put large, erase */
    AFTERS = 3, /* nothing, sync, the other process reads and syncs */
    FIRST = KINDS * AFTERS,
    NEXT = PROCESSES * LOSS_KEYS * KINDS * AFTERS, /* process and key of the first are fixed */
    BY_ONE = FIRST * 3,                            /* … times the positions of the compaction */
    BY_TWO = FIRST * NEXT * 4,
    BY_THREE = FIRST * NEXT * NEXT * 5,
};

const char *const loss_keys[LOSS_KEYS] = {"a", "b"};
static const char *const small[LOSS_STEPS] = {"first", "second", "third"};
static char large[LOSS_STEPS][LOSS_LARGE + 1];

struct player {
    unsigned workload;
    struct fake_disk disk, base;
    struct log *logs[PROCESSES];
    struct loss_history story;
    unsigned notify; /* the last view */
};

static void note(struct player *player)
{
    fake_disk_note(&player->disk, LOSS_NOTE(player->story.change_count, player->notify));
}

bool loss_identify(const struct loss_history *story, unsigned key,
                   const struct kit_value *seen_value, int *out_change)
{
    *out_change = LOSS_NOBODY;
    for (unsigned i = 0; i < story->change_count && seen_value->revision != 0; i++) {
        const struct loss_change *change = &story->changes[i];
        /* A write that failed without effect leaves its revision to the next one. */
        if (change->written.revision != seen_value->revision || change->key != key ||
            change->value == NULL || strlen(change->value) != seen_value->length ||
            strcmp(change->value, seen_value->value) != 0)
            continue;
        *out_change = (int)i;
        return true;
    }
    return seen_value->revision == 0;
}

/* Within a turn: the current records, by change. */
static enum log_result read_view(struct player *player, struct log *log, struct loss_view *out)
{
    enum log_result result = LOG_OK;
    out->changes = player->story.change_count;
    for (unsigned key = 0; key < LOSS_KEYS && result == LOG_OK; key++) {
        struct kit_value seen_value = {0};
        struct log_record record;
        result = log_find(log, loss_keys[key], 1, &record);
        if (result == LOG_OK && record.type == LOG_PUT) {
            seen_value.revision = record.written.revision;
            seen_value.length = record.length;
            memcpy(seen_value.value, record.bytes, record.length);
        }
        if (!loss_identify(&player->story, key, &seen_value, &out->standing[key]))
            loss_violation("a process reads what nobody wrote", player->workload, /* moment= */ 0);
    }
    return result;
}

/* Everything that the process has read is synced: reports it to its caller. */
static enum log_result reply(struct player *player, struct log *log, const struct loss_view *view)
{
    struct loss_history *story = &player->story;
    bool early = loss_bug == BUG_EARLY_ANSWER;
    enum log_result result = early ? LOG_OK : kit_sync(&player->disk.table, log);
    if (result != LOG_OK)
        return result;
    story->views[story->view_count] = *view;
    player->notify = story->view_count++;
    note(player);
    return early ? kit_sync(&player->disk.table, log) : LOG_OK;
}

/* One change in a turn; `out_view` is what the process has read then. */
static enum log_result make_change(struct player *player, struct log *log, unsigned key,
                                   const char *value, struct loss_view *out_view)
{
    struct loss_history *story = &player->story;
    struct loss_change *made = &story->changes[story->change_count];
    size_t length = value != NULL ? strlen(value) : 0;
    const struct disk *disk = &player->disk.table;
    enum log_result result = log_begin(log, log_record_size(1, length), kit_deadline(disk));
    if (result != LOG_OK)
        return result;
    result = read_view(player, log, out_view);
    if (result == LOG_OK)
        result = kit_append(log, loss_keys[key], value, /* urgent= */ false, &made->written);
    if (result == LOG_OK) { /* may take effect from here on */
        made->key = key;
        made->value = value;
        out_view->standing[key] = value != NULL ? (int)story->change_count : LOSS_NOBODY;
        out_view->changes = ++story->change_count;
    }
    enum log_result ended = log_end(log);
    note(player);
    return result != LOG_OK ? result : ended;
}

/* Another process reads, and reports what it read. */
static enum log_result ask(struct player *player, struct log *log)
{
    struct loss_view view;
    enum log_result result = log_begin(log, /* need= */ 0, kit_deadline(&player->disk.table));
    if (result != LOG_OK)
        return result;
    result = read_view(player, log, &view);
    enum log_result ended = log_end(log);
    if (result == LOG_OK)
        result = ended;
    if (result == LOG_OK && loss_bug == BUG_OTHERS_UNSYNCED) {
        player->story.views[player->story.view_count] = view;
        player->notify = player->story.view_count++;
        note(player);
        return LOG_OK;
    }
    return result == LOG_OK ? reply(player, log, &view) : result;
}

static enum log_result step(struct player *player, unsigned number, unsigned way)
{
    struct loss_view view;
    unsigned kind = way % KINDS, after = way / KINDS % AFTERS;
    unsigned key = way / FIRST % LOSS_KEYS, process = way / FIRST / LOSS_KEYS;
    struct log *log = player->logs[process], *other = player->logs[1 - process];
    const char *value = kind == 0 ? small[number] : kind == 1 ? large[number] : NULL;
    enum log_result result = make_change(player, log, key, value, &view);
    if (result == LOG_OK && after == 1)
        result = reply(player, log, &view);
    if (result == LOG_OK && after == 2)
        result = ask(player, other);
    return result;
}

/* A failed call spoils the changes of that moment, and no later ones. */
static void expect(struct player *player, enum log_result result, unsigned calls_before)
{
    bool spoilt = player->disk.fail_at > calls_before && player->disk.calls >= player->disk.fail_at;
    if (result == LOG_OK || spoilt)
        return;
    char what[256] = "the workload itself failed: ";
    struct text text;
    text_init(&text, what, sizeof what);
    text_add(&text, "the workload itself failed: ");
    log_explain(player->logs[0], result, &text);
    loss_violation(what, player->workload, /* moment= */ 0);
}

static void tend(struct player *player, unsigned process)
{
    unsigned calls = player->disk.calls;
    const struct fake_file *before = fake_disk_file(&player->disk, "");
    enum log_result result = kit_tend(player->logs[process]);
    if (result == LOG_OK)
        result = kit_sync(&player->disk.table, player->logs[process]);
    expect(player, result, calls);
    loss_figures.compactions += fake_disk_file(&player->disk, "") != before;
}

static void open_both(struct player *player)
{
    for (unsigned i = 0; i < PROCESSES; i++) {
        enum log_result result = LOG_IO;
        for (int tries = 0; tries < 2 && player->logs[i] == NULL; tries++)
            player->logs[i] = kit_open(&player->disk.table, /* boot= */ 1, &result, NULL);
        if (player->logs[i] == NULL)
            loss_violation("it does not open the second time", player->workload, /* moment= */ 0);
    }
}

static void begin(struct player *player, unsigned workload)
{
    player->workload = workload;
    player->notify = 0;
    player->story =
        (struct loss_history){.view_count = 1, .views = {{.standing = {LOSS_NOBODY, LOSS_NOBODY}}}};
    fake_disk_init(&player->disk);
    player->disk.boot_ms = 1000;
    player->disk.wall_ms = 1000000;
    loss_bug_into(&player->disk, /* recovering= */ false);
    for (unsigned i = 0; i < LOSS_STEPS; i++)
        memset(large[i], (int)('A' + i), LOSS_LARGE);
}

/* From here on every call is recorded, and the fails-th fails. */
static void begin_recording(struct player *player, unsigned fails)
{
    fake_disk_copy(&player->base, &player->disk);
    player->disk.recording = true;
    player->disk.calls = 0;
    player->disk.fail_at = fails;
    player->disk.error = EIO;
}

static bool end(struct player *player, unsigned fails)
{
    bool reached = player->disk.calls >= fails;
    player->story.failed = fails > 0;
    player->disk.recording = false;
    player->disk.fail_at = 0;
    log_close(&player->logs[0]);
    log_close(&player->logs[1]);
    loss_figures.workloads++;
    loss_figures.failures += fails > 0 && reached;
    if (reached && loss_figures.violations == 0)
        loss_check(&player->disk, &player->base, &player->story, player->workload);
    fake_disk_done(&player->disk);
    fake_disk_done(&player->base);
    return reached;
}

unsigned loss_workloads(void)
{
    return BY_ONE + BY_TWO + BY_THREE;
}

static struct player player; /* large */

bool loss_run(unsigned workload, unsigned fails)
{
    unsigned length = workload < BY_ONE ? 1 : workload < BY_ONE + BY_TWO ? 2 : 3;
    unsigned code = workload - (length > 1 ? BY_ONE : 0) - (length > 2 ? BY_TWO : 0);
    unsigned places = length + 2, tended = code % places; /* the last: no compaction */
    code /= places;
    begin(&player, workload);
    open_both(&player);
    if (loss_figures.violations == 0 && tended <= length &&
        (kit_make_garbage(&player.disk.table, player.logs[0]) != LOG_OK ||
         kit_sync(&player.disk.table, player.logs[0]) != LOG_OK))
        loss_violation("no litter", workload, /* moment= */ 0);
    begin_recording(&player, fails);
    size_t size = fake_disk_file(&player.disk, "")->size;
    for (unsigned i = 0; i < length && loss_figures.violations == 0; i++) {
        unsigned ways = i == 0 ? FIRST : NEXT;
        if (tended == i)
            tend(&player, code % PROCESSES);
        unsigned calls = player.disk.calls;
        enum log_result result = step(&player, i, code % ways);
        expect(&player, result, calls);
        code /= ways;
    }
    if (tended == length && loss_figures.violations == 0)
        tend(&player, workload % PROCESSES);
    loss_figures.segments += fake_disk_file(&player.disk, "")->size > size;
    return end(&player, fails);
}

bool loss_run_first(unsigned fails)
{
    struct loss_view view;
    begin(&player, loss_workloads());
    begin_recording(&player, fails);
    open_both(&player);
    unsigned calls = player.disk.calls;
    if (loss_figures.violations == 0) {
        enum log_result result = make_change(&player, player.logs[0], 0, small[0], &view);
        if (result == LOG_OK)
            result = reply(&player, player.logs[0], &view);
        expect(&player, result, calls);
    }
    return end(&player, fails);
}
