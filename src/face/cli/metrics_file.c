/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See metrics_file.h. The file is read, added to and replaced by a rename while PATH.lock is
 * locked, so that no process loses a count and no reader sees a part. Its content is not trusted: a
 * file that leasehold did not write stays as it is.
 */
#include "face/cli/metrics_file.h"

#include "wire/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOCK_WAIT_MS = 2000, FILE_MODE = 0644, PATH_SIZE = PATH_MAX };

static const char prefix[] = "leasehold";

static struct metrics unseen; /* not counted by context->client */
static char bytes[METRICS_TEXT_MAX + 1];

/* ---- what is added ---- */

void metrics_file_count(bool granted, enum lh_outcome outcome)
{
    if (outcome == LH_USAGE)
        return;
    unseen.values[SLOT_ATTEMPTS]++;
    if (granted)
        unseen.values[SLOT_SUCCESSES]++;
    else
        unseen.values[SLOT_FAILURES +
                      (outcome == LH_FAILED ? FAILURE_INTERNAL_ERROR : FAILURE_API_ERROR)]++;
    if (granted && outcome == LH_LOST)
        unseen.values[SLOT_LOST]++;
}

/* Adds text of the library, which is in `bytes`. */
static void add_text(size_t length)
{
    struct metrics found;
    if (metrics_read(bytes, length, prefix, &found, /* why= */ NULL))
        metrics_add(&unseen, &found);
}

void metrics_file_add_workloads(struct lh_workloads *workloads)
{
    size_t length = 0;
    if (lh_workloads_metrics(workloads, prefix, bytes, sizeof bytes, &length, NULL) == LH_OK)
        add_text(length);
}

static void add_client(struct lh_client *client)
{
    size_t length = 0;
    if (lh_metrics(client, prefix, bytes, sizeof bytes, &length, NULL) == LH_OK)
        add_text(length);
}

/* ---- the file ---- */

/* Returns false, for the caller to return in turn. */
static bool refuse(struct text *why, const char *what, const char *detail)
{
    text_clear(why);
    text_add(why, what);
    text_add(why, detail);
    return false;
}

/* The same about another file than that of the metrics. */
static bool refuse_file(struct text *why, const char *what, const char *path, const char *detail)
{
    (void)refuse(why, what, path);
    text_add(why, detail);
    return false;
}

/* The same with the text of errno. */
static bool refuse_open(struct text *why, const char *what, const char *path)
{
    (void)refuse_file(why, what, path, ": ");
    text_add(why, strerror(errno));
    return false;
}

static bool path_with(const char *path, const char *suffix, char out[PATH_SIZE], struct text *why)
{
    int length = snprintf(out, PATH_SIZE, "%s%s", path, suffix);
    return length < PATH_SIZE || refuse(why, "the path is too long", "");
}

static int64_t lock_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* True if the path still leads to the locked file: nobody has removed it meanwhile. */
static bool is_still_at(int file, const char *path)
{
    struct stat locked, found;
    return fstat(file, &locked) == 0 && stat(path, &found) == 0 && locked.st_dev == found.st_dev &&
           locked.st_ino == found.st_ino;
}

/* Polls, since flock() has no timeout. */
static bool await_lock(int file, int64_t until_ms)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    while (flock(file, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK || lock_now_ms() >= until_ms)
            return false;
        (void)nanosleep(&pause, NULL);
    }
    return true;
}

/* Other users must be able to open the lock file, whatever our umask. */
static void lock_allow_others(int file)
{
    struct stat status;
    if (fstat(file, &status) == 0 && (status.st_mode & 0777) != FILE_MODE)
        (void)fchmod(file, FILE_MODE);
}

/* The descriptor whose close unlocks it; -1 with the reason. */
static int lock_file(const char *metrics_path, struct text *why)
{
    char path[PATH_SIZE];
    int64_t until_ms = lock_now_ms() + LOCK_WAIT_MS;
    if (!path_with(metrics_path, ".lock", path, why))
        return -1;
    while (true) {
        int file = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, FILE_MODE);
        if (file < 0) {
            (void)refuse_open(why, "cannot open its lock file ", path);
            return -1;
        }
        lock_allow_others(file);
        bool locked = await_lock(file, until_ms);
        if (locked && is_still_at(file, path))
            return file;
        (void)close(file);
        if (!locked) {
            (void)refuse_file(why, "another process holds its lock file ", path,
                              "; is it stopped?");
            return -1;
        }
    }
}

static bool read_bytes(int file, size_t *out_length, struct text *why)
{
    size_t length = 0;
    ssize_t count;
    while (length < sizeof bytes && (count = read(file, bytes + length, sizeof bytes - length)) > 0)
        length += (size_t)count;
    if (length < sizeof bytes && count < 0)
        return refuse(why, "cannot read it: ", strerror(errno));
    *out_length = length;
    return true;
}

/* Adds the current content to `sum`. An empty or missing file has none. */
static bool add_current(int file, struct metrics *sum, struct text *why)
{
    struct metrics found;
    char message[LH_TEXT_SIZE];
    struct text wrong;
    size_t length = 0;
    if (!read_bytes(file, &length, why))
        return false;
    text_init(&wrong, message, sizeof message);
    if (length == 0)
        return true;
    if (!metrics_read(bytes, length, prefix, &found, &wrong)) {
        (void)refuse(why, message, "; leasehold did not write it: remove it, or give another path");
        return false;
    }
    metrics_add(sum, &found);
    return true;
}

static bool read_current(const char *path, struct metrics *sum, mode_t *out_mode, struct text *why)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0 && errno == ENOENT)
        return true;
    if (file < 0)
        return errno == ELOOP ? refuse(why, "it is a symbolic link", "")
                              : refuse(why, "cannot open it: ", strerror(errno));
    bool good = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
    if (!good)
        (void)refuse(why, "it is not a regular file", "");
    else
        *out_mode = status.st_mode & 0777;
    good = good && add_current(file, sum, why);
    (void)close(file);
    return good;
}

static bool write_bytes(int file, size_t length)
{
    size_t done = 0;
    while (done < length) {
        ssize_t count = write(file, bytes + done, length - done);
        if (count < 0)
            return false;
        done += (size_t)count;
    }
    return true;
}

static bool replace_file(const char *path, const struct metrics *sum, mode_t mode, struct text *why)
{
    char temporary[PATH_SIZE];
    struct text text;
    text_init(&text, bytes, sizeof bytes);
    metrics_write(sum, prefix, /* gauges= */ false, &text);
    if (!path_with(path, ".new", temporary, why))
        return false;
    (void)unlink(temporary); /* left by a killed process */
    int file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
    if (file < 0)
        return refuse_open(why, "cannot create ", temporary);
    bool good = fchmod(file, mode) == 0 && write_bytes(file, text.length);
    int error = errno;
    if (close(file) != 0 && good) {
        good = false;
        error = errno;
    }
    if (good && rename(temporary, path) == 0)
        return true;
    error = good ? errno : error;
    (void)unlink(temporary);
    return refuse(why, "cannot write it: ", strerror(error));
}

static bool add_to_file(const char *path, struct text *why)
{
    struct metrics sum = unseen;
    mode_t mode = FILE_MODE;
    int lock = lock_file(path, why);
    if (lock < 0)
        return false;
    bool good = read_current(path, &sum, &mode, why) && replace_file(path, &sum, mode, why);
    (void)close(lock);
    return good;
}

static void warn(const struct context *context, const char *path, const char *why)
{
    char message[LINE_SIZE / 2];
    struct text text;
    text_init(&text, message, sizeof message);
    text_add(&text, "the metrics were not added to ");
    text_add(&text, path);
    text_add(&text, ": ");
    text_add(&text, why);
    output_warning(context, message);
}

/* The configuration file sets the path for all commands; only some of them count. */
static bool takes_metrics_file(const struct command *command)
{
    const struct option *const *option = command != NULL ? command->options : NULL;
    while (option != NULL && *option != NULL && *option != &option_metrics_file)
        option++;
    return option != NULL && *option != NULL;
}

void metrics_file_update(struct context *context)
{
    static bool is_updated;
    const char *path = context->settings.metrics_file;
    char message[PATH_SIZE + LH_TEXT_SIZE];
    struct text why;
    if (path == NULL || is_updated || !takes_metrics_file(context->command))
        return;
    is_updated = true;
    if (context->client != NULL)
        add_client(context->client);
    text_init(&why, message, sizeof message);
    if (!metrics_are_zero(&unseen) && !add_to_file(path, &why))
        warn(context, path, message);
}
