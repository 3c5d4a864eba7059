/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log without faults: a value that was put is found, by every handle, also before it is
 * written; revisions and times grow; the history can be read; files grow and are replaced while
 * other handles use them.
 */
#include "log_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void a_put_key_is_found_until_it_is_erased(void **state)
{
    (void)state;
    assert_true(stands(one, "a", NULL));
    put(one, "a", "1");
    assert_true(stands(one, "a", "1") && stands(two, "a", "1"));
    put(two, "a", "2");
    put(two, "b", "3");
    assert_true(stands(one, "a", "2") && stands(one, "b", "3"));
    put(one, "a", NULL);
    assert_true(stands(two, "a", NULL) && stands(two, "b", "3"));
    put(two, "a", "4");
    assert_true(stands(one, "a", "4"));
    log_close(&one);
    one = open_log(1);
    assert_true(stands(one, "a", "4") && stands(one, "b", "3"));
    log_close(&one);
    log_close(&two);
    one = open_log(2);
    assert_true(stands(one, "a", "4") && stands(one, "b", "3"));
    assert_int_equal(log_cuts(one), 0);
}

static void a_turn_finds_its_own_puts(void **state)
{
    (void)state;
    struct stamp first, second;
    struct log_record record;
    uint64_t *live;
    size_t count;
    assert_int_equal(log_begin(one, 1024, kit_deadline(disk)), LOG_OK);
    assert_int_equal(kit_append(one, "a", "1", false, &first), LOG_OK);
    assert_int_equal(log_find(one, "a", 1, &record), LOG_OK);
    assert_true(record.type == LOG_PUT && record.written.revision == first.revision);
    uint64_t previous = record.offset;
    assert_int_equal(kit_append(one, "a", "22", false, &second), LOG_OK);
    assert_int_equal(log_find(one, "a", 1, &record), LOG_OK);
    assert_true(record.written.revision == second.revision && record.previous == previous);
    assert_true(record.length == 2 && memcmp(record.bytes, "22", 2) == 0);
    assert_int_equal(kit_append(one, "b", NULL, false, &second), LOG_OK);
    assert_int_equal(log_find(one, "b", 1, &record), LOG_OK);
    assert_int_equal(record.type, LOG_ERASE);
    assert_int_equal(log_live(one, &live, &count), LOG_OK);
    assert_int_equal(count, 1);
    assert_int_equal(log_read_at(one, live[0], &record), LOG_OK);
    assert_memory_equal(record.bytes, "22", 2);
    free(live);
    assert_int_equal(log_end(one), LOG_OK);
    assert_true(stands(two, "a", "22") && stands(two, "b", NULL));
}

static void revisions_and_times_grow(void **state)
{
    (void)state;
    struct stamp last = put(one, "a", "1");
    assert_int_equal(last.time_ms, 1000000);
    for (int i = 0; i < 20; i++) {
        fake.boot_ms += i % 3;
        fake.wall_ms -= 5000; /* within a boot the time of day does not matter */
        struct stamp next = put(i % 2 == 0 ? one : two, i % 3 == 0 ? "a" : "b", "x");
        assert_true(next.revision == last.revision + 1);
        assert_int_equal(next.time_ms, last.time_ms + i % 3);
        assert_int_equal(log_now_ms(one), log_now_ms(two));
        last = next;
    }
    assert_true(log_revision(two) == last.revision);
}

static void the_past_can_be_read(void **state)
{
    (void)state;
    static const char *const values[] = {"1", "22", "333"};
    struct log_record record;
    uint64_t revisions[3];
    for (int i = 0; i < 3; i++)
        revisions[i] = put(i % 2 == 0 ? one : two, "a", values[i]).revision;
    put(two, "b", "other");
    assert_int_equal(log_begin(two, 0, kit_deadline(disk)), LOG_OK);
    assert_int_equal(log_find(two, "a", 1, &record), LOG_OK);
    assert_int_equal(log_end(two), LOG_OK);
    for (int i = 2; i >= 0; i--) {
        assert_true(record.written.revision == revisions[i]);
        assert_int_equal(record.length, i + 1);
        assert_memory_equal(record.bytes, values[i], record.length);
        if (i > 0)
            assert_int_equal(log_read_at(two, record.previous, &record), LOG_OK);
    }
    assert_true(record.previous == 0);
}

/* Number of puts and erases; `out_last` is the last of their revisions. */
static unsigned read_all(const struct log *log, uint64_t *out_last)
{
    struct log_reader reader;
    struct log_record record;
    unsigned count = 0;
    enum log_reading reading;
    assert_true(log_reader_open(log, &reader));
    *out_last = 0;
    while ((reading = log_reader_next(&reader, &record)) == LOG_READ_OK) {
        if (record.key_length == 0)
            continue;
        assert_true(record.written.revision > *out_last);
        *out_last = record.written.revision;
        count++;
    }
    assert_int_equal(reading, LOG_READ_NOTHING);
    assert_int_equal(reader.error, 0);
    log_reader_done(&reader);
    return count;
}

static void all_is_read_up_to_what_was_seen(void **state)
{
    (void)state;
    uint64_t last, revision = put(one, "a", "1").revision;
    put(two, "a", "2");
    assert_int_equal(read_all(one, &last), 1);
    assert_true(last == revision);
    revision = put(one, "b", NULL).revision;
    assert_int_equal(read_all(one, &last), 3);
    assert_true(last == revision);
    assert_int_equal(read_all(two, &last), 2);
}

static void the_file_grows_by_segments(void **state)
{
    (void)state;
    static char value[3000];
    memset(value, 'x', sizeof value - 1);
    for (int i = 0; i < 20; i++) {
        value[0] = (char)('a' + i);
        put(i % 2 == 0 ? one : two, i % 4 < 2 ? "a" : "b", value);
    }
    size_t size = fake_disk_file(&fake, "")->size;
    assert_true(size > UINT64_C(15) * 3072 && size % KIT_SEGMENT == 0);
    assert_true(stands(one, "b", value));
    log_close(&one);
    one = open_log(2);
    assert_true(stands(one, "b", value));
    value[0] = (char)('a' + 17);
    assert_true(stands(one, "a", value));
}

/* More than one write holds: they are written in parts, and all can be found meanwhile. */
static void a_long_turn_is_written_in_parts(void **state)
{
    (void)state;
    static char value[30001];
    char key[] = "a";
    struct stamp written;
    struct log_record record;
    memset(value, 'x', sizeof value - 1);
    uint64_t need = 12 * (uint64_t)log_record_size(1, sizeof value - 1);
    assert_int_equal(log_begin(one, need, kit_deadline(disk)), LOG_OK);
    for (int i = 0; i < 12; i++) {
        key[0] = (char)('a' + i);
        value[0] = key[0];
        assert_int_equal(kit_append(one, key, value, false, &written), LOG_OK);
    }
    for (int i = 0; i < 12; i++) {
        key[0] = (char)('a' + i);
        assert_int_equal(log_find(one, key, 1, &record), LOG_OK);
        assert_true(record.length == sizeof value - 1 && record.bytes[0] == key[0]);
    }
    assert_int_equal(log_end(one), LOG_OK);
    log_close(&one);
    log_close(&two);
    one = open_log(2);
    uint64_t last;
    assert_true(stands(one, "z", NULL));
    assert_int_equal(read_all(one, &last), 12);
}

static void a_sync_of_another_is_enough(void **state)
{
    (void)state;
    put(one, "a", "1");
    assert_true(stands(two, "a", "1"));
    assert_int_equal(kit_sync(disk, two), LOG_OK);
    unsigned calls = fake.calls;
    assert_int_equal(kit_sync(disk, one), LOG_OK);
    assert_int_equal(fake.calls, calls);
    put(two, "a", "2");
    calls = fake.calls;
    assert_int_equal(kit_sync(disk, one), LOG_OK); /* has not read the second one */
    assert_int_equal(fake.calls, calls);
}

static void five_thousand_keys(void **state)
{
    (void)state;
    enum { KEYS = 5000 };
    char key[32];
    for (int i = 0; i < KEYS; i++) {
        (void)snprintf(key, sizeof key, "key-%d", i);
        put(i % 2 == 0 ? one : two, key, key);
        if (log_needs_maintenance(one))
            assert_int_equal(kit_tend(one), LOG_OK);
    }
    for (int boot = 1; boot <= 2; boot++) {
        for (int i = 0; i < KEYS; i++) {
            (void)snprintf(key, sizeof key, "key-%d", i);
            assert_true(stands(one, key, key));
        }
        assert_true(stands(one, "key-5000", NULL));
        uint64_t *live;
        size_t count;
        assert_int_equal(log_begin(one, 0, kit_deadline(disk)), LOG_OK);
        assert_int_equal(log_live(one, &live, &count), LOG_OK);
        assert_int_equal(log_end(one), LOG_OK);
        assert_int_equal(count, KEYS);
        free(live);
        log_close(&one);
        one = open_log(2);
    }
}

/* Two keys with the same hash in the index: the record contains the key. */
static void keys_of_one_slot_are_told_apart(void **state)
{
    (void)state;
    char other[16] = "";
    uint64_t hash = log_file_hash("a", 1), mask = ~(uint64_t)0 << 45 | (KIT_SLOTS - 1);
    for (unsigned i = 0; i < 1U << 28; i++) {
        int length = snprintf(other, sizeof other, "k%u", i);
        if (((log_file_hash(other, (size_t)length) ^ hash) & mask) == 0)
            break;
    }
    put(one, "a", "1");
    assert_true(stands(one, other, NULL));
    put(one, other, "2");
    assert_true(stands(two, "a", "1") && stands(two, other, "2"));
    put(two, "a", NULL);
    assert_true(stands(one, "a", NULL) && stands(one, other, "2"));
    put(two, other, "3");
    put(one, "a", "4");
    assert_true(stands(one, "a", "4") && stands(one, other, "3"));
    log_close(&one);
    log_close(&two);
    one = open_log(2);
    assert_true(stands(one, "a", "4") && stands(one, other, "3"));
}

static void a_compaction_keeps_what_stands(void **state)
{
    (void)state;
    uint64_t last;
    for (int i = 0; i < 3; i++)
        put(one, i == 1 ? "b" : "a", i < 2 ? "old" : "new");
    assert_false(log_needs_maintenance(one));
    assert_int_equal(kit_make_garbage(disk, two), LOG_OK);
    assert_true(log_needs_maintenance(one));
    int before = log_descriptor(one);
    size_t size = fake_disk_file(&fake, "")->size;
    assert_int_equal(kit_tend(one), LOG_OK);
    assert_false(log_needs_maintenance(one));
    assert_int_not_equal(log_descriptor(one), before);
    assert_true(fake_disk_file(&fake, "")->size <= size);
    assert_true(stands(two, "a", "new") && stands(one, "b", "old"));
    assert_true(read_all(two, &last) < 4 + KIT_DEAD_KEYS);
    struct stamp written = put(two, "a", "newer");
    assert_true(stands(one, "a", "newer"));
    assert_true(put(one, "b", NULL).revision == written.revision + 1);
    assert_int_equal(kit_tend(two), LOG_OK);
    log_close(&one);
    log_close(&two);
    one = open_log(2);
    assert_true(stands(one, "a", "newer") && stands(one, "b", NULL));
    assert_int_equal(log_cuts(one), 0);
}

/* The new file is shorter: offsets of the old one do not apply to it. */
static void a_sync_after_a_compaction_means_the_new_file(void **state)
{
    (void)state;
    static char value[3000];
    uint64_t last;
    memset(value, 'x', sizeof value - 1);
    for (int i = 0; i < 8; i++)
        put(one, "a", value);
    put(two, "a", "short");
    assert_true(stands(one, "a", "short"));
    assert_int_equal(kit_tend(two), LOG_OK);
    assert_true(read_all(two, &last) < 9);
    assert_int_equal(kit_sync(disk, two), LOG_OK);
    fake.recording = true;
    put(two, "a", "shorter");
    assert_int_equal(kit_sync(disk, two), LOG_OK);
    assert_int_equal(fake.events[fake.event_count - 1].kind, FAKE_SYNC);
}

static void a_kept_lock_ends_at_the_deadline(void **state)
{
    (void)state;
    char words[256];
    struct text text;
    text_init(&text, words, sizeof words);
    assert_int_equal(log_begin(one, 0, kit_deadline(disk)), LOG_OK);
    int64_t deadline_ms = fake.boot_ms + 100;
    assert_int_equal(log_begin(two, 0, deadline_ms), LOG_LOCKED);
    assert_true(fake.boot_ms >= deadline_ms && fake.boot_ms < deadline_ms + 20);
    log_explain(two, LOG_LOCKED, &text);
    assert_non_null(strstr(words, "it is process "));
    /* A process that has not even opened it yet gets that pid, too. */
    text_clear(&text);
    assert_null(kit_open(disk, 1, &result, &text));
    assert_int_equal(result, LOG_LOCKED);
    assert_non_null(strstr(words, "it is process "));
    assert_true(log_lock_owner(disk) == (uint32_t)getpid());
    assert_int_equal(log_end(one), LOG_OK);
    assert_true(log_lock_owner(disk) == 0);
    assert_int_equal(log_begin(two, 0, fake.boot_ms + 100), LOG_OK);
    assert_int_equal(log_end(two), LOG_OK);
}

static void sessions_live_while_somebody_keeps_them(void **state)
{
    (void)state;
    assert_false(log_session_lives(one, 5));
    int kept = log_session_keep(two, 5);
    assert_true(kept >= 0);
    assert_true(log_session_lives(one, 5) && log_session_lives(two, 5));
    assert_true(log_session_keep(one, 5) < 0);
    disk->close(disk->owner, kept);
    assert_false(log_session_lives(one, 5));
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_put_key_is_found_until_it_is_erased),
        CASE(a_turn_finds_its_own_puts),
        CASE(revisions_and_times_grow),
        CASE(the_past_can_be_read),
        CASE(all_is_read_up_to_what_was_seen),
        CASE(the_file_grows_by_segments),
        CASE(a_long_turn_is_written_in_parts),
        CASE(a_sync_of_another_is_enough),
        CASE(five_thousand_keys),
        CASE(keys_of_one_slot_are_told_apart),
        CASE(a_compaction_keeps_what_stands),
        CASE(a_sync_after_a_compaction_means_the_new_file),
        CASE(a_kept_lock_ends_at_the_deadline),
        CASE(sessions_live_while_somebody_keeps_them),
    };
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
