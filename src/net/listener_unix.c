/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens a listening unix socket; see listener.h. The owner of the lock on PATH.lock owns PATH: it
 * alone removes a stale socket and binds its own. Only the owner removes the lock file, as its last
 * act, so a process that locked a removed file starts again.
 */
#include "net/listener_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { UNIX_BACKLOG = 4096, LOCK_TRIES = 100 };

static bool unix_lock_path(const char *path, char *out, size_t size)
{
    struct text text;
    text_init(&text, out, size);
    TEXT_JOIN(&text, path, ".lock");
    return !text.cut;
}

static enum listener_unix_result unix_fail(struct text *why, const char *path, const char *what)
{
    TEXT_JOIN(why, path, ": cannot listen: ", what);
    return LISTENER_FAILED;
}

static enum listener_unix_result unix_in_use(struct text *why, const char *path)
{
    TEXT_JOIN(why, path, ": another process listens there");
    return LISTENER_IN_USE;
}

static bool unix_is_same(int file, const char *name)
{
    struct stat ours, current;
    return fstat(file, &ours) == 0 && lstat(name, &current) == 0 && ours.st_dev == current.st_dev &&
           ours.st_ino == current.st_ino;
}

/* Locks the file beside the socket, which lasts as long as the listener. */
static enum listener_unix_result unix_lock(const char *path, int *out_lock, struct text *why)
{
    char name[sizeof(struct sockaddr_un) + sizeof ".lock"];
    if (!unix_lock_path(path, name, sizeof name))
        return unix_fail(why, path, strerror(ENAMETOOLONG));
    for (int i = 0; i < LOCK_TRIES; i++) {
        int file = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        if (file < 0)
            return unix_fail(why, name, strerror(errno));
        if (flock(file, LOCK_EX | LOCK_NB) != 0) {
            int error = errno;
            (void)close(file);
            return error == EWOULDBLOCK ? unix_in_use(why, path)
                                        : unix_fail(why, name, strerror(error));
        }
        if (unix_is_same(file, name)) {
            *out_lock = file;
            return LISTENER_OPEN;
        }
        (void)close(file); /* its owner has removed it meanwhile */
    }
    return unix_in_use(why, path);
}

/* Whether a process accepts at the socket file: LISTENER_OPEN means that none does. */
static enum listener_unix_result unix_probe(const struct sockaddr_un *address, struct text *why)
{
    int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (file < 0)
        return unix_fail(why, address->sun_path, strerror(errno));
    int error = connect(file, (const struct sockaddr *)address, sizeof *address) == 0 ? 0 : errno;
    (void)close(file);
    if (error == 0 || error == EAGAIN || error == EINPROGRESS) /* EAGAIN: its backlog is full */
        return unix_in_use(why, address->sun_path);
    if (error == ECONNREFUSED || error == ENOENT)
        return LISTENER_OPEN;
    return unix_fail(why, address->sun_path, strerror(error));
}

/* Removes a stale socket file; with the lock only. */
static enum listener_unix_result unix_clear(const struct sockaddr_un *address, struct text *why)
{
    struct stat file;
    if (lstat(address->sun_path, &file) != 0)
        return errno == ENOENT ? LISTENER_OPEN : unix_fail(why, address->sun_path, strerror(errno));
    if (!S_ISSOCK(file.st_mode))
        return unix_fail(why, address->sun_path, "the file is not a socket; choose another path");
    enum listener_unix_result result = unix_probe(address, why);
    if (result == LISTENER_OPEN && unlink(address->sun_path) != 0 && errno != ENOENT)
        return unix_fail(why, address->sun_path, strerror(errno));
    return result;
}

/* Returns the socket, or -1 with errno. */
static int unix_bind(const struct sockaddr_un *address, unsigned mode)
{
    int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (file < 0)
        return -1;
    /* The mode of an unbound socket becomes that of its file: no moment with a wider one. */
    if (fchmod(file, mode & 0600) == 0 &&
        bind(file, (const struct sockaddr *)address, sizeof *address) == 0) {
        /* A wider one comes afterwards, because the umask would narrow it. */
        if ((mode == (mode & 0600) || chmod(address->sun_path, mode) == 0) &&
            listen(file, UNIX_BACKLOG) == 0)
            return file;
        int error = errno;
        (void)unlink(address->sun_path);
        errno = error;
    }
    int error = errno;
    (void)close(file);
    errno = error;
    return -1;
}

static void unix_unlock(const char *path, int lock)
{
    char name[sizeof(struct sockaddr_un) + sizeof ".lock"];
    if (lock < 0)
        return;
    if (unix_lock_path(path, name, sizeof name) && unix_is_same(lock, name))
        (void)unlink(name);
    (void)close(lock);
}

static bool unix_own(struct listener *listener, const char *path, int lock)
{
    struct stat file;
    listener->path = strdup(path);
    if (listener->path == NULL || lstat(path, &file) != 0)
        return false;
    listener->device = file.st_dev;
    listener->inode = file.st_ino;
    listener->lock = lock;
    return true;
}

enum listener_unix_result listener_open_unix(struct poller *poller, const char *path, unsigned mode,
                                             const struct listener_callbacks *callbacks,
                                             struct listener **out, struct text *why)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct listener *listener = NULL;
    int lock = -1;
    if (path[0] == '\0' || strlen(path) >= sizeof address.sun_path)
        return unix_fail(why, path, "the path is empty or too long for a unix socket");
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    enum listener_unix_result result = unix_lock(path, &lock, why);
    if (result == LISTENER_OPEN)
        result = unix_clear(&address, why);
    if (result == LISTENER_OPEN) {
        int file = unix_bind(&address, mode);
        if (file >= 0)
            listener = listener_new(poller, file, callbacks);
        if (listener == NULL || !unix_own(listener, path, lock)) {
            result = unix_fail(why, path, strerror(errno));
            if (file >= 0)
                (void)unlink(path);
        }
    }
    if (result != LISTENER_OPEN) {
        listener_free(&listener);
        unix_unlock(path, lock);
        return result;
    }
    *out = listener;
    return LISTENER_OPEN;
}

void listener_remove_path(struct listener *listener)
{
    struct stat file;
    if (listener->lock >= 0) {
        if (lstat(listener->path, &file) == 0 && file.st_dev == listener->device &&
            file.st_ino == listener->inode)
            (void)unlink(listener->path);
        unix_unlock(listener->path, listener->lock);
        listener->lock = -1;
    }
    free(listener->path);
    listener->path = NULL;
}
