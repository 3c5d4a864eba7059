/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Races in the log: one process is suspended in the middle of a long operation, a compaction, a
 * growth or a switch of files, and another one interferes; or the operation itself fails.
 * Acknowledged changes must persist, erased keys stay erased, and no failed change is reported.
 */
#include "log_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    LARGE = 200,
    LARGE_RECORD = 272,                            /* of a short key, in the file */
    LOAD = KIT_SEGMENT * 5 / 4 / LARGE_RECORD + 2, /* more than a new file has room for */
    COPY_MOST = 1 << 16,
};

static struct fake_disk other;
static struct disk own; /* of the suspended process: `fake` but for a call or two */
static char large[LARGE + 1];

static void sync_log(struct log *log)
{
    assert_int_equal(kit_sync(disk, log), LOG_OK);
}

static size_t size_of(const char *suffix)
{
    const struct fake_file *file = fake_disk_file(&fake, suffix);
    return file != NULL ? file->size : 0;
}

/* `one` is the suspended process. */
static int begin_suspended(void **state)
{
    (void)state;
    begin_at(1000, 1000000);
    own = fake.table;
    memset(large, 'v', LARGE);
    one = open_on(&own, 1);
    two = open_on(disk, 1);
    return 0;
}

/* The values that every process reads, also one that starts after a boot. */
static void expect(const char *key, const char *value)
{
    assert_true(stands(one, key, value) && stands(two, key, value));
    log_close(&two);
    two = open_on(disk, 1);
    assert_true(stands(two, key, value) && kit_agrees(disk, two));
}

static void boot(void)
{
    log_close(&one);
    log_close(&two);
    one = open_on(disk, 2);
    two = open_on(disk, 2);
}

/* A compaction begins while another process replaces a poisoned file. */

static struct disk replacing; /* of two keys */
static int opened_early;

/* The compaction's call comes right before the new file of the other process gets its name. */
static int rename_late(void *owner, const char *from_suffix, const char *to_suffix)
{
    if (*to_suffix == '\0' && opened_early < 0)
        opened_early = fake.table.open(owner, ".new", DISK_EMPTY);
    return fake.table.rename(owner, from_suffix, to_suffix);
}

static int open_meanwhile_replaced(void *owner, const char *suffix, enum disk_how how)
{
    if (strcmp(suffix, ".new") != 0 || opened_early >= 0)
        return fake.table.open(owner, suffix, how);
    put(two, "lost", "by a failed sync");
    fake.fail_sync_at = fake.syncs + 1;
    assert_int_equal(kit_sync(disk, two), LOG_POISONED);
    put(two, "after", "that");
    sync_log(two);
    assert_true(opened_early >= 0);
    return opened_early;
}

static void a_compaction_takes_no_file_of_a_replacement(void **state)
{
    (void)state;
    log_close(&two);
    replacing = fake.table;
    replacing.rename = rename_late;
    two = open_on(&replacing, 1);
    put(one, "k", "answered");
    assert_int_equal(kit_make_garbage(disk, one), LOG_OK);
    sync_log(one);
    opened_early = -1;
    own.open = open_meanwhile_replaced;
    assert_int_equal(kit_tend(one), LOG_OK);
    own.open = fake.table.open;
    expect("k", "answered");
    expect("after", "that");
    expect("lost", NULL);
    boot();
    expect("k", "answered");
    expect("after", "that");
}

/* A process recovers while another is suspended in a growth, right before its zeros. */

static unsigned answered; /* number of values of "k", each larger by one */

static const char *value_of(unsigned number)
{
    return large + LARGE - 1 - number;
}

/* Until there is no room without growing. */
static bool answers(struct log *log)
{
    struct stamp written;
    const char *value = value_of(answered + 1);
    return kit_put(disk, log, "k", value, &written) == LOG_OK && kit_sync(disk, log) == LOG_OK;
}

static int64_t write_late(void *owner, int file, const void *bytes, size_t length, uint64_t offset)
{
    if (length >= KIT_SEGMENT && answered == 0) {
        fake_disk_remove(&fake, ".index");
        struct log *late = kit_open(disk, 1, &result, NULL);
        while (late != NULL && answers(late))
            answered++;
        log_close(&late);
    }
    return fake.table.write(owner, file, bytes, length, offset);
}

static void a_slow_growth_falls_on_nothing_that_was_answered(void **state)
{
    (void)state;
    struct stamp written;
    /* A growth that fails in its middle: the file is longer than recorded. */
    fake.size_limit = size_of("") + KIT_SEGMENT / 2;
    for (result = LOG_OK; result == LOG_OK;)
        result = kit_put(disk, two, "f", large, &written);
    assert_int_equal(result, LOG_FULL);
    assert_int_equal(size_of(""), fake.size_limit);
    fake.size_limit = 0;
    answered = 0;
    put(two, "k", value_of(0));
    own.write = write_late;
    put(one, "g", large);
    own.write = fake.table.write;
    expect("k", value_of(answered));
    expect("g", large);
    boot();
    expect("k", value_of(answered));
    assert_int_equal(log_cuts(one), 0);
}

/* A compaction fails. */

/* Data to compact, and under "k" nothing any more, too old to be kept as history. */
static void prepare_compaction(void)
{
    put(one, "k", "held");
    put(one, "k", NULL);
    put(one, "l", "held");
    for (int i = 0; i < 2 * KIT_WINDOW / LARGE_RECORD + 1; i++)
        put(one, "filler", large);
    assert_int_equal(kit_make_garbage(disk, one), LOG_OK);
    sync_log(one);
}

/* Runs it with each of its calls failing once, and then `check`s. */
static void fail_each_call(void **state, int error, void (*check)(void))
{
    bool reached = true;
    for (unsigned call = 1; reached; call++) {
        (void)begin_suspended(state);
        prepare_compaction();
        fake.fail_at = fake.calls + call;
        fake.error = error;
        result = kit_tend(one);
        reached = fake.calls >= fake.fail_at;
        fake.fail_at = 0;
        assert_true(reached || result == LOG_OK);
        check();
        assert_int_equal(end(state), 0);
    }
}

static void check_what_stands(void)
{
    expect("k", NULL);
    expect("l", "held");
    expect("filler", large);
    assert_int_equal(kit_tend(two), LOG_OK);
    assert_false(log_needs_maintenance(two));
    expect("k", NULL);
    boot();
    expect("k", NULL);
    expect("l", "held");
}

static void a_compaction_that_fails_brings_nothing_back(void **state)
{
    fail_each_call(state, EIO, check_what_stands);
}

static void check_room(void)
{
    assert_int_equal(size_of(".new"), 0);
    assert_int_equal(size_of(".index.new"), 0);
}

static void a_compaction_that_fails_leaves_no_room_taken(void **state)
{
    fail_each_call(state, ENOSPC, check_room);
}

/* A compaction under load. */

static int new_file;
static unsigned loads, loads_most;

static int open_new(void *owner, const char *suffix, enum disk_how how)
{
    int file = fake.table.open(owner, suffix, how);
    if (strcmp(suffix, ".new") == 0)
        new_file = file;
    return file;
}

static int sync_under_load(void *owner, int file)
{
    if (file == new_file && loads < loads_most) {
        loads++;
        for (int i = 0; i < LOAD; i++)
            put(two, "busy", large);
        sync_log(two);
    }
    return fake.table.sync(owner, file);
}

static enum log_result tend_under_load(unsigned most)
{
    own.open = open_new;
    own.sync = sync_under_load;
    new_file = -1;
    loads = 0;
    loads_most = most;
    result = kit_tend(one);
    own.sync = fake.table.sync;
    own.open = fake.table.open;
    return result;
}

static void a_compaction_catches_up_with_those_who_append(void **state)
{
    (void)state;
    for (unsigned most = 1; most <= 2; most++) {
        put(one, "k", "held");
        assert_int_equal(kit_make_garbage(disk, one), LOG_OK);
        uint64_t before = log_generation(one);
        assert_int_equal(tend_under_load(most), LOG_OK);
        assert_int_equal(loads, most);
        assert_true(log_generation(one) == before + 1);
        expect("k", "held");
        expect("busy", large);
    }
}

static void a_compaction_that_gives_up_says_so(void **state)
{
    (void)state;
    put(one, "k", "held");
    assert_int_equal(kit_make_garbage(disk, one), LOG_OK);
    uint64_t before = log_generation(one);
    assert_int_equal(tend_under_load(/* most= */ 3), LOG_LOCKED);
    assert_int_equal(loads, 3);
    assert_true(log_generation(one) == before && log_needs_maintenance(one));
    check_room();
    expect("busy", large);
    assert_int_equal(kit_tend(one), LOG_OK);
    assert_true(log_generation(one) == before + 1 && !log_needs_maintenance(one));
    expect("k", "held");
    expect("busy", large);
}

/* A process that has no descriptor left for the index. */

static enum disk_how scarce; /* for such calls alone */

/* As the real disk does it: the old name is gone before a descriptor is missing. */
static int open_no_index(void *owner, const char *suffix, enum disk_how how)
{
    if (strncmp(suffix, ".index", 6) != 0 || how != scarce)
        return fake.table.open(owner, suffix, how);
    if (how == DISK_EMPTY)
        fake_disk_remove(&fake, suffix);
    return -EMFILE;
}

/* Its revisions are consecutive: no process had to recover. */
static void expect_next(uint64_t *last)
{
    assert_int_equal(result, LOG_IO);
    assert_true(put(two, "k", "held").revision == ++*last);
}

static void no_descriptor_left_harms_no_other_process(void **state)
{
    (void)state;
    struct disk poor = fake.table;
    poor.open = open_no_index;
    uint64_t last = put(two, "k", "held").revision;
    scarce = DISK_OPEN;
    for (int i = 0; i < 4; i++) {
        assert_null(kit_open(&poor, 1, &result, NULL));
        assert_non_null(fake_disk_file(&fake, ".index"));
        expect_next(&last);
    }
    fake_disk_remove(&fake, ".index"); /* then it tries to make another one */
    scarce = DISK_EMPTY;
    assert_null(kit_open(&poor, 1, &result, NULL));
    expect_next(&last);
    expect("k", "held");
}

/* Another copy of the log is put in its place. */

static unsigned char copy[COPY_MOST], found[COPY_MOST];

static void replace_log(size_t length)
{
    fake_disk_remove(&fake, "");
    int file = disk->open(disk->owner, "", DISK_CREATE);
    assert_int_equal(disk_write(disk, file, copy, length, /* offset= */ 0), 0);
    disk->close(disk->owner, file);
}

static void expect_refusal(size_t length)
{
    struct stamp written;
    struct log *late = kit_open(disk, 1, &result, NULL);
    assert_null(late);
    assert_true(result == LOG_REMOVED || result == LOG_DAMAGED);
    assert_int_equal(kit_put(disk, two, "new", "granted", &written), LOG_REMOVED);
    size_t size = fake_file_get(fake_disk_file(&fake, ""), found, sizeof found, /* offset= */ 0);
    assert_int_equal(size, length);
    assert_memory_equal(found, copy, length);
}

static void an_older_copy_in_its_place_is_refused(void **state)
{
    (void)state;
    put(one, "k", "first");
    sync_log(one);
    size_t length = fake_file_get(fake_disk_file(&fake, ""), copy, sizeof copy, /* offset= */ 0);
    put(one, "k", "second");
    sync_log(one);
    log_close(&one);
    replace_log(length);
    expect_refusal(length);
    fake_disk_remove(&fake, ".index");
    expect_refusal(length);
}

/* It has a record at the same place, and a whole one. */
static void a_copy_that_went_another_way_is_refused(void **state)
{
    (void)state;
    put(one, "k", "first");
    sync_log(one);
    fake_disk_copy(&other, &fake);
    struct log *there = open_on(&other.table, 1);
    put(one, "k", "left");
    sync_log(one);
    struct stamp written;
    assert_int_equal(kit_put(&other.table, there, "k", "gone", &written), LOG_OK);
    log_close(&there);
    size_t length = fake_file_get(fake_disk_file(&other, ""), copy, sizeof copy, /* offset= */ 0);
    fake_disk_done(&other);
    log_close(&one);
    replace_log(length);
    expect_refusal(length);
    assert_int_equal(result, LOG_REMOVED);
}

/* The folder cannot be synced when the files are switched. */

static int fail_folder(void *owner)
{
    fake.fail_at = fake.calls + 1;
    fake.error = EIO;
    int error = fake.table.sync_folder(owner);
    fake.fail_at = 0;
    return error;
}

/* Every subset that a power loss may leave of the unsynced writes. */
static void check_after_power_loss(const struct fake_disk *base)
{
    int pending[FAKE_PENDING];
    size_t count = fake_disk_pending(&fake, fake.event_count, pending);
    assert_in_range(count, 1, 12);
    for (uint64_t kept = 0; kept < (uint64_t)1 << count; kept++) {
        struct fake_choice choice = {.kept = kept, .torn = -1, .unsynced = UNSYNCED_ABSENT};
        fake_disk_image(&fake, base, fake.event_count, &choice, &other);
        struct log *log = open_on(&other.table, 2);
        assert_true(kit_has(&other.table, log, "a", "1"));
        assert_true(kit_has(&other.table, log, "b", "2"));
        log_close(&log);
        fake_disk_done(&other);
    }
}

static void a_name_that_was_not_synced_is_not_built_upon(void **state)
{
    (void)state;
    static struct fake_disk base;
    put(one, "a", "1");
    assert_int_equal(kit_make_garbage(disk, one), LOG_OK);
    sync_log(one);
    fake_disk_copy(&base, &fake);
    fake.recording = true;
    own.sync_folder = fail_folder;
    assert_int_equal(kit_tend(one), LOG_IO);
    own.sync_folder = fake.table.sync_folder;
    put(two, "b", "2");
    sync_log(two);
    check_after_power_loss(&base);
    fake_disk_done(&base);
    expect("a", "1");
    expect("b", "2");
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, begin_suspended, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_compaction_takes_no_file_of_a_replacement),
        CASE(a_slow_growth_falls_on_nothing_that_was_answered),
        cmocka_unit_test(a_compaction_that_fails_brings_nothing_back),
        cmocka_unit_test(a_compaction_that_fails_leaves_no_room_taken),
        CASE(a_compaction_catches_up_with_those_who_append),
        CASE(a_compaction_that_gives_up_says_so),
        CASE(no_descriptor_left_harms_no_other_process),
        CASE(an_older_copy_in_its_place_is_refused),
        CASE(a_copy_that_went_another_way_is_refused),
        CASE(a_name_that_was_not_synced_is_not_built_upon),
    };
    return cmocka_run_group_tests_name("log_race", tests, NULL, NULL);
}
