/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands and their parent, with real processes: their remaining processes are found and ended,
 * and a command is not over while any of its processes runs.
 */
#include "run/child.h"

#include "process/process_tree.h"
#include "process/host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/leasehold-job-XXXXXX";

/* ---- finding ---- */

static void make_file(const char *name, mode_t mode)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    assert_int_equal(fchmod(file, mode), 0);
    (void)close(file);
}

static int find(const char *name, const char *path_variable, char *out, size_t size)
{
    char before[4096];
    const char *path = getenv("PATH");
    (void)snprintf(before, sizeof before, "%s", path != NULL ? path : "");
    assert_int_equal(setenv("PATH", path_variable, 1), 0);
    int error = program_find(name, out, size);
    assert_int_equal(setenv("PATH", before, 1), 0);
    return error;
}

static void programs_are_found_as_by_a_shell(void **state)
{
    (void)state;
    char out[256], both[128];
    make_file("tool", 0700);
    make_file("plain", 0600);
    (void)snprintf(both, sizeof both, "/nowhere:%s:/bin", folder);
    assert_int_equal(find("tool", both, out, sizeof out), 0);
    assert_non_null(strstr(out, "/tool"));
    assert_int_equal(find("sh", both, out, sizeof out), 0);
    assert_string_equal(out, "/bin/sh");
    assert_int_equal(find("/bin/sh", both, out, sizeof out), 0);
    assert_int_equal(find("no-such-tool", both, out, sizeof out), ENOENT);
    assert_int_equal(find("", both, out, sizeof out), ENOENT);
    assert_int_equal(find("/no/such/tool", both, out, sizeof out), ENOENT);
    assert_int_equal(find("/etc/passwd", both, out, sizeof out), EACCES);
    assert_int_equal(find("/etc", both, out, sizeof out), EISDIR);
    /* A plain file in the path does not hide a program further on. */
    assert_int_equal(find("plain", both, out, sizeof out), EACCES);
    make_file("sh", 0600);
    assert_int_equal(find("sh", both, out, sizeof out), 0);
    assert_string_equal(out, "/bin/sh");
    assert_int_equal(find("sh", both, out, 4), ENOENT); /* no room for it */
}

/* Only a file that is visible and not executable is a permission problem, as in a shell. */
static void an_unsearchable_folder_is_passed_over(void **state)
{
    (void)state;
    char closed[128], inside[160], both[300], out[256];
    bool is_root = geteuid() == 0;
    (void)snprintf(closed, sizeof closed, "%s/closed", folder);
    (void)snprintf(inside, sizeof inside, "%s/tool", closed);
    (void)snprintf(both, sizeof both, "/bin:%s", closed);
    assert_int_equal(mkdir(closed, 0), 0);
    assert_true(!is_root || seteuid(65534) == 0); /* root may search every folder */
    int missing = find("no-such-tool", both, out, sizeof out);
    int named = find(inside, both, out, sizeof out);
    assert_true(!is_root || seteuid(0) == 0);
    assert_int_equal(rmdir(closed), 0);
    assert_int_equal(missing, ENOENT);
    assert_int_equal(named, EACCES);
}

/* ---- running ---- */

struct fixture {
    struct child child;
    _Atomic pid_t group;
};

static void start(struct fixture *fixture, const char *script)
{
    char shell[] = "sh", flag[] = "-c", line[512];
    char *argv[] = {shell, flag, line, NULL};
    (void)snprintf(line, sizeof line, "%s", script);
    sigset_t none;
    (void)sigemptyset(&none);
    struct program program = {.path = "/bin/sh",
                              .argv = argv,
                              .environment = environ,
                              .mask = &none,
                              .terminal = -1,
                              .foreground_from = -1,
                              .group = &fixture->group};
    assert_int_equal(child_spawn(&fixture->child, &program), 0);
    assert_int_equal(fixture->group, fixture->child.group);
}

/* As the supervisor does, without its descriptors. */
static void play_until(struct fixture *fixture, enum child_state state, int64_t limit_ms)
{
    int64_t end_ms = host_boot_ms() + limit_ms;
    while (fixture->child.state != state && host_boot_ms() < end_ms) {
        (void)poll(NULL, 0, 2);
        child_reap(&fixture->child, host_boot_ms());
        child_tick(&fixture->child, host_boot_ms());
    }
    assert_int_equal(fixture->child.state, state);
}

static pid_t read_pid(const char *name)
{
    char path[128], words[32] = "";
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    for (int i = 0; i < 2000; i++) {
        FILE *file = fopen(path, "re");
        if (file != NULL && fgets(words, sizeof words, file) != NULL && strchr(words, '\n')) {
            (void)fclose(file);
            (void)unlink(path);
            return (pid_t)strtol(words, NULL, 10);
        }
        if (file != NULL)
            (void)fclose(file);
        (void)poll(NULL, 0, 2);
    }
    fail_msg("nobody wrote %s", name);
    return -1;
}

static bool lives(pid_t pid)
{
    return kill(pid, 0) == 0;
}

static void exit_status_comes_through(void **state)
{
    (void)state;
    struct fixture fixture = {0};
    start(&fixture, "exit 42");
    play_until(&fixture, CHILD_DONE, 5000);
    assert_int_equal(child_exit_status(&fixture.child), 42);
    start(&fixture, "kill -9 $$");
    play_until(&fixture, CHILD_DONE, 5000);
    assert_int_equal(child_exit_status(&fixture.child), 128 + SIGKILL);
}

static void a_command_that_cannot_be_run_says_so(void **state)
{
    (void)state;
    struct fixture fixture = {0};
    char name[] = "x";
    char *argv[] = {name, NULL};
    sigset_t none;
    (void)sigemptyset(&none);
    struct program program = {.path = "/etc/passwd",
                              .argv = argv,
                              .environment = environ,
                              .mask = &none,
                              .terminal = -1,
                              .foreground_from = -1,
                              .group = &fixture.group};
    assert_int_equal(child_spawn(&fixture.child, &program), -EACCES);
    assert_false(process_tree_has_children());
}

static void processes_left_in_its_group_are_ended(void **state)
{
    (void)state;
    struct fixture fixture = {0};
    char script[256];
    (void)snprintf(script, sizeof script,
                   "(trap '' TERM; echo $(exec sh -c 'echo $PPID') > %s/deaf; > %s/told; "
                   "while :; do sleep 1; done) & "
                   "until [ -e %s/told ]; do sleep 0.01; done; exit 3",
                   folder, folder, folder);
    start(&fixture, script);
    pid_t deaf = read_pid("deaf");
    play_until(&fixture, CHILD_DONE, 5000);
    assert_int_equal(child_exit_status(&fixture.child), 3);
    assert_false(process_group_alive(fixture.child.group));
    (void)waitpid(deaf, NULL, 0); /* dead, and perhaps not reaped yet */
    assert_false(lives(deaf));
}

static pid_t start_with_daemon(struct fixture *fixture, const char *then)
{
    char script[256];
    (void)snprintf(script, sizeof script,
                   "setsid sh -c 'echo $$ > %s/daemon; > %s/there; exec sleep 60' & "
                   "until [ -e %s/there ]; do sleep 0.01; done; rm %s/there; %s",
                   folder, folder, folder, folder, then);
    start(fixture, script);
    return read_pid("daemon");
}

static void a_daemon_may_stay_when_the_command_ends_by_itself(void **state)
{
    (void)state;
    struct fixture fixture = {0};
    pid_t daemon = start_with_daemon(&fixture, "exit 0");
    play_until(&fixture, CHILD_DONE, 5000);
    assert_true(lives(daemon));
    assert_int_equal(kill(daemon, SIGKILL), 0);
    assert_int_equal(waitpid(daemon, NULL, 0), daemon);
}

static void a_daemon_goes_when_the_command_is_ended_or_killed(void **state)
{
    (void)state;
    struct fixture fixture = {0};
    pid_t daemon = start_with_daemon(&fixture, "wait");
    child_terminate(&fixture.child, host_boot_ms() + 5000);
    play_until(&fixture, CHILD_DONE, 5000);
    assert_false(lives(daemon));
    daemon = start_with_daemon(&fixture, "kill -9 $$");
    play_until(&fixture, CHILD_DONE, 5000);
    assert_false(lives(daemon));
}

static void the_deaf_are_killed_at_the_kill_time(void **state)
{
    (void)state;
    struct fixture fixture = {0};
    char script[256];
    (void)snprintf(script, sizeof script,
                   "trap '' TERM HUP; (echo x > %s/ready; echo >> %s/ready; sleep 60) & "
                   "while :; do sleep 1; done",
                   folder, folder);
    start(&fixture, script);
    (void)read_pid("ready");
    int64_t began_ms = host_boot_ms();
    child_terminate(&fixture.child, began_ms + 300);
    play_until(&fixture, CHILD_DONE, 5000);
    assert_true(host_boot_ms() - began_ms >= 300);
    assert_int_equal(child_exit_status(&fixture.child), 128 + SIGKILL);
    assert_false(process_tree_has_children());
}

static void one_that_is_stopped_hears_that_it_is_to_end(void **state)
{
    (void)state;
    struct fixture fixture = {0};
    start(&fixture, "kill -STOP $$");
    while (fixture.child.stopped_by == 0)
        child_reap(&fixture.child, host_boot_ms());
    assert_int_equal(fixture.child.stopped_by, SIGSTOP);
    child_terminate(&fixture.child, host_boot_ms() + 60000);
    play_until(&fixture, CHILD_DONE, 5000);
    assert_int_equal(child_exit_status(&fixture.child), 128 + SIGTERM);
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) != NULL && process_tree_adopt() ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    char line[128];
    (void)snprintf(line, sizeof line, "rm -rf %s", folder);
    return system(line); // NOLINT(cert-env33-c): a fixed line
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_are_found_as_by_a_shell),
        cmocka_unit_test(an_unsearchable_folder_is_passed_over),
        cmocka_unit_test(exit_status_comes_through),
        cmocka_unit_test(a_command_that_cannot_be_run_says_so),
        cmocka_unit_test(processes_left_in_its_group_are_ended),
        cmocka_unit_test(a_daemon_may_stay_when_the_command_ends_by_itself),
        cmocka_unit_test(a_daemon_goes_when_the_command_is_ended_or_killed),
        cmocka_unit_test(the_deaf_are_killed_at_the_kill_time),
        cmocka_unit_test(one_that_is_stopped_hears_that_it_is_to_end),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
