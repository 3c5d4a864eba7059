/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See secret.h. A rename usually replaces the file, so a change is detected by its inode, size and
 * times. Error messages must not contain text from the file.
 */
#include "disk/secret.h"

#include "base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECRET_MAGIC = 0x5ec7e7 };

#define RELOAD_MS ((int64_t)60000)

struct secret {
    uint32_t magic;
    char *path;
    bool known;   /* `value` is set … */
    bool refused; /* … but a server refused it */
    int64_t read_at_ms;
    struct stat seen; /* of the file that it was read from */
    char value[SECRET_MAX + 1];
};

struct secret *secret_new(const char *path)
{
    struct secret *secret = calloc(1, sizeof *secret);
    if (secret == NULL)
        return NULL;
    secret->magic = SECRET_MAGIC;
    secret->path = strdup(path);
    if (secret->path == NULL)
        secret_free(&secret);
    return secret;
}

void secret_free(struct secret **secret_pointer)
{
    struct secret *secret = *secret_pointer;
    if (secret == NULL)
        return;
    ASSERT(secret->magic == SECRET_MAGIC);
    free(secret->path);
    explicit_bzero(secret, sizeof *secret);
    free(secret);
    *secret_pointer = NULL;
}

void secret_refused(struct secret *secret)
{
    ASSERT(secret->magic == SECRET_MAGIC);
    secret->refused = true;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Returns the number of bytes read, at most `size`, or −errno. */
static ssize_t secret_read_bytes(int file, char *bytes, size_t size)
{
    size_t length = 0;
    while (length < size) {
        ssize_t got = read(file, bytes + length, size - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        length += (size_t)got;
    }
    return (ssize_t)length;
}

/* The length of the first line, or 0 with the reason. */
static size_t measure_line(const char *bytes, size_t length, const char **out_wrong)
{
    const char *end = memchr(bytes, '\n', length);
    size_t line = end != NULL ? (size_t)(end - bytes) : length;
    if (line > 0 && bytes[line - 1] == '\r')
        line--;
    if (line > SECRET_MAX)
        *out_wrong = "its first line is too long";
    else if (line == 0)
        *out_wrong = "its first line is empty";
    else if (memchr(bytes, '\0', line) != NULL)
        *out_wrong = "its first line is no text";
    else
        return line;
    return 0;
}

/* Returns NULL, or the reason of the failure. */
static const char *secret_read_file(struct secret *secret, int file, int64_t now_ms)
{
    char bytes[SECRET_MAX + 2];
    struct stat status;
    const char *wrong = NULL;
    if (fstat(file, &status) != 0)
        return strerror(errno);
    if (!S_ISREG(status.st_mode))
        return "it is no regular file";
    ssize_t length = secret_read_bytes(file, bytes, sizeof bytes);
    size_t line = length >= 0 ? measure_line(bytes, (size_t)length, &wrong) : 0;
    if (length < 0)
        wrong = strerror((int)-length);
    if (wrong == NULL) {
        explicit_bzero(secret->value, sizeof secret->value);
        memcpy(secret->value, bytes, line);
        secret->seen = status;
        secret->known = true;
        secret->refused = false;
        secret->read_at_ms = now_ms;
    }
    explicit_bzero(bytes, sizeof bytes);
    return wrong;
}

static const char *secret_reload(struct secret *secret, int64_t now_ms)
{
    /* O_NONBLOCK: if the path is a FIFO, open() must not wait for a writer. */
    int file = open(secret->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file < 0)
        return strerror(errno);
    const char *wrong = secret_read_file(secret, file, now_ms);
    (void)close(file);
    return wrong;
}

static bool is_fresh(const struct secret *secret, int64_t now_ms)
{
    struct stat status;
    return secret->known && !secret->refused && now_ms - secret->read_at_ms < RELOAD_MS &&
           stat(secret->path, &status) == 0 && is_same_file(&status, &secret->seen);
}

const char *secret_now(struct secret *secret, int64_t now_ms, struct text *why)
{
    ASSERT(secret->magic == SECRET_MAGIC);
    if (is_fresh(secret, now_ms))
        return secret->value;
    const char *wrong = secret_reload(secret, now_ms);
    if (wrong == NULL || (secret->known && !secret->refused))
        return secret->value;
    TEXT_JOIN(why, "cannot read the secret in ", secret->path, ": ", wrong);
    return NULL;
}
