/* SPDX-License-Identifier: Apache-2.0 */
/* fork() and exec() at any point: in a child no lease is held. */
#include "lib_kit.h"

#include <glob.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void ignore(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    (void)user;
    (void)lease;
    (void)report;
}

static bool ignore_status(void *user, const struct lh_view *status)
{
    (void)user;
    (void)status;
    return true;
}

/*
 * 0, or the number of the first failed check. Allocates nothing: another thread of the parent may
 * have locked the allocator of the address sanitizer.
 */
static int look_around(struct lh_client *client, struct lh_lease *lease)
{
    struct lh_report report = LH_REPORT_INIT;
    struct lh_view status = LH_VIEW_INIT;
    struct lh_lease *own_lease = NULL;
    if (lh_held(lease) || lh_remaining_ms(lease) != 0)
        return 1;
    if (lh_acquire(client, "other", NULL, &own_lease, &report) != LH_LOST ||
        strstr(report.text, "fork") == NULL)
        return 2;
    if (lh_acquire_start(client, "other", NULL, ignore, NULL, &report) != NULL ||
        report.outcome != LH_LOST)
        return 3;
    if (lh_status(client, "k", &status, &report) != LH_LOST ||
        lh_list(client, "", ignore_status, NULL, &report) != LH_LOST ||
        lh_break(client, "k", "", true, &report) != LH_LOST ||
        lh_clear(client, "k", &report) != LH_LOST ||
        lh_renew(client, "k", 1, 0, &report) != LH_LOST)
        return 4;
    if (lh_fd(client) != -1 || lh_step(client) != LH_LOST)
        return 5;
    lh_close(&client);
    return client == NULL ? 0 : 6;
}

/* The same with allocations and threads. */
static int settle_down(struct lh_client *client, struct lh_lease *lease)
{
    struct lh_report report = LH_REPORT_INIT;
    struct lh_lease *own_lease = NULL;
    struct lh_client *own = NULL;
    int wrong = look_around(client, lease);
    if (wrong != 0)
        return wrong;
    if (lh_release(&lease, &report) != LH_LOST || lease != NULL)
        return 7;
    if (lh_open(kit_url(), NULL, &own, &report) != LH_OK ||
        lh_acquire(own, "child", NULL, &own_lease, &report) != LH_OK ||
        lh_release(&own_lease, &report) != LH_OK)
        return 8;
    lh_close(&own);
    return 0;
}

static int child_of(struct lh_client *client, struct lh_lease *lease,
                    int (*live)(struct lh_client *client, struct lh_lease *lease))
{
    int status = -1;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(live(client, lease));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_child_holds_nothing(void **state)
{
    (void)state;
    for (int own = 0; own < 2; own++) {
        struct lh_open_options open = LH_OPEN_OPTIONS_INIT;
        open.own_loop = own == 1;
        struct lh_client *client = kit_open(&open);
        struct lh_lease *lease = kit_acquire(client, "k", NULL);
        /* The client's thread must be idle: if it allocates at the fork, the address sanitizer's
         * allocator stays locked in the child. */
        kit_sleep_ms(100);
        assert_int_equal(child_of(client, lease, settle_down), 0);
        assert_true(lh_held(lease)); /* the parent does */
        kit_release(&lease, LH_OK);
        lh_close(&client);
    }
}

static atomic_bool stop;

static void *keep_busy(void *argument)
{
    struct lh_client *client = argument;
    while (!atomic_load(&stop)) {
        struct lh_lease *lease = NULL;
        if (lh_acquire(client, "busy", NULL, &lease, NULL) == LH_OK)
            (void)lh_release(&lease, NULL);
    }
    return NULL;
}

static void a_fork_in_the_middle_of_everything(void **state)
{
    (void)state;
    enum { THREADS = 3, ROUNDS = 30 };
    pthread_t threads[THREADS];
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *lease = kit_acquire(client, "k", NULL);
    atomic_store(&stop, false);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, keep_busy, client), 0);
    for (int round = 0; round < ROUNDS; round++)
        assert_int_equal(child_of(client, lease, look_around), 0);
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    kit_release(&lease, LH_OK);
    lh_close(&client);
}

/* The number of descriptors that a started program inherits. */
static int count_in_exec(void)
{
    int out[2], count = 0;
    char byte;
    assert_int_equal(pipe(out), 0);
    pid_t child = fork();
    if (child == 0) {
        (void)dup2(out[1], 1);
        (void)close(out[0]);
        (void)close(out[1]);
        (void)execl("/bin/ls", "ls", "/proc/self/fd", (char *)NULL);
        _exit(127);
    }
    (void)close(out[1]);
    while (read(out[0], &byte, 1) == 1)
        count += byte == '\n' ? 1 : 0;
    (void)close(out[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    return count;
}

static void exec_inherits_no_descriptor(void **state)
{
    (void)state;
    int before = count_in_exec();
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *lease = kit_acquire(client, "k", NULL);
    assert_int_equal(count_in_exec(), before);
    kit_release(&lease, LH_OK);
    lh_close(&client);
}

static bool blocks_signals(const char *thread)
{
    char path[300], line[256];
    unsigned long long blocked = 0;
    (void)snprintf(path, sizeof path, "/proc/self/task/%s/status", thread);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "SigBlk:", 7) == 0)
            blocked = strtoull(line + 7, NULL, 16);
    }
    (void)fclose(file);
    return (blocked >> (SIGTERM - 1) & 1) == 1 && (blocked >> (SIGALRM - 1) & 1) == 1;
}

/* The client's threads block all signals; dispositions do not change. */
static void signals_stay_the_users(void **state)
{
    (void)state;
    struct sigaction before, after;
    sigset_t masks[2];
    assert_int_equal(sigaction(SIGPIPE, NULL, &before), 0);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &masks[0]), 0);
    struct lh_client *client = kit_open(NULL);
    struct lh_lease *lease = kit_acquire(client, "k", NULL);
    glob_t threads;
    int others = 0;
    assert_int_equal(glob("/proc/self/task/*", 0, NULL, &threads), 0);
    for (size_t i = 0; i < threads.gl_pathc; i++) {
        const char *thread = strrchr(threads.gl_pathv[i], '/') + 1;
        if (strtol(thread, NULL, 10) == getpid())
            continue;
        assert_true(blocks_signals(thread));
        others++;
    }
    globfree(&threads);
    assert_true(others >= 1);
    kit_release(&lease, LH_OK);
    lh_close(&client);
    assert_int_equal(sigaction(SIGPIPE, NULL, &after), 0);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &masks[1]), 0);
    assert_true(before.sa_handler == after.sa_handler);
    for (int signal = 1; signal < SIGRTMAX; signal++)
        assert_int_equal(sigismember(&masks[0], signal), sigismember(&masks[1], signal));
}

int main(void)
{
#define ON_BOTH(test)                                          \
    {#test " on memory", test, kit_on_memory, kit_done, NULL}, \
    {                                                          \
#test " on file", test, kit_on_file, kit_done, NULL    \
    }
    const struct CMUnitTest tests[] = {
        ON_BOTH(a_child_holds_nothing),
        ON_BOTH(a_fork_in_the_middle_of_everything),
        ON_BOTH(exec_inherits_no_descriptor),
        ON_BOTH(signals_stay_the_users),
    };
#undef ON_BOTH
    return cmocka_run_group_tests_name("lib_fork", tests, NULL, NULL);
}
