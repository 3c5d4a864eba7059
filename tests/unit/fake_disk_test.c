/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disk of the tests must itself be correct: what it loses, tears, keeps and refuses, compared
 * with what a real disk may do.
 */
#include "fake_disk.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct fake_disk fake, base, image;
static const struct disk *const disk = &fake.table;

static int begin(void **state)
{
    (void)state;
    fake_disk_init(&base);
    fake_disk_init(&fake);
    fake.recording = true;
    return 0;
}

static int end(void **state)
{
    (void)state;
    fake_disk_done(&fake);
    fake_disk_done(&base);
    return 0;
}

static int make(const char *suffix)
{
    int file = disk->open(disk->owner, suffix, DISK_CREATE);
    assert_true(file >= 0);
    return file;
}

static void put(int file, const char *words, uint64_t offset)
{
    assert_int_equal(disk_write(disk, file, words, strlen(words), offset), 0);
}

static size_t count_pending(void)
{
    int pending[FAKE_PENDING];
    return fake_disk_pending(&fake, fake.event_count, pending);
}

static struct fake_choice keeping(uint64_t kept)
{
    return (struct fake_choice){.kept = kept, .torn = -1};
}

/* Content of the file after a loss now; NULL when it does not exist. */
static const char *after_loss(struct fake_choice choice, const char *suffix)
{
    static char said[64];
    memset(said, 0, sizeof said);
    fake_disk_image(&fake, &base, fake.event_count, &choice, &image);
    const struct fake_file *file = fake_disk_file(&image, suffix);
    size_t length = file != NULL ? fake_file_get(file, said, sizeof said - 1, 0) : 0;
    bool there = file != NULL;
    fake_disk_done(&image);
    for (size_t i = 0; i < length; i++)
        if (said[i] == '\0')
            said[i] = '.';
    return there ? said : NULL;
}

static void unsynced_writes_may_be_lost(void **state)
{
    (void)state;
    int file = make("");
    put(file, "one", 0);
    assert_int_equal(count_pending(), 2);
    assert_null(after_loss(keeping(2), ""));
    assert_string_equal(after_loss(keeping(1), ""), "");
    assert_string_equal(after_loss(keeping(3), ""), "one");
    assert_int_equal(disk->sync(disk->owner, file), 0);
    assert_int_equal(disk->sync_folder(disk->owner), 0);
    assert_int_equal(count_pending(), 0);
    put(file, "two", 3);
    put(file, "three", 6);
    assert_int_equal(count_pending(), 2);
    assert_string_equal(after_loss(keeping(0), ""), "one");
    assert_string_equal(after_loss(keeping(2), ""), "one...three");
    assert_string_equal(after_loss(keeping(3), ""), "onetwothree");
}

static void a_write_may_be_torn(void **state)
{
    (void)state;
    int file = make("");
    put(file, "abcdef", 2);
    struct fake_choice choice = {.kept = 1, .torn = 1, .torn_at = 4};
    assert_string_equal(after_loss(choice, ""), "..ab");
    choice.torn_behind = true;
    assert_string_equal(after_loss(choice, ""), "....cdef");
}

static void a_failed_sync_covers_nothing_ever(void **state)
{
    (void)state;
    int file = make("");
    assert_int_equal(disk->sync_folder(disk->owner), 0);
    put(file, "x", 0);
    fake.error = EIO;
    fake.fail_at = fake.calls + 1;
    assert_int_equal(disk->sync(disk->owner, file), -EIO);
    assert_int_equal(disk->sync(disk->owner, file), 0);
    assert_int_equal(count_pending(), 1);
    put(file, "y", 1);
    assert_int_equal(disk->sync(disk->owner, file), 0);
    assert_int_equal(count_pending(), 1);
    assert_string_equal(after_loss(keeping(0), ""), ".y");
}

static void names_change_with_the_folders_sync(void **state)
{
    (void)state;
    int old = make("");
    put(old, "old", 0);
    assert_int_equal(disk->sync(disk->owner, old), 0);
    assert_int_equal(disk->sync_folder(disk->owner), 0);
    int new = make(".new");
    put(new, "new", 0);
    assert_int_equal(disk->sync(disk->owner, new), 0);
    assert_int_equal(disk->rename(disk->owner, ".none", ""), -ENOENT);
    assert_int_equal(disk->rename(disk->owner, ".new", ""), 0);
    assert_int_equal(disk->is_linked(disk->owner, old), 0);
    assert_int_equal(disk->is_linked(disk->owner, new), 1);
    assert_int_equal(count_pending(), 2);
    assert_string_equal(after_loss(keeping(1), ""), "old");
    assert_string_equal(after_loss(keeping(1), ".new"), "new");
    assert_string_equal(after_loss(keeping(3), ""), "new");
    assert_null(after_loss(keeping(3), ".new"));
    assert_int_equal(disk->sync_folder(disk->owner), 0);
    assert_string_equal(after_loss(keeping(0), ""), "new");
}

/* The folder's as well: the change may be lost although a later sync succeeds. */
static void a_name_that_a_failed_sync_was_about_stays_unsure(void **state)
{
    (void)state;
    (void)make("");
    fake.fail_at = fake.calls + 1;
    fake.error = EIO;
    assert_int_equal(disk->sync_folder(disk->owner), -EIO);
    (void)make(".new");
    assert_int_equal(disk->sync_folder(disk->owner), 0);
    assert_int_equal(count_pending(), 1);
    assert_null(after_loss(keeping(0), ""));
    assert_string_equal(after_loss(keeping(0), ".new"), "");
    assert_string_equal(after_loss(keeping(1), ""), "");
}

static void an_emptied_file_may_be_old_gone_or_new(void **state)
{
    (void)state;
    int old = make("");
    put(old, "old", 0);
    assert_int_equal(disk->sync(disk->owner, old), 0);
    assert_int_equal(disk->sync_folder(disk->owner), 0);
    int new = disk->open(disk->owner, "", DISK_EMPTY);
    assert_true(new >= 0);
    assert_int_equal(disk->size(disk->owner, new), 0);
    assert_int_equal(disk->size(disk->owner, old), 3);
    assert_int_equal(disk->is_linked(disk->owner, old), 0);
    assert_string_equal(after_loss(keeping(0), ""), "old");
    assert_null(after_loss(keeping(1), ""));
    assert_string_equal(after_loss(keeping(2), ""), "");
}

static void an_unsynced_file_holds_anything(void **state)
{
    static const char zeros[DISK_PAGE];
    struct fake_choice choice = keeping(0);
    (void)state;
    int file = make(".lock");
    put(file, "abc", 0);
    assert_int_equal(disk_write(disk, file, zeros, sizeof zeros, /* offset= */ 3), 0);
    char *page = disk->share(disk->owner, file);
    assert_non_null(page);
    page[0] = 'x';
    assert_int_equal(count_pending(), 0);
    assert_memory_equal(after_loss(choice, ".lock"), "abc.", 4);
    choice.unsynced = UNSYNCED_LATEST;
    assert_memory_equal(after_loss(choice, ".lock"), "xbc.", 4);
    choice.unsynced = UNSYNCED_ZEROS;
    assert_memory_equal(after_loss(choice, ".lock"), "....", 4);
    choice.unsynced = UNSYNCED_ABSENT;
    assert_null(after_loss(choice, ".lock"));
}

static void a_loss_comes_upon_what_was_there_before(void **state)
{
    (void)state;
    fake.recording = false;
    fake.wall_ms = fake.boot_ms = 7;
    int file = make("");
    put(file, "before", 0);
    fake_disk_copy(&base, &fake);
    fake.recording = true;
    put(file, "X", 0);
    assert_string_equal(after_loss(keeping(0), ""), "before");
    assert_string_equal(after_loss(keeping(1), ""), "Xefore");
    assert_int_equal(image.wall_ms, 7);
    assert_int_equal(image.boot_ms, 0);
}

static void a_page_and_its_file_are_one(void **state)
{
    static char bytes[2 * DISK_PAGE], back[2 * DISK_PAGE];
    (void)state;
    int file = make("");
    put(file, "small", 0);
    assert_null(disk->share(disk->owner, file));
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i % 251);
    assert_int_equal(disk_write(disk, file, bytes, sizeof bytes - 100, /* offset= */ 100), 0);
    assert_int_equal(disk_read(disk, file, back, sizeof back, /* offset= */ 100),
                     sizeof bytes - 100);
    assert_memory_equal(bytes, back, sizeof bytes - 100);
    char *page = disk->share(disk->owner, file);
    assert_memory_equal(page, "small", 5);
    page[0] = 'S';
    assert_int_equal(disk_read(disk, file, back, 5, /* offset= */ 0), 5);
    assert_memory_equal(back, "Small", 5);
    disk->unshare(disk->owner, page);
}

static void locks_are_per_open_file(void **state)
{
    (void)state;
    int one = make(".lock"), two = make(".lock");
    assert_int_equal(disk->lock(disk->owner, one, 900), 0);
    assert_int_equal(disk->lock(disk->owner, one, 900), 0);
    assert_int_equal(disk->is_locked(disk->owner, one, 900), 0);
    assert_int_equal(disk->is_locked(disk->owner, two, 900), 1);
    assert_int_equal(disk->is_locked(disk->owner, two, 901), 0);
    assert_int_equal(disk->lock(disk->owner, two, 900), -EAGAIN);
    _Atomic uint32_t word = 3;
    assert_int_equal(disk_lock(disk, two, 900, &word, /* deadline_ms= */ 25), -ETIMEDOUT);
    assert_int_equal(fake.boot_ms, 25);
    disk_unlock(disk, one, 900, &word);
    assert_int_equal(word, 4);
    assert_int_equal(fake.wakes, 1);
    assert_int_equal(disk_lock(disk, two, 900, &word, /* deadline_ms= */ 0), 0);
    assert_int_equal(disk->lock(disk->owner, one, 900), -EAGAIN);
    assert_int_equal(fake_disk_open_files(&fake), 2);
    disk->close(disk->owner, two);
    assert_int_equal(disk->lock(disk->owner, one, 900), 0);
    disk->close(disk->owner, one);
    assert_int_equal(fake_disk_open_files(&fake), 0);
}

static void the_nth_call_fails_once_or_for_good(void **state)
{
    char bytes[8];
    (void)state;
    int file = make("");
    fake.error = ENOSPC;
    fake.fail_at = fake.calls + 2;
    assert_int_equal(disk->write(disk->owner, file, "abcd", 4, 0), 4);
    assert_int_equal(disk->write(disk->owner, file, "abcd", 4, 0), -ENOSPC);
    assert_int_equal(disk->write(disk->owner, file, "abcd", 4, 0), 4);
    fake.error = 0;
    fake.fail_at = fake.calls + 1;
    assert_int_equal(disk->write(disk->owner, file, "abcd", 4, 0), 2);
    fake.fail_at = fake.calls + 1;
    assert_int_equal(disk->read(disk->owner, file, bytes, 4, 0), 2);
    assert_int_equal(disk_read(disk, file, bytes, sizeof bytes, 0), 4);
    fake.error = EIO;
    fake.for_good = true;
    fake.fail_at = fake.calls + 1;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(disk->read(disk->owner, file, bytes, 4, 0), -EIO);
        assert_int_equal(disk->open(disk->owner, "", DISK_CREATE), -EIO);
        assert_int_equal(disk->sync_folder(disk->owner), -EIO);
        assert_null(disk->share(disk->owner, file));
    }
}

static void notes_stand_between_the_writes(void **state)
{
    (void)state;
    int file = make("");
    put(file, "x", 0);
    fake_disk_note(&fake, /* note= */ 5);
    put(file, "y", 1);
    assert_int_equal(fake.event_count, 4);
    assert_int_equal(fake.events[2].kind, FAKE_NOTE);
    assert_int_equal(fake.events[2].note, 5);
}

int main(void)
{
#define FAKE_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        FAKE_TEST(unsynced_writes_may_be_lost),
        FAKE_TEST(a_write_may_be_torn),
        FAKE_TEST(a_failed_sync_covers_nothing_ever),
        FAKE_TEST(names_change_with_the_folders_sync),
        FAKE_TEST(a_name_that_a_failed_sync_was_about_stays_unsure),
        FAKE_TEST(an_emptied_file_may_be_old_gone_or_new),
        FAKE_TEST(an_unsynced_file_holds_anything),
        FAKE_TEST(a_loss_comes_upon_what_was_there_before),
        FAKE_TEST(a_page_and_its_file_are_one),
        FAKE_TEST(locks_are_per_open_file),
        FAKE_TEST(the_nth_call_fails_once_or_for_good),
        FAKE_TEST(notes_stand_between_the_writes),
    };
    return cmocka_run_group_tests_name("fake_disk", tests, NULL, NULL);
}
