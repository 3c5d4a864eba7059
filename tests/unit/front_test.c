/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Front and guardian, real processes: whichever of the two is killed or stopped, the other one
 * leaves nothing of the command behind.
 */
#include "runtime/front.h"

#include "io/family.h"
#include "io/host.h"

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

/* What the test sees of the two. */
struct stage {
    _Atomic pid_t guardian, group;
    _Atomic int end, alive_was_open;
};

static struct stage *stage;

enum { LIMIT_MS = 10000, CLEAN_EXIT = 7, OTHER_EXIT = 8, READY = 9 };

/* A command whose second process hears neither TERM nor HUP, and a third one in its own session. */
static const char *const script =
    "(trap '' TERM HUP; echo >&9; while :; do sleep 1; done) & setsid sleep 100 & wait";

static int play_guardian(struct guardian *guardian, int64_t last_moment_ms, const char *words)
{
    char shell[] = "sh", flag[] = "-c", line[512];
    char *argv[] = {shell, flag, line, NULL};
    (void)snprintf(line, sizeof line, "%s", words);
    int alive = dup(2);
    guardian_promise(guardian, last_moment_ms, /* lease_ends_ms= */ last_moment_ms);
    if (guardian_start(guardian, "/bin/sh", argv, environ, alive) != 0)
        return OTHER_EXIT;
    atomic_store(&stage->group, guardian->job.group);
    atomic_store(&stage->guardian, getpid());
    while (!guardian_is_over(guardian))
        guardian_wait(guardian, /* also= */ -1);
    return guardian->front_is_gone ? CLEAN_EXIT : job_exit_status(&guardian->job);
}

/* Begins the play in a child, which is the front; its exit status is the guardian's. */
static pid_t begin(int64_t last_moment_ms, const char *words)
{
    int ready[2];
    char byte;
    *stage = (struct stage){.end = -1};
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t front_pid = fork();
    assert_true(front_pid >= 0);
    if (front_pid > 0) {
        (void)close(ready[1]);
        (void)!read(ready[0], &byte, 1); /* the command says that its traps are set, or ended */
        (void)close(ready[0]);
        /* The command can be quicker than its parent; and kill(0) would end us, with our runner. */
        for (int i = 0; i < LIMIT_MS && atomic_load(&stage->guardian) == 0; i++)
            (void)poll(NULL, 0, 1);
        assert_true(atomic_load(&stage->guardian) > 0);
        return front_pid;
    }
    (void)dup2(ready[1], READY);
    struct front front;
    struct guardian guardian;
    int status, role = front_fork(&front, &guardian);
    if (role != 0)
        _exit(role == 1 ? play_guardian(&guardian, last_moment_ms, words) : OTHER_EXIT);
    atomic_store(&stage->end, (int)front_attend(&front, &status));
    atomic_store(&stage->alive_was_open, front.alive >= 0);
    front_done(&front);
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
    assert_false(family_group_lives(atomic_load(&stage->group)));
    assert_false(family_has_children());
}

static void status_and_signals_come_through(void **state)
{
    (void)state;
    pid_t front = begin(LINK_NEVER, "exit 3");
    assert_int_equal(join(front), 3);
    assert_int_equal(stage->end, FRONT_ENDED);
    nobody_is_left();
    front = begin(LINK_NEVER, "trap 'exit 5' USR1; echo >&9; while :; do sleep 0.01; done");
    assert_int_equal(kill(front, SIGUSR1), 0);
    assert_int_equal(join(front), 5);
    nobody_is_left();
}

static void a_killed_guardian_takes_the_command_along(void **state)
{
    (void)state;
    pid_t front = begin(LINK_NEVER, script);
    assert_int_equal(kill(stage->guardian, SIGKILL), 0);
    (void)join(front);
    assert_int_equal(stage->end, FRONT_ALONE);
    assert_true(stage->alive_was_open);
    nobody_is_left();
}

static void a_killed_front_takes_the_command_along(void **state)
{
    (void)state;
    pid_t front = begin(LINK_NEVER, script);
    assert_int_equal(kill(front, SIGKILL), 0);
    assert_int_equal(join(front), 128 + SIGKILL);
    assert_int_equal(join(stage->guardian), CLEAN_EXIT); /* it is ours now: we adopt */
    nobody_is_left();
}

static void a_guardian_that_does_nothing_is_replaced_at_the_last_moment(void **state)
{
    (void)state;
    int64_t last_moment_ms = host_boot_ms() + 500;
    pid_t front = begin(last_moment_ms, script);
    assert_int_equal(kill(stage->guardian, SIGSTOP), 0);
    (void)join(front);
    assert_int_equal(stage->end, FRONT_LATE);
    assert_true(host_boot_ms() >= last_moment_ms);
    nobody_is_left();
}

static void a_stopped_front_changes_nothing(void **state)
{
    (void)state;
    pid_t front = begin(LINK_NEVER, "echo >&9; sleep 0.3; exit 6");
    assert_int_equal(kill(front, SIGSTOP), 0);
    (void)poll(NULL, 0, 600);
    assert_int_equal(kill(front, SIGCONT), 0);
    assert_int_equal(join(front), 6);
    nobody_is_left();
}

static int set_up(void **state)
{
    (void)state;
    stage = mmap(NULL, sizeof *stage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, 0, 0);
    return stage != MAP_FAILED && family_adopt() ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_and_signals_come_through),
        cmocka_unit_test(a_killed_guardian_takes_the_command_along),
        cmocka_unit_test(a_killed_front_takes_the_command_along),
        cmocka_unit_test(a_guardian_that_does_nothing_is_replaced_at_the_last_moment),
        cmocka_unit_test(a_stopped_front_changes_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
