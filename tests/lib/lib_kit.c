/* SPDX-License-Identifier: Apache-2.0 */
/* See lib_kit.h. */
#include "lib_kit.h"

#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { APPEND_BYTE = 1, STARTED_MAX = 65536 };

static char folder[64], url[KIT_URL_SIZE];

int kit_on_memory(void **state)
{
    (void)state;
    (void)snprintf(url, sizeof url, "memory:");
    folder[0] = '\0';
    return 0;
}

int kit_on_file(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/lib-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    (void)snprintf(url, sizeof url, "file:%s/store.log", folder);
    return 0;
}

int kit_done(void **state)
{
    (void)state;
    char pattern[sizeof folder + 2];
    glob_t files;
    if (folder[0] == '\0')
        return 0;
    (void)snprintf(pattern, sizeof pattern, "%s/*", folder);
    if (glob(pattern, GLOB_PERIOD, NULL, &files) == 0) {
        for (size_t i = 0; i < files.gl_pathc; i++)
            (void)unlink(files.gl_pathv[i]); /* fails for "." and ".." */
        globfree(&files);
    }
    return rmdir(folder);
}

const char *kit_url(void)
{
    return url;
}

struct lh_client *kit_open(const struct lh_open_options *options)
{
    struct lh_client *client = NULL;
    struct lh_report report = LH_REPORT_INIT;
    ASSERT_OUTCOME(lh_open(url, options, &client, &report), LH_OK, &report);
    assert_non_null(client);
    return client;
}

struct lh_lease *kit_acquire(struct lh_client *client, const char *key,
                             const struct lh_acquire_options *options)
{
    struct lh_lease *lease = NULL;
    struct lh_report report = LH_REPORT_INIT;
    ASSERT_OUTCOME(lh_acquire(client, key, options, &lease, &report), LH_OK, &report);
    assert_true(lh_held(lease));
    assert_true(lh_token(lease) > 0);
    assert_true(lh_token(lease) == report.token);
    return lease;
}

void kit_release(struct lh_lease **lease, enum lh_outcome expected)
{
    struct lh_report report = LH_REPORT_INIT;
    ASSERT_OUTCOME(lh_release(lease, &report), expected, &report);
    assert_null(*lease);
}

enum lh_state kit_state(struct lh_client *client, const char *key)
{
    struct lh_view status = LH_VIEW_INIT;
    struct lh_report report = LH_REPORT_INIT;
    ASSERT_OUTCOME(lh_status(client, key, &status, &report), LH_OK, &report);
    assert_string_equal(status.key, key);
    return status.state;
}

int kit_stop_store(void)
{
    char path[KIT_URL_SIZE];
    struct flock lock = {.l_type = F_WRLCK, .l_start = APPEND_BYTE, .l_len = 1};
    (void)snprintf(path, sizeof path, "%s.lock", url + strlen("file:"));
    int file = open(path, O_RDWR | O_CLOEXEC);
    assert_true(file >= 0);
    assert_int_equal(fcntl(file, F_OFD_SETLKW, &lock), 0);
    return file;
}

void kit_resume(int stopped)
{
    (void)close(stopped);
}

/* Callbacks start requests too. */
static pthread_mutex_t started_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct lh_request *started[STARTED_MAX];
static size_t started_count;

static void free_started(void)
{
    for (size_t i = 0; i < started_count; i++)
        lh_request_free(started[i]);
}

void kit_started(struct lh_request *request)
{
    assert_non_null(request);
    assert_int_equal(pthread_mutex_lock(&started_mutex), 0);
    if (started_count == 0)
        assert_int_equal(atexit(free_started), 0);
    assert_true(started_count < STARTED_MAX);
    started[started_count++] = request;
    assert_int_equal(pthread_mutex_unlock(&started_mutex), 0);
}

int64_t kit_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void kit_sleep_ms(int64_t length_ms)
{
    struct timespec length = {.tv_sec = length_ms / 1000, .tv_nsec = length_ms % 1000 * 1000000};
    (void)nanosleep(&length, NULL);
}
