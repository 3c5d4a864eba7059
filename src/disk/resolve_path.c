/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See resolve_path.h. Walks along a path, one component at a time: `done` contains no link, `rest`
 * is not checked yet. The target of a link is prepended to `rest`.
 */
#include "disk/resolve_path.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LINKS_MOST = 40,  /* as in the kernel */
    PATH_SHOWN = 160, /* its tail; more would cut off the message */
};

struct walk {
    struct text done; /* empty: the root */
    char done_bytes[PATH_MAX];
    char rest[PATH_MAX];
    unsigned links;
};

bool path_refuse(struct text *why, const char *path, const char *message, int error)
{
    size_t length = strlen(path);
    if (length > PATH_SHOWN) {
        path += length - PATH_SHOWN;
        while ((*path & 0xc0) == 0x80) /* not from the middle of a character */
            path++;
        text_add(why, "...");
    }
    TEXT_JOIN(why, path, ": ", message);
    if (error != 0) {
        char reason[128];
        TEXT_JOIN(why, ": ", strerror_r(error, reason, sizeof reason));
    }
    return false;
}

static void truncate_done(struct text *done, size_t length)
{
    done->length = length;
    done->bytes[length] = '\0';
}

static void leave_folder(struct text *done)
{
    const char *slash = strrchr(done->bytes, '/');
    truncate_done(done, slash != NULL ? (size_t)(slash - done->bytes) : 0);
}

/* Replaces the link at the end of `done` by its target. */
static bool resolve_link(struct walk *walk, const struct stat *link, struct text *why)
{
    char target[PATH_MAX], joined[PATH_MAX];
    const char *at = walk->done.bytes;
    if (link->st_uid != 0 && link->st_uid != geteuid())
        return path_refuse(why, at, "a symbolic link of another user in the path", /* error= */ 0);
    if (++walk->links > LINKS_MOST)
        return path_refuse(why, at, "too many symbolic links", /* error= */ 0);
    ssize_t length = readlink(at, target, sizeof target - 1);
    if (length < 0)
        return path_refuse(why, at, "cannot read the symbolic link", errno);
    target[length] = '\0';
    struct text text;
    text_init(&text, joined, sizeof joined);
    TEXT_JOIN(&text, target, "/", walk->rest);
    if (text.cut)
        return path_refuse(why, at, "the path is too long", /* error= */ 0);
    text_copy(walk->rest, sizeof walk->rest, joined);
    if (target[0] == '/')
        truncate_done(&walk->done, 0);
    else
        leave_folder(&walk->done);
    return true;
}

/* Moves the first component of `rest` to `done`. */
static bool resolve_step(struct walk *walk, struct text *why)
{
    struct stat status;
    size_t length = strcspn(walk->rest, "/");
    size_t next = length + strspn(walk->rest + length, "/");
    bool stays = length == 0 || (length == 1 && walk->rest[0] == '.');
    bool back = length == 2 && memcmp(walk->rest, "..", 2) == 0;
    if (back)
        leave_folder(&walk->done);
    if (!stays && !back) {
        text_add(&walk->done, "/");
        text_add_bytes(&walk->done, walk->rest, length);
    }
    memmove(walk->rest, walk->rest + next, strlen(walk->rest + next) + 1);
    if (stays || back)
        return true;
    if (walk->done.cut)
        return path_refuse(why, walk->done.bytes, "the path is too long", /* error= */ 0);
    if (lstat(walk->done.bytes, &status) != 0)
        return path_refuse(why, walk->done.bytes, "cannot stat the folder", errno);
    return !S_ISLNK(status.st_mode) || resolve_link(walk, &status, why);
}

static bool resolve_folder(struct walk *walk, struct text *why)
{
    if (walk->rest[0] != '/') {
        if (getcwd(walk->done_bytes, sizeof walk->done_bytes) == NULL || walk->done_bytes[0] != '/')
            return path_refuse(why, walk->rest, "the current folder is gone", /* error= */ 0);
        walk->done.length = strlen(walk->done_bytes);
        if (walk->done.length == 1)
            truncate_done(&walk->done, 0);
    }
    while (walk->rest[0] != '\0')
        if (!resolve_step(walk, why))
            return false;
    return true;
}

bool resolve_path(struct resolved_path *out, const char *path, struct text *why)
{
    struct walk walk = {0};
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return path_refuse(why, path, "names no file", /* error= */ 0);
    if (strlen(name) > RESOLVED_NAME_MAX)
        return path_refuse(why, path, "the file's name is too long", /* error= */ 0);
    if (strlen(path) >= sizeof walk.rest)
        return path_refuse(why, path, "the path is too long", /* error= */ 0);
    memcpy(walk.rest, path, (size_t)(name - path));
    text_init(&walk.done, walk.done_bytes, sizeof walk.done_bytes);
    if (!resolve_folder(&walk, why))
        return false;
    text_copy(out->folder, sizeof out->folder, walk.done.length > 0 ? walk.done.bytes : "/");
    text_copy(out->name, sizeof out->name, name);
    return true;
}
