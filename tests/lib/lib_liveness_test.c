/* SPDX-License-Identifier: Apache-2.0 */
/* A command inherits the descriptor of lh_liveness_fd() and no other of the client. */
#include "lib_kit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXT_MOST = 4096 };

/* The descriptors that a started program inherits, and their files. */
static void list_in_exec(char *out)
{
    int pipes[2];
    size_t length = 0;
    ssize_t got;
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        (void)dup2(pipes[1], 1);
        (void)execl("/bin/sh", "sh", "-c",
                    "for f in /proc/$$/fd/*; do echo \"${f##*/} $(readlink $f)\"; done",
                    (char *)NULL);
        _exit(127);
    }
    (void)close(pipes[1]);
    while ((got = read(pipes[0], out + length, TEXT_MOST - 1 - length)) > 0)
        length += (size_t)got;
    out[length] = '\0';
    (void)close(pipes[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_non_null(strstr(out, "1 pipe:"));
}

static size_t lines_of(const char *text)
{
    size_t count = 0;
    for (; *text != '\0'; text++)
        count += *text == '\n' ? 1 : 0;
    return count;
}

static void exec_inherits_what_was_asked_for(void **state)
{
    (void)state;
    char before[TEXT_MOST], open[TEXT_MOST], with[TEXT_MOST];
    list_in_exec(before);
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *lease = kit_acquire(client, "k", NULL);
    list_in_exec(open);
    assert_int_equal(lines_of(open), lines_of(before));
    assert_null(strstr(open, "store.log"));

    int file = lh_liveness_fd(client);
    assert_true(file > 2);
    list_in_exec(with);
    assert_int_equal(lines_of(with), lines_of(before) + 1);
    assert_non_null(strstr(with, "store.log.lock"));
    assert_int_equal(close(file), 0);
    list_in_exec(open);
    assert_int_equal(lines_of(open), lines_of(before));
    kit_release(&lease, LH_OK);
    lh_close(&client);
}

static void memory_has_none(void **state)
{
    (void)state;
    struct lh_client *client = kit_open(NULL);
    assert_int_equal(lh_liveness_fd(client), -1);
    lh_close(&client);
    assert_int_equal(lh_liveness_fd(NULL), -1);
}

static void a_forked_child_gets_none(void **state)
{
    (void)state;
    int status = -1;
    struct lh_client *client = kit_open(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(lh_liveness_fd(client) == -1 ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    lh_close(&client);
}

struct holder_and_command {
    pid_t holder, command;
};

/* Starts a holder and its command, which inherits the liveness descriptor or not. Called before
 * this process has threads. */
static struct holder_and_command start_holder(int64_t ttl_ms, bool hands_on)
{
    struct holder_and_command holder_and_command = {0};
    int pipes[2];
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    holder_and_command.holder = fork();
    if (holder_and_command.holder == 0) {
        struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
        struct lh_client *client = NULL;
        struct lh_lease *lease = NULL;
        options.ttl_ms = ttl_ms;
        if (lh_open(kit_url(), NULL, &client, NULL) != LH_OK ||
            lh_acquire(client, "k", &options, &lease, NULL) != LH_OK)
            _exit(1);
        int file = hands_on ? lh_liveness_fd(client) : -1;
        pid_t command = fork();
        if (command == 0) {
            (void)execl("/bin/sleep", "sleep", "60", (char *)NULL);
            _exit(127);
        }
        if (file >= 0)
            (void)close(file);
        (void)!write(pipes[1], &command, sizeof command);
        for (;;)
            (void)pause();
    }
    (void)close(pipes[1]);
    ssize_t got = read(pipes[0], &holder_and_command.command, sizeof holder_and_command.command);
    assert_int_equal(got, sizeof holder_and_command.command);
    (void)close(pipes[0]);
    return holder_and_command;
}

static void kill_holder(const struct holder_and_command *holder_and_command)
{
    assert_int_equal(kill(holder_and_command->holder, SIGKILL), 0);
    assert_int_equal(waitpid(holder_and_command->holder, NULL, 0), holder_and_command->holder);
}

/* A process that has not ended or called exec yet still has its inherited descriptors open. */
static struct lh_lease *acquire_soon(struct lh_client *client)
{
    struct lh_lease *lease = NULL;
    enum lh_outcome outcome = LH_BUSY;
    for (int i = 0; i < 1000 && outcome == LH_BUSY; i++) {
        kit_sleep_ms(5);
        outcome = lh_acquire(client, "k", NULL, &lease, NULL);
    }
    assert_int_equal(outcome, LH_OK);
    return lease;
}

static void a_killed_holders_command_keeps_the_lease(void **state)
{
    (void)state;
    struct holder_and_command holder_and_command =
        start_holder(/* ttl_ms= */ 60000, /* hands_on= */ true);
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *lease = NULL;
    kill_holder(&holder_and_command);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(lh_acquire(client, "k", NULL, &lease, NULL), LH_BUSY);
        kit_sleep_ms(5);
    }
    assert_int_equal(kill(holder_and_command.command, SIGKILL), 0);
    lease = acquire_soon(client);
    kit_release(&lease, LH_OK);
    lh_close(&client);
}

static void without_it_the_lease_ends_with_the_holder(void **state)
{
    (void)state;
    struct holder_and_command holder_and_command =
        start_holder(/* ttl_ms= */ 60000, /* hands_on= */ false);
    struct lh_client *client = kit_open(NULL);
    kill_holder(&holder_and_command);
    struct lh_lease *lease = acquire_soon(client);
    assert_int_equal(kill(holder_and_command.command, SIGKILL), 0);
    kit_release(&lease, LH_OK);
    lh_close(&client);
}

static void with_it_the_lease_still_ends_with_its_ttl(void **state)
{
    (void)state;
    struct lh_acquire_options patient = LH_ACQUIRE_OPTIONS_INIT;
    struct holder_and_command holder_and_command =
        start_holder(/* ttl_ms= */ 1000, /* hands_on= */ true);
    struct lh_client *client = kit_open(NULL);
    kill_holder(&holder_and_command);
    patient.wait_ms = 30000;
    struct lh_lease *lease = kit_acquire(client, "k", &patient);
    assert_int_equal(kill(holder_and_command.command, 0), 0);
    assert_int_equal(kill(holder_and_command.command, SIGKILL), 0);
    kit_release(&lease, LH_OK);
    lh_close(&client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_FILE(exec_inherits_what_was_asked_for),
        cmocka_unit_test_setup_teardown(memory_has_none, kit_on_memory, kit_done),
        ON_FILE(a_forked_child_gets_none),
        ON_FILE(a_killed_holders_command_keeps_the_lease),
        ON_FILE(without_it_the_lease_ends_with_the_holder),
        ON_FILE(with_it_the_lease_still_ends_with_its_ttl),
    };
#undef ON_FILE
    return cmocka_run_group_tests_name("lib_liveness", tests, NULL, NULL);
}
