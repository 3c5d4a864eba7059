/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Foreground process and supervisor, real processes: if either is killed or stopped, the other one
 * leaves no process of the command behind.
 */
#include "run/foreground.h"

#include "process/process_tree.h"
#include "process/host.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* State of the two that the test observes. */
struct fixture {
    _Atomic pid_t supervisor, group;
    _Atomic int end, alive_was_open;
};

static struct fixture *fixture;

enum { LIMIT_MS = 10000, CLEAN_EXIT = 7, OTHER_EXIT = 8, READY = 9 };

/* A command whose second process ignores TERM and HUP, and a third one in its own session. */
static const char *const script =
    "(trap '' TERM HUP; echo >&9; while :; do sleep 1; done) & setsid sleep 100 & wait";

static int play_supervisor(struct supervisor *supervisor, int64_t kill_deadline_ms,
                           const char *words)
{
    char shell[] = "sh", flag[] = "-c", line[512];
    char *argv[] = {shell, flag, line, NULL};
    (void)snprintf(line, sizeof line, "%s", words);
    int alive = dup(2);
    supervisor_set_deadline(supervisor, kill_deadline_ms, /* lease_ends_ms= */ kill_deadline_ms);
    if (strstr(words, "$PPID") != NULL) /* the command may stop us before the call returns */
        atomic_store(&fixture->supervisor, getpid());
    if (supervisor_start(supervisor, "/bin/sh", argv, environ, alive) != 0)
        return OTHER_EXIT;
    atomic_store(&fixture->group, supervisor->child.group);
    atomic_store(&fixture->supervisor, getpid());
    while (!supervisor_is_done(supervisor))
        supervisor_wait(supervisor, /* also= */ -1);
    return supervisor->foreground_is_gone ? CLEAN_EXIT : child_exit_status(&supervisor->child);
}

/* Starts a child as the foreground process; its exit status is the supervisor's. */
static pid_t begin(int64_t kill_deadline_ms, const char *words)
{
    int ready[2];
    char byte;
    *fixture = (struct fixture){.end = -1};
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t foreground_pid = fork();
    assert_true(foreground_pid >= 0);
    if (foreground_pid > 0) {
        (void)close(ready[1]);
        (void)!read(ready[0], &byte, 1); /* the command reports that its traps are set, or ended */
        (void)close(ready[0]);
        /* The command can be faster than its parent; and kill(0) would kill us and our runner. */
        for (int i = 0; i < LIMIT_MS && atomic_load(&fixture->supervisor) == 0; i++)
            (void)poll(NULL, 0, 1);
        assert_true(atomic_load(&fixture->supervisor) > 0);
        return foreground_pid;
    }
    (void)dup2(ready[1], READY);
    struct foreground foreground;
    struct supervisor supervisor;
    int status, role = foreground_fork(&foreground, &supervisor);
    if (role != 0)
        _exit(role == 1 ? play_supervisor(&supervisor, kill_deadline_ms, words) : OTHER_EXIT);
    atomic_store(&fixture->end, (int)foreground_wait(&foreground, &status));
    atomic_store(&fixture->alive_was_open, foreground.alive >= 0);
    foreground_done(&foreground);
    _exit(status);
}

static int join(pid_t pid)
{
    int status;
    for (int i = 0; i < LIMIT_MS; i++) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        (void)poll(NULL, 0, 1);
    }
    fail_msg("process %ld did not end", (long)pid);
    return -1;
}

static void nobody_is_left(void)
{
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
    assert_false(process_group_alive(atomic_load(&fixture->group)));
    assert_false(process_tree_has_children());
}

static void status_and_signals_come_through(void **state)
{
    (void)state;
    pid_t foreground = begin(CHANNEL_NEVER, "exit 3");
    assert_int_equal(join(foreground), 3);
    assert_int_equal(fixture->end, FOREGROUND_ENDED);
    nobody_is_left();
    foreground = begin(CHANNEL_NEVER, "trap 'exit 5' USR1; echo >&9; while :; do sleep 0.01; done");
    assert_int_equal(kill(foreground, SIGUSR1), 0);
    assert_int_equal(join(foreground), 5);
    nobody_is_left();
}

static void a_killed_supervisor_takes_the_command_along(void **state)
{
    (void)state;
    pid_t foreground = begin(CHANNEL_NEVER, script);
    assert_int_equal(kill(fixture->supervisor, SIGKILL), 0);
    (void)join(foreground);
    assert_int_equal(fixture->end, FOREGROUND_ORPHANED);
    assert_true(fixture->alive_was_open);
    nobody_is_left();
}

static void a_killed_front_takes_the_command_along(void **state)
{
    (void)state;
    pid_t foreground = begin(CHANNEL_NEVER, script);
    assert_int_equal(kill(foreground, SIGKILL), 0);
    assert_int_equal(join(foreground), 128 + SIGKILL);
    assert_int_equal(join(fixture->supervisor), CLEAN_EXIT); /* we are its subreaper now */
    nobody_is_left();
}

static void a_supervisor_that_does_nothing_is_replaced_at_the_last_moment(void **state)
{
    (void)state;
    int64_t kill_deadline_ms = host_boot_ms() + 500;
    pid_t foreground = begin(kill_deadline_ms, script);
    assert_int_equal(kill(fixture->supervisor, SIGSTOP), 0);
    (void)join(foreground);
    assert_int_equal(fixture->end, FOREGROUND_LATE);
    assert_true(host_boot_ms() >= kill_deadline_ms);
    nobody_is_left();
}

/* The command may be faster than the message that it was started. */
static void a_supervisor_stopped_by_the_first_step_of_the_command_is_replaced(void **state)
{
    enum { ROUNDS = 8 };
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t kill_deadline_ms = host_boot_ms() + 200;
        pid_t foreground = begin(kill_deadline_ms, "kill -STOP $PPID; echo >&9; sleep 100");
        (void)join(foreground);
        assert_int_equal(fixture->end, FOREGROUND_LATE);
        assert_true(fixture->alive_was_open);
        assert_false(process_tree_has_children());
    }
}

static void a_stopped_front_changes_nothing(void **state)
{
    (void)state;
    pid_t foreground = begin(CHANNEL_NEVER, "echo >&9; sleep 0.3; exit 6");
    assert_int_equal(kill(foreground, SIGSTOP), 0);
    (void)poll(NULL, 0, 600);
    assert_int_equal(kill(foreground, SIGCONT), 0);
    assert_int_equal(join(foreground), 6);
    nobody_is_left();
}

static int set_up(void **state)
{
    (void)state;
    fixture = mmap(NULL, sizeof *fixture, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, 0, 0);
    return fixture != MAP_FAILED && process_tree_adopt() ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_and_signals_come_through),
        cmocka_unit_test(a_killed_supervisor_takes_the_command_along),
        cmocka_unit_test(a_killed_front_takes_the_command_along),
        cmocka_unit_test(a_supervisor_that_does_nothing_is_replaced_at_the_last_moment),
        cmocka_unit_test(a_supervisor_stopped_by_the_first_step_of_the_command_is_replaced),
        cmocka_unit_test(a_stopped_front_changes_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
