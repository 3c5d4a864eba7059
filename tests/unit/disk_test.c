/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real disk: files and their names, locks between open files and between processes, the shared
 * page, a limit on file sizes that must not kill, and the state of a child after a fork.
 */
#include "disk_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { LONG_MS = 20000 };

static struct disk disk, other;

static int open_disks(void **state)
{
    if (kit_make_folder(state) != 0)
        return 1;
    kit_open(&disk);
    kit_open(&other);
    return 0;
}

static int close_disks(void **state)
{
    disk_done(&disk);
    disk_done(&other);
    return kit_drop_folder(state);
}

static int make(const char *suffix)
{
    int file = disk.open(disk.owner, suffix, DISK_CREATE);
    assert_true(file >= 0);
    return file;
}

/* The same file again, as in another process. */
static int open_other(const char *suffix)
{
    int file = other.open(other.owner, suffix, DISK_OPEN);
    assert_true(file >= 0);
    return file;
}

static void sleep_ms(long length_ms)
{
    struct timespec length = {.tv_nsec = length_ms * 1000000};
    (void)nanosleep(&length, NULL);
}

static int64_t in_ms(int64_t length_ms)
{
    return disk.boot_ms(disk.owner) + length_ms;
}

static void files_are_written_read_and_renamed(void **state)
{
    char bytes[16] = "";
    (void)state;
    assert_int_equal(disk.open(disk.owner, "", DISK_OPEN), -ENOENT);
    int file = make(".new");
    assert_int_equal(disk.size(disk.owner, file), 0);
    assert_int_equal(disk_write(&disk, file, "hello", 5, /* offset= */ 3), 0);
    assert_int_equal(disk.size(disk.owner, file), 8);
    assert_int_equal(disk_read(&disk, file, bytes, sizeof bytes, /* offset= */ 2), 6);
    assert_memory_equal(bytes, "\0hello", 6);
    assert_int_equal(disk_read(&disk, file, bytes, sizeof bytes, /* offset= */ 8), 0);
    assert_int_equal(disk.sync(disk.owner, file), 0);
    assert_int_equal(disk.rename(disk.owner, ".new", ""), 0);
    assert_int_equal(disk.rename(disk.owner, ".new", ""), -ENOENT);
    assert_int_equal(disk.sync_folder(disk.owner), 0);
    assert_int_equal(other.size(other.owner, open_other("")), 8);
    assert_int_equal(access(kit_path("f"), F_OK), 0);
}

static void an_emptied_file_is_a_new_one(void **state)
{
    (void)state;
    int old = make("");
    assert_int_equal(disk_write(&disk, old, "old", 3, /* offset= */ 0), 0);
    assert_int_equal(disk.is_linked(disk.owner, old), 1);
    int new = disk.open(disk.owner, "", DISK_EMPTY);
    assert_true(new >= 0);
    assert_int_equal(disk.size(disk.owner, new), 0);
    assert_int_equal(disk.size(disk.owner, old), 3);
    assert_int_equal(disk.is_linked(disk.owner, old), 0);
    assert_int_equal(disk.is_linked(disk.owner, new), 1);
}

static void a_new_file_is_ours_alone_whatever_the_umask(void **state)
{
    static const mode_t masks[] = {0, 022, 0777};
    (void)state;
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        struct stat status;
        mode_t before = umask(masks[i]);
        int file = disk.open(disk.owner, "", DISK_EMPTY);
        (void)umask(before);
        assert_true(file >= 0);
        assert_int_equal(fstat(file, &status), 0);
        assert_int_equal(status.st_mode & 07777, 0600);
        assert_int_equal(fcntl(file, F_GETFD), FD_CLOEXEC);
    }
}

static void names_and_files_have_a_limit(void **state)
{
    char suffix[100];
    int file = 0, count = 0;
    (void)state;
    memset(suffix, 'x', sizeof suffix - 1);
    suffix[sizeof suffix - 1] = '\0';
    assert_true(disk.open(disk.owner, suffix, DISK_CREATE) >= 0);
    char path[256];
    (void)snprintf(path, sizeof path, "%s", kit_path("0123456789"));
    size_t length = strlen(path);
    memset(path + length, 'y', 190);
    path[length + 190] = '\0';
    struct disk third;
    assert_true(disk_open(&third, path, NULL));
    assert_int_equal(third.open(third.owner, suffix, DISK_CREATE), -ENAMETOOLONG);
    assert_int_equal(third.rename(third.owner, suffix, ""), -ENAMETOOLONG);
    disk_done(&third);
    for (; file >= 0 && count < 1000; count++)
        file = disk.open(disk.owner, suffix, DISK_OPEN);
    assert_int_equal(file, -EMFILE);
    assert_true(count > 50);
}

static void a_disk_leaves_nothing_open(void **state)
{
    struct disk third;
    (void)state;
    int before = dup(0);
    kit_open(&third);
    for (int i = 0; i < 3; i++)
        assert_true(third.open(third.owner, "", DISK_CREATE) >= 0);
    disk_done(&third);
    (void)close(before);
    int after = dup(0);
    assert_int_equal(before, after);
    (void)close(after);
}

static void a_lock_is_the_open_files(void **state)
{
    (void)state;
    int one = make(""), two = open_other("");
    assert_int_equal(disk.is_locked(disk.owner, one, 0), 0);
    assert_int_equal(disk.lock(disk.owner, one, 0), 0);
    assert_int_equal(disk.lock(disk.owner, one, 0), 0);
    assert_int_equal(disk.is_locked(disk.owner, one, 0), 0);
    assert_int_equal(other.is_locked(other.owner, two, 0), 1);
    assert_int_equal(other.is_locked(other.owner, two, 1), 0);
    assert_int_equal(other.lock(other.owner, two, 0), -EAGAIN);
    assert_int_equal(other.lock(other.owner, two, 1), 0);
    disk.unlock(disk.owner, one, 0);
    assert_int_equal(other.lock(other.owner, two, 0), 0);
    assert_int_equal(disk.lock(disk.owner, one, 0), -EAGAIN);
    other.close(other.owner, two);
    assert_int_equal(disk.lock(disk.owner, one, 0), 0);
}

static void waiting_for_a_lock_has_an_end(void **state)
{
    _Atomic uint32_t word = 7;
    (void)state;
    int one = make(""), two = open_other("");
    assert_int_equal(disk_lock(&disk, one, 0, NULL, INT64_MIN), 0);
    for (int i = 0; i < 2; i++) {
        int64_t deadline_ms = in_ms(30);
        assert_int_equal(disk_lock(&other, two, 0, i == 0 ? NULL : &word, deadline_ms), -ETIMEDOUT);
        assert_true(disk.boot_ms(disk.owner) >= deadline_ms);
    }
    disk_unlock(&disk, one, 0, &word);
    assert_int_equal(word, 8);
    assert_int_equal(disk_lock(&other, two, 0, &word, INT64_MIN), 0);
    disk_unlock(&other, two, 0, NULL);
}

static _Atomic uint32_t *share_word(const struct disk *of, int file)
{
    _Atomic uint32_t *word = of->share(of->owner, file);
    assert_non_null(word);
    return word;
}

static void a_page_is_shared_once_it_is_there(void **state)
{
    static const char zeros[DISK_PAGE];
    (void)state;
    int one = make(""), two = open_other("");
    assert_null(disk.share(disk.owner, one));
    assert_int_equal(disk_write(&disk, one, zeros, sizeof zeros, /* offset= */ 0), 0);
    _Atomic uint32_t *ours = share_word(&disk, one), *theirs = share_word(&other, two);
    assert_ptr_not_equal(ours, theirs);
    atomic_store(ours, 42);
    assert_int_equal(atomic_load(theirs), 42);
    disk.unshare(disk.owner, ours);
    other.unshare(other.owner, theirs);
}

/* Waits much longer than the poll interval of disk_lock. */
static bool sleep_until_woken(void)
{
    struct disk own;
    KIT_EXPECT(disk_open(&own, kit_path("f"), NULL));
    int file = own.open(own.owner, "", DISK_OPEN);
    _Atomic uint32_t *word = own.share(own.owner, file);
    KIT_EXPECT(word != NULL);
    int64_t began_ms = own.boot_ms(own.owner);
    atomic_store(word + 1, 1);
    own.wait(own.owner, word, /* value= */ 0, (int64_t)LONG_MS * 1000);
    KIT_EXPECT(own.boot_ms(own.owner) - began_ms < LONG_MS / 2);
    KIT_EXPECT(atomic_load(word) == 1);
    return true;
}

static void an_unlock_wakes_another_process(void **state)
{
    static const char zeros[DISK_PAGE];
    int status = -1;
    (void)state;
    int file = make("");
    assert_int_equal(disk_write(&disk, file, zeros, sizeof zeros, /* offset= */ 0), 0);
    _Atomic uint32_t *word = share_word(&disk, file);
    assert_int_equal(disk_lock(&disk, file, 0, word, INT64_MIN), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(sleep_until_woken() ? 0 : 1);
    while (atomic_load(word + 1) == 0)
        sleep_ms(1);
    sleep_ms(20);
    disk_unlock(&disk, file, 0, word);
    assert_int_equal(waitpid(child, &status, /* options= */ 0), child);
    assert_int_equal(status, 0);
    disk.unshare(disk.owner, word);
}

static void a_killed_owner_is_noticed(void **state)
{
    char ready = 0;
    int ends[2], looked[2];
    _Atomic uint32_t word = 0;
    (void)state;
    int file = make("");
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pipe(looked), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct disk own;
        int locked = -1;
        if (disk_open(&own, kit_path("f"), NULL))
            locked = own.lock(own.owner, own.open(own.owner, "", DISK_OPEN), 0);
        if (locked == 0 && write(ends[1], "x", 1) == 1 && read(looked[0], &ready, 1) == 1)
            sleep_ms(30); /* the other one most likely waits by now */
        (void)raise(SIGKILL);
    }
    (void)close(ends[1]);
    assert_int_equal(read(ends[0], &ready, 1), 1);
    assert_int_equal(disk.lock(disk.owner, file, 0), -EAGAIN);
    assert_int_equal(write(looked[1], "x", 1), 1);
    assert_int_equal(disk_lock(&disk, file, 0, &word, in_ms(LONG_MS)), 0);
    assert_int_equal(waitpid(child, NULL, /* options= */ 0), child);
    (void)close(ends[0]);
    (void)close(looked[0]);
    (void)close(looked[1]);
}

static bool is_pending(int signal)
{
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, signal) == 1;
}

static bool write_beyond_the_limit(void)
{
    struct disk own;
    char bytes[64] = {0};
    sigset_t mask;
    KIT_EXPECT(disk_open(&own, kit_path("f"), NULL));
    int file = own.open(own.owner, "", DISK_CREATE);
    KIT_EXPECT(setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 100, .rlim_max = 100}) == 0);
    KIT_EXPECT(own.write(own.owner, file, bytes, sizeof bytes, /* offset= */ 64) == 36);
    KIT_EXPECT(own.write(own.owner, file, bytes, sizeof bytes, /* offset= */ 100) == -EFBIG);
    KIT_EXPECT(disk_write(&own, file, bytes, sizeof bytes, /* offset= */ 64) == -EFBIG);
    KIT_EXPECT(!is_pending(SIGXFSZ));
    KIT_EXPECT(pthread_sigmask(SIG_SETMASK, NULL, &mask) == 0);
    KIT_EXPECT(sigismember(&mask, SIGXFSZ) == 0);
    KIT_EXPECT(own.write(own.owner, file, bytes, sizeof bytes, /* offset= */ 0) == 64);

    /* A signal that was pending before is kept. */
    (void)sigaddset(&mask, SIGXFSZ);
    KIT_EXPECT(pthread_sigmask(SIG_SETMASK, &mask, NULL) == 0);
    KIT_EXPECT(own.write(own.owner, file, bytes, sizeof bytes, /* offset= */ 100) == -EFBIG);
    KIT_EXPECT(!is_pending(SIGXFSZ));
    KIT_EXPECT(raise(SIGXFSZ) == 0);
    KIT_EXPECT(own.write(own.owner, file, bytes, sizeof bytes, /* offset= */ 100) == -EFBIG);
    KIT_EXPECT(is_pending(SIGXFSZ));
    return true;
}

static void a_limit_on_file_sizes_is_an_error_and_no_death(void **state)
{
    (void)state;
    assert_true(kit_in_child(write_beyond_the_limit, /* user= */ -1, /* group= */ -1));
}

static int forked_file;

static bool use_in_child(void)
{
    char byte = 0;
    KIT_EXPECT(fcntl(forked_file, F_GETFD) == -1 && errno == EBADF);
    KIT_EXPECT(disk.open(disk.owner, "", DISK_CREATE) == -EOWNERDEAD);
    KIT_EXPECT(disk.size(disk.owner, forked_file) == -EOWNERDEAD);
    KIT_EXPECT(disk.read(disk.owner, forked_file, &byte, 1, 0) == -EOWNERDEAD);
    KIT_EXPECT(disk.write(disk.owner, forked_file, &byte, 1, 0) == -EOWNERDEAD);
    KIT_EXPECT(disk.sync(disk.owner, forked_file) == -EOWNERDEAD);
    KIT_EXPECT(disk.sync_folder(disk.owner) == -EOWNERDEAD);
    KIT_EXPECT(disk.rename(disk.owner, "", ".x") == -EOWNERDEAD);
    KIT_EXPECT(disk.lock(disk.owner, forked_file, 0) == -EOWNERDEAD);
    KIT_EXPECT(disk_lock(&disk, forked_file, 0, NULL, INT64_MAX) == -EOWNERDEAD);
    KIT_EXPECT(disk.is_locked(disk.owner, forked_file, 0) == -EOWNERDEAD);
    KIT_EXPECT(disk.is_linked(disk.owner, forked_file) == -EOWNERDEAD);
    KIT_EXPECT(disk.share(disk.owner, forked_file) == NULL);
    disk.unlock(disk.owner, forked_file, 0);

    /* The descriptor number belongs to another file now. */
    struct disk own;
    int reused = dup2(0, forked_file);
    KIT_EXPECT(reused == forked_file);
    disk.close(disk.owner, forked_file);
    KIT_EXPECT(fcntl(forked_file, F_GETFD) >= 0);
    disk_done(&disk);
    KIT_EXPECT(fcntl(forked_file, F_GETFD) >= 0);

    KIT_EXPECT(disk_open(&own, kit_path("f"), NULL));
    KIT_EXPECT(own.lock(own.owner, own.open(own.owner, "", DISK_OPEN), 0) == -EAGAIN);
    return true;
}

static void a_forked_child_has_no_disk(void **state)
{
    (void)state;
    forked_file = make("");
    assert_int_equal(disk.lock(disk.owner, forked_file, 0), 0);
    assert_true(kit_in_child(use_in_child, /* user= */ -1, /* group= */ -1));
    int file = open_other("");
    assert_int_equal(other.is_locked(other.owner, file, 0), 1);
}

static int outlives[2], gone[2];

/* Takes the lock and ends, while its child lives until the test closes the pipe. */
static bool lock_and_leave_a_child(void)
{
    struct disk own;
    char byte;
    KIT_EXPECT(disk_open(&own, kit_path("f"), NULL));
    KIT_EXPECT(own.lock(own.owner, own.open(own.owner, "", DISK_OPEN), 0) == 0);
    pid_t child = fork();
    KIT_EXPECT(child >= 0);
    if (child == 0) {
        (void)close(outlives[1]);
        _exit(read(outlives[0], &byte, 1) == 0 ? 0 : 1);
    }
    return true;
}

static void a_child_that_lives_on_keeps_no_lock(void **state)
{
    (void)state;
    int file = make("");
    char byte;
    assert_int_equal(pipe(outlives), 0);
    assert_int_equal(pipe(gone), 0);
    assert_true(kit_in_child(lock_and_leave_a_child, /* user= */ -1, /* group= */ -1));
    /* Not at once: a child closes its copies when it first runs. */
    assert_int_equal(disk_lock(&disk, file, 0, NULL, in_ms(LONG_MS)), 0);
    (void)close(outlives[1]);
    (void)close(outlives[0]);
    (void)close(gone[1]);
    assert_int_equal(read(gone[0], &byte, 1), 0);
    (void)close(gone[0]);
}

int main(void)
{
#define DISK_TEST(name) cmocka_unit_test_setup_teardown(name, open_disks, close_disks)
    const struct CMUnitTest tests[] = {
        DISK_TEST(files_are_written_read_and_renamed),
        DISK_TEST(an_emptied_file_is_a_new_one),
        DISK_TEST(a_new_file_is_ours_alone_whatever_the_umask),
        DISK_TEST(names_and_files_have_a_limit),
        DISK_TEST(a_disk_leaves_nothing_open),
        DISK_TEST(a_lock_is_the_open_files),
        DISK_TEST(waiting_for_a_lock_has_an_end),
        DISK_TEST(a_page_is_shared_once_it_is_there),
        DISK_TEST(an_unlock_wakes_another_process),
        DISK_TEST(a_killed_owner_is_noticed),
        DISK_TEST(a_limit_on_file_sizes_is_an_error_and_no_death),
        DISK_TEST(a_forked_child_has_no_disk),
        DISK_TEST(a_child_that_lives_on_keeps_no_lock),
    };
    return cmocka_run_group_tests_name("disk", tests, NULL, NULL);
}
