/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wake-ups between two disks of one folder: messages arrive whole and in order, a full FIFO drops
 * and never blocks, an unread one is removed, and neither garbage nor a fork does any harm.
 */
#include "disk/wakeup.h"

#include "disk_kit.h"
#include "fake_disk.h"
#include "process/block_signal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { OURS = 0xabc, THEIRS = 0xdef };

#define OUR_NAME "f.wake-abc"

static struct disk disk, other;
static struct wakeup ours, theirs;
static char words[WAKEUP_PAYLOAD + 1];

static int begin(void **state)
{
    if (kit_make_folder(state) != 0)
        return 1;
    kit_open(&disk);
    kit_open(&other);
    wakeup_init(&ours, &disk, OURS);
    wakeup_init(&theirs, &other, THEIRS);
    return ours.file < 0 || theirs.file < 0;
}

static int end(void **state)
{
    wakeup_done(&ours);
    wakeup_done(&theirs);
    disk_done(&disk);
    disk_done(&other);
    return kit_drop_folder(state);
}

static bool is_there(const char *name)
{
    struct stat status;
    return lstat(kit_path(name), &status) == 0;
}

static bool is_readable(const struct wakeup *wakeup)
{
    struct pollfd look = {.fd = wakeup->file, .events = POLLIN};
    return poll(&look, 1, /* timeout= */ 0) == 1 && (look.revents & POLLIN) != 0;
}

static void assert_next(const char *expected)
{
    assert_true(wakeup_next(&ours, words, sizeof words));
    assert_string_equal(words, expected);
}

static void words_arrive_in_order(void **state)
{
    (void)state;
    assert_false(is_readable(&ours));
    assert_false(wakeup_next(&ours, words, sizeof words));
    wakeup_send(&other, OURS, "one");
    assert_true(is_readable(&ours));
    wakeup_send(&other, OURS, "");
    wakeup_send(&disk, OURS, "three");
    assert_false(is_readable(&theirs));
    assert_next("one");
    assert_next("");
    assert_next("three");
    assert_false(is_readable(&ours));
    assert_false(wakeup_next(&ours, words, sizeof words));
}

static void a_full_fifo_loses_what_comes(void **state)
{
    char long_words[WAKEUP_PAYLOAD + 1];
    int count = 0;
    (void)state;
    memset(long_words, 'w', WAKEUP_PAYLOAD);
    long_words[WAKEUP_PAYLOAD] = '\0';
    for (int i = 0; i < 1000; i++)
        wakeup_send(&other, OURS, long_words);
    while (wakeup_next(&ours, words, sizeof words)) {
        assert_string_equal(words, long_words);
        count++;
    }
    assert_true(count >= 8 && count < 1000);
    wakeup_send(&other, OURS, "again");
    assert_next("again");
}

static void the_end_removes_it(void **state)
{
    struct stat status;
    (void)state;
    assert_int_equal(lstat(kit_path(OUR_NAME), &status), 0);
    assert_true(S_ISFIFO(status.st_mode));
    assert_int_equal(status.st_mode & 07777, 0600);
    wakeup_done(&ours);
    assert_false(is_there(OUR_NAME));
    assert_false(wakeup_next(&ours, words, sizeof words));
    wakeup_send(&other, OURS, "nobody");
    wakeup_done(&ours);
}

static void an_unread_wakeup_is_removed(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(kit_path("f.wake-77"), 0600), 0);
    wakeup_send(&disk, 0x77, "anybody?");
    assert_false(is_there("f.wake-77"));
    assert_true(is_there(OUR_NAME));
}

static void a_leftover_of_the_same_name_is_replaced(void **state)
{
    struct wakeup again;
    (void)state;
    assert_int_equal(mkfifo(kit_path("f.wake-77"), 0), 0);
    wakeup_init(&again, &other, 0x77);
    assert_true(again.file >= 0);
    wakeup_done(&again);
}

static void only_a_fifo_is_written_to(void **state)
{
    struct stat status;
    (void)state;
    int file = open(kit_path("f.wake-1"), O_CREAT | O_RDWR, 0600);
    assert_true(file >= 0);
    wakeup_send(&disk, 1, "words");
    assert_int_equal(symlink(kit_path(OUR_NAME), kit_path("f.wake-2")), 0);
    wakeup_send(&disk, 2, "words");
    assert_int_equal(fstat(file, &status), 0);
    assert_int_equal(status.st_size, 0);
    assert_false(is_readable(&ours));
    assert_true(is_there("f.wake-1") && is_there("f.wake-2"));
    (void)close(file);
}

static void send_raw(const void *bytes, size_t length)
{
    assert_int_equal(write(ours.file, bytes, length), length);
}

static void garbage_is_passed_over(void **state)
{
    static const struct {
        size_t length;
        unsigned char bytes[8];
    } garbage[] = {
        {1, {7}},              /* half a length */
        {4, {5, 0, 'a', 'b'}}, /* longer than the rest */
        {8, {0xff, 0xff, 1, 2, 3, 4, 5, 6}},
        {2, {1, 2}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
        send_raw(garbage[i].bytes, garbage[i].length);
        assert_false(wakeup_next(&ours, words, sizeof words));
        assert_false(is_readable(&ours));
        wakeup_send(&other, OURS, "fine");
        assert_next("fine");
    }
    send_raw("\3\0a\0b", 5);
    wakeup_send(&other, OURS, "longer than eight");
    wakeup_send(&other, OURS, "1234567");
    char few[8];
    assert_true(wakeup_next(&ours, few, sizeof few));
    assert_string_equal(few, "1234567");
}

static bool write_to_nobody(void)
{
    struct block_signal block_signal;
    int ends[2];
    sigset_t pending;
    KIT_EXPECT(pipe(ends) == 0 && close(ends[0]) == 0);
    block_signal_begin(&block_signal, SIGPIPE);
    ssize_t count = write(ends[1], "x", 1);
    block_signal_end(&block_signal, count < 0 && errno == EPIPE);
    KIT_EXPECT(count == -1 && errno == EPIPE);
    KIT_EXPECT(sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 0);
    return true;
}

static void a_reader_that_vanishes_kills_nobody(void **state)
{
    (void)state;
    assert_true(kit_in_child(write_to_nobody, /* user= */ -1, /* group= */ -1));
}

static bool use_in_child(void)
{
    int ends[2], file = ours.file;
    KIT_EXPECT(fcntl(file, F_GETFD) == -1 && errno == EBADF);
    /* The descriptor numbers belong to other files now, and happen to be the expected ones. */
    KIT_EXPECT(pipe(ends) == 0 && write(ends[1], "\1\0x", 3) == 3);
    KIT_EXPECT(dup2(ends[0], file) == file);
    int folder = open(kit_path(""), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    KIT_EXPECT(folder >= 0 && dup2(folder, ours.folder) == ours.folder);
    KIT_EXPECT(!wakeup_next(&ours, words, sizeof words));
    wakeup_send(&disk, THEIRS, "from the child");
    wakeup_done(&ours);
    KIT_EXPECT(fcntl(file, F_GETFD) >= 0);
    return true;
}

static void a_forked_child_leaves_it_alone(void **state)
{
    (void)state;
    wakeup_send(&other, OURS, "for the parent");
    assert_true(kit_in_child(use_in_child, /* user= */ -1, /* group= */ -1));
    assert_true(is_there(OUR_NAME));
    assert_next("for the parent");
    assert_false(is_readable(&theirs));
}

static bool send_as_another(void)
{
    struct disk own;
    struct wakeup wakeup;
    KIT_EXPECT(disk_open(&own, kit_path("f"), NULL));
    wakeup_init(&wakeup, &own, 0x99);
    KIT_EXPECT(wakeup.file >= 0);
    wakeup_send(&own, 0x55, "from another user");
    wakeup_done(&wakeup);
    return true;
}

static void a_group_wakes_each_other(void **state)
{
    struct disk shared;
    struct wakeup wakeup;
    (void)state;
    assert_int_equal(chown(kit_path(""), 0, KIT_GROUP), 0);
    assert_int_equal(chmod(kit_path(""), 02770), 0);
    kit_open(&shared);
    mode_t before = umask(077);
    wakeup_init(&wakeup, &shared, 0x55);
    (void)umask(before);
    assert_true(wakeup.file >= 0);
    assert_true(kit_in_child(send_as_another, KIT_USER, KIT_GROUP));
    assert_true(wakeup_next(&wakeup, words, sizeof words));
    assert_string_equal(words, "from another user");
    wakeup_done(&wakeup);
    disk_done(&shared);
}

static void without_a_real_disk_nobody_is_woken(void **state)
{
    static struct fake_disk fake;
    struct wakeup wakeup;
    (void)state;
    fake_disk_init(&fake);
    wakeup_init(&wakeup, &fake.table, OURS);
    assert_int_equal(wakeup.file, -1);
    wakeup_send(&fake.table, OURS, "words");
    assert_false(wakeup_next(&wakeup, words, sizeof words));
    wakeup_done(&wakeup);
    fake_disk_done(&fake);
}

static void without_a_fifo_one_can_still_wake(void **state)
{
    struct wakeup none;
    (void)state;
    assert_int_equal(mkdir(kit_path("f.wake-42"), 0700), 0);
    wakeup_init(&none, &other, 0x42);
    assert_int_equal(none.file, -1);
    wakeup_send(&other, OURS, "awake");
    assert_next("awake");
    wakeup_done(&none);
}

struct sender {
    atomic_uint_fast64_t session; /* of the next message; 0: end */
};

static void *send_until_ended(void *state)
{
    struct sender *sender = state;
    for (uint64_t session; (session = atomic_load(&sender->session)) != 0;)
        wakeup_send(&other, session, "now?");
    return NULL;
}

/* Each round is another session, as in a store: none has two FIFOs one after the other. */
static void a_sender_never_removes_a_new_fifo(void **state)
{
    struct wakeup wakeup;
    struct sender sender = {.session = 1};
    pthread_t thread;
    unsigned removed = 0;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, send_until_ended, &sender), 0);
    for (uint64_t session = 1; session <= 20000; session++) {
        atomic_store(&sender.session, session);
        wakeup_init(&wakeup, &disk, session);
        removed += !is_there(wakeup.name);
        wakeup_done(&wakeup);
    }
    atomic_store(&sender.session, 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(removed, 0);
}

static bool is_ours(void *owner, uint64_t session)
{
    (void)owner;
    return session == OURS;
}

static void files_of_dead_processes_are_removed(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(kit_path("f.wake-dead"), 0600), 0);
    assert_int_equal(mkfifo(kit_path("f.wake-dead.new"), 0600), 0);
    assert_int_equal(mkfifo(kit_path("f.wake-000dead"), 0600), 0); /* not a name that we use */
    assert_int_equal(mkfifo(kit_path("g.wake-dead"), 0600), 0);    /* of another store */
    wakeup_sweep(&other, is_ours, NULL);
    assert_int_not_equal(access(kit_path("f.wake-dead"), F_OK), 0);
    assert_int_not_equal(access(kit_path("f.wake-dead.new"), F_OK), 0);
    assert_int_equal(access(kit_path("f.wake-000dead"), F_OK), 0);
    assert_int_equal(access(kit_path("g.wake-dead"), F_OK), 0);
    wakeup_send(&other, OURS, "still there");
    assert_next("still there");
}

int main(void)
{
#define WAKEUP_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        WAKEUP_TEST(words_arrive_in_order),
        WAKEUP_TEST(a_full_fifo_loses_what_comes),
        WAKEUP_TEST(the_end_removes_it),
        WAKEUP_TEST(an_unread_wakeup_is_removed),
        WAKEUP_TEST(a_leftover_of_the_same_name_is_replaced),
        WAKEUP_TEST(only_a_fifo_is_written_to),
        WAKEUP_TEST(garbage_is_passed_over),
        WAKEUP_TEST(a_reader_that_vanishes_kills_nobody),
        WAKEUP_TEST(a_forked_child_leaves_it_alone),
        WAKEUP_TEST(without_a_real_disk_nobody_is_woken),
        WAKEUP_TEST(without_a_fifo_one_can_still_wake),
        WAKEUP_TEST(files_of_dead_processes_are_removed),
        WAKEUP_TEST(a_sender_never_removes_a_new_fifo),
    };
    const struct CMUnitTest as_root[] = {
        WAKEUP_TEST(a_group_wakes_each_other),
    };
    int failed = cmocka_run_group_tests_name("wakeup", tests, NULL, NULL);
    if (kit_is_root())
        failed += cmocka_run_group_tests_name("wakeup, as root", as_root, NULL, NULL);
    return failed;
}
