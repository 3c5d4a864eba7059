/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A watch sends its wake-up when the session has ended, with the last process that has its
 * descriptor, and not before; it can be unset, set anew and closed at any time, and no observer
 * takes the lock of its thread for a session.
 */
#include "disk/session_watch.h"

#include "disk/session.h"
#include "disk_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { OURS = 0xabc, HOLDER = 0x111, NEXT = 0x222, LATE_MS = 20000 };

static struct disk disk, other;
static struct wakeup ours;
static struct session_watch watch;
static int locks, holder, next;
static char words[WAKEUP_PAYLOAD + 1];

static int begin(void **state)
{
    if (kit_make_folder(state) != 0)
        return 1;
    kit_open(&disk);
    kit_open(&other);
    wakeup_init(&ours, &disk, OURS);
    locks = disk.open(disk.owner, ".lock", DISK_CREATE);
    holder = session_keep(&other, ".lock", HOLDER);
    next = session_keep(&other, ".lock", NEXT);
    session_watch_init(&watch, &disk, locks, OURS);
    return ours.file < 0 || locks < 0 || holder < 0 || next < 0 || !watch.ready;
}

static int end(void **state)
{
    session_watch_done(&watch);
    wakeup_done(&ours);
    disk_done(&disk);
    disk_done(&other);
    return kit_drop_folder(state);
}

static void pause_ms(long length_ms)
{
    struct timespec length = {.tv_nsec = length_ms * 1000000};
    (void)nanosleep(&length, NULL);
}

/* Until the thread blocks in the kernel. */
static void await_block(uint64_t session)
{
    for (uint64_t blocked = 0; blocked != session; pause_ms(1)) {
        (void)pthread_mutex_lock(&watch.mutex);
        blocked = watch.blocked;
        (void)pthread_mutex_unlock(&watch.mutex);
    }
}

static bool is_told(int timeout_ms)
{
    struct pollfd look = {.fd = ours.file, .events = POLLIN};
    return poll(&look, 1, timeout_ms) == 1 && wakeup_next(&ours, words, sizeof words);
}

static void assert_told(void)
{
    assert_true(is_told(LATE_MS));
    assert_string_equal(words, "");
    assert_true(session_watch_has_ended(&watch));
}

static void end_session(int *file)
{
    other.close(other.owner, *file);
    *file = -1;
}

static void an_end_is_told_once(void **state)
{
    (void)state;
    session_watch_set(&watch, HOLDER);
    await_block(HOLDER);
    assert_false(is_told(3 * SESSION_WATCH_SETTLE_MS));
    assert_false(session_watch_has_ended(&watch));
    end_session(&holder);
    assert_told();
    assert_false(is_told(3 * SESSION_WATCH_SETTLE_MS));
    session_watch_set(&watch, NEXT);
    await_block(NEXT);
    end_session(&next);
    assert_told();
}

static void a_session_that_has_ended_is_told_too(void **state)
{
    (void)state;
    end_session(&holder);
    session_watch_set(&watch, HOLDER);
    assert_told();
}

/* The process that kept the session is gone; the child that inherited its file is not. */
static void an_heir_keeps_it(void **state)
{
    int go[2];
    (void)state;
    assert_int_equal(pipe2(go, O_CLOEXEC), 0);
    int inherited = dup(holder);
    pid_t heir = fork();
    if (heir == 0) {
        (void)close(go[1]);
        _exit(read(go[0], words, 1) == 0 ? 0 : 1);
    }
    (void)close(go[0]);
    (void)close(inherited);
    session_watch_set(&watch, HOLDER);
    await_block(HOLDER);
    end_session(&holder);
    assert_false(is_told(3 * SESSION_WATCH_SETTLE_MS));
    assert_true(session_lives(&disk, locks, HOLDER));
    (void)close(go[1]);
    assert_told();
    assert_false(session_lives(&disk, locks, HOLDER));
    assert_int_equal(waitpid(heir, NULL, 0), heir);
}

static void unset_it_is_silent(void **state)
{
    (void)state;
    session_watch_set(&watch, HOLDER);
    session_watch_set(&watch, 0);
    session_watch_set(&watch, HOLDER);
    await_block(HOLDER);
    session_watch_set(&watch, 0);
    end_session(&holder);
    assert_false(is_told(5 * SESSION_WATCH_SETTLE_MS));
}

static void the_same_session_costs_no_new_thread(void **state)
{
    (void)state;
    session_watch_set(&watch, HOLDER);
    await_block(HOLDER);
    pthread_t before = watch.thread;
    session_watch_set(&watch, 0);
    session_watch_set(&watch, HOLDER);
    assert_true(pthread_equal(before, watch.thread));
    end_session(&holder);
    assert_told();
}

static void another_session_replaces_it(void **state)
{
    (void)state;
    session_watch_set(&watch, HOLDER);
    await_block(HOLDER);
    session_watch_set(&watch, NEXT);
    end_session(&holder);
    await_block(NEXT);
    assert_false(is_told(3 * SESSION_WATCH_SETTLE_MS));
    end_session(&next);
    assert_told();
}

/* As a thread that is stopped between its lock and its unlock would leave it. */
static void a_read_lock_is_no_session(void **state)
{
    struct flock lock = {.l_type = F_RDLCK,
                         .l_whence = SEEK_SET,
                         .l_start = (off_t)session_byte(HOLDER),
                         .l_len = 1};
    (void)state;
    int file = other.open(other.owner, ".lock", DISK_OPEN);
    end_session(&holder);
    end_session(&next);
    assert_int_equal(fcntl(file, F_OFD_SETLK, &lock), 0);
    assert_false(session_lives(&disk, locks, HOLDER));
    assert_int_equal(session_any_lives(&disk, locks), 0);
    session_watch_set(&watch, HOLDER);
    assert_told();
}

static bool close_in_child(void)
{
    session_watch_done(&watch);
    return true;
}

static void a_forked_child_can_close_it(void **state)
{
    (void)state;
    session_watch_set(&watch, HOLDER);
    await_block(HOLDER);
    assert_true(kit_in_child(close_in_child, /* user= */ -1, /* group= */ -1));
    end_session(&holder);
    assert_told();
}

static void it_can_be_closed_at_any_moment(void **state)
{
    (void)state;
    for (long i = 0; i < 40; i++) {
        session_watch_set(&watch, HOLDER);
        pause_ms(i / 2);
        session_watch_done(&watch);
        session_watch_init(&watch, &disk, locks, OURS);
    }
    assert_true(session_lives(&disk, locks, HOLDER));
    end_session(&holder);
    for (long i = 0; i < 40; i++) {
        session_watch_set(&watch, HOLDER);
        pause_ms(i);
        session_watch_done(&watch);
        session_watch_init(&watch, &disk, locks, OURS);
        int again = session_keep(&other, ".lock", HOLDER);
        assert_true(again >= 0); /* no lock is left behind */
        other.close(other.owner, again);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_end_is_told_once, begin, end),
        cmocka_unit_test_setup_teardown(a_session_that_has_ended_is_told_too, begin, end),
        cmocka_unit_test_setup_teardown(an_heir_keeps_it, begin, end),
        cmocka_unit_test_setup_teardown(unset_it_is_silent, begin, end),
        cmocka_unit_test_setup_teardown(the_same_session_costs_no_new_thread, begin, end),
        cmocka_unit_test_setup_teardown(another_session_replaces_it, begin, end),
        cmocka_unit_test_setup_teardown(a_read_lock_is_no_session, begin, end),
        cmocka_unit_test_setup_teardown(a_forked_child_can_close_it, begin, end),
        cmocka_unit_test_setup_teardown(it_can_be_closed_at_any_moment, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
