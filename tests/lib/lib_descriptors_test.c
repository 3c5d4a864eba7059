/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lh_open() with no free descriptor, with one, with two and so on, until it succeeds: each failure
 * is LH_FAILED with a text, prints nothing and leaks nothing, and the first success is a client
 * that works.
 */
#include "lib_kit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { FREE_MOST = 64, FILES_MOST = 1024 };

static char folder[] = "/tmp/descriptors-XXXXXX";
static char printed[64], kubeconfig[64];

static void list_open(bool open_files[FILES_MOST])
{
    for (int i = 0; i < FILES_MOST; i++)
        open_files[i] = fcntl(i, F_GETFD) >= 0;
}

/* The limit that leaves that number of descriptors free. */
static rlim_t limit_for(const bool open_files[FILES_MOST], unsigned free_files)
{
    rlim_t limit = 0;
    for (; limit < FILES_MOST && (free_files > 0 || open_files[limit]); limit++)
        free_files -= open_files[limit] ? 0 : 1;
    return limit;
}

static off_t end_of(int file)
{
    return lseek(file, 0, SEEK_END);
}

struct attempt {
    struct lh_client *client;
    struct lh_report report;
    enum lh_outcome outcome;
    bool worked; /* with as many descriptors as were needed to open */
};

/* Output of the library goes to a file meanwhile. */
static void attempt(const char *url, unsigned free_files, bool reachable, struct attempt *out)
{
    bool before[FILES_MOST];
    struct rlimit usual, less;
    int log = open(printed, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int own_out = dup(STDOUT_FILENO), own_error = dup(STDERR_FILENO);
    assert_true(log >= 0 && own_out >= 0 && own_error >= 0);
    (void)fflush(NULL);
    assert_true(dup2(log, STDOUT_FILENO) >= 0 && dup2(log, STDERR_FILENO) >= 0);
    list_open(before);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    less = usual;
    less.rlim_cur = limit_for(before, free_files);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
    *out = (struct attempt){.report = LH_REPORT_INIT};
    out->outcome = lh_open(url, NULL, &out->client, &out->report);
    if (out->client != NULL && reachable) {
        struct lh_lease *lease = NULL;
        out->worked = lh_acquire(out->client, "k", NULL, &lease, &out->report) == LH_OK &&
                      lh_release(&lease, &out->report) == LH_OK;
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    (void)fflush(NULL);
    off_t length = end_of(log);
    (void)dup2(own_out, STDOUT_FILENO);
    (void)dup2(own_error, STDERR_FILENO);
    (void)close(own_out);
    (void)close(own_error);
    (void)close(log);
    assert_int_equal(length, 0);
}

static void opens_or_fails_cleanly(const char *url, bool reachable)
{
    struct attempt now;
    unsigned free_files = 0;
    for (; free_files < FREE_MOST; free_files++) {
        bool before[FILES_MOST], after[FILES_MOST];
        list_open(before);
        attempt(url, free_files, reachable, &now);
        bool opened = now.client != NULL;
        lh_close(&now.client);
        list_open(after);
        assert_memory_equal(before, after, sizeof before);
        if (opened)
            break;
        if (now.outcome != LH_FAILED)
            print_message("%u free: %s\n", free_files, now.report.text);
        assert_string_equal(lh_outcome_name(now.outcome), "failed");
        assert_int_equal(now.report.outcome, LH_FAILED);
        assert_memory_equal(now.report.text, "failed: ", strlen("failed: "));
    }
    print_message("%s opens with %u free descriptors\n", url, free_files);
    assert_true(free_files > 2 && free_files < FREE_MOST);
    if (reachable && !now.worked)
        print_message("%s\n", now.report.text);
    assert_int_equal(now.worked, reachable);
}

static void memory_needs_some(void **state)
{
    (void)state;
    opens_or_fails_cleanly("memory:", /* reachable= */ true);
}

/* With a new folder each time, and with an existing log. */
static void a_file_needs_some(void **state)
{
    char url[64];
    (void)state;
    (void)snprintf(url, sizeof url, "file:%s/locks.log", folder);
    opens_or_fails_cleanly(url, /* reachable= */ true);
    opens_or_fails_cleanly(url, /* reachable= */ true);
}

static void redis_needs_some(void **state)
{
    (void)state;
    opens_or_fails_cleanly("redis://127.0.0.1:1", /* reachable= */ false);
    opens_or_fails_cleanly("rediss://127.0.0.1:1", /* reachable= */ false);
}

static void kubernetes_needs_some(void **state)
{
    (void)state;
    opens_or_fails_cleanly("k8s://test", /* reachable= */ false);
}

static int begin(void **state)
{
    static const char config[] = "current-context: x\n"
                                 "clusters: [{name: x, cluster: {server: 'https://127.0.0.1:1', "
                                 "certificate-authority-data: eA==}}]\n"
                                 "contexts: [{name: x, context: {cluster: x, user: x}}]\n"
                                 "users: [{name: x, user: {token: t}}]\n";
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    (void)snprintf(printed, sizeof printed, "%s/printed", folder);
    (void)snprintf(kubeconfig, sizeof kubeconfig, "%s/kubeconfig", folder);
    FILE *file = fopen(kubeconfig, "we");
    if (file == NULL || fputs(config, file) < 0 || fclose(file) != 0)
        return -1;
    return setenv("KUBECONFIG", kubeconfig, /* overwrite= */ 1);
}

static int finish(void **state)
{
    static const char *const names[] = {"printed", "kubeconfig", "locks.log", "locks.log.lock",
                                        "locks.log.index"};
    char path[64];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_needs_some),
        cmocka_unit_test(a_file_needs_some),
        cmocka_unit_test(redis_needs_some),
        cmocka_unit_test(kubernetes_needs_some),
    };
    return cmocka_run_group_tests_name("lib_descriptors", tests, begin, finish);
}
