/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See observed.h. One line for each store, the newest last: a hash and four numbers. The file is
 * replaced by a rename, and its content is not trusted: lines that are none of ours are dropped.
 */
#include "face/cli/observed.h"

#include "base/sha256.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ID_SIZE = 33, STORES_MAX = 64, FILE_MODE = 0600, LINE_MAX_SIZE = 128 };

struct observed_line {
    char id[ID_SIZE];
    struct observed seen;
};

struct observed_file {
    size_t count;
    struct observed_line lines[STORES_MAX];
};

static bool observed_path(const char *suffix, char out[PATH_MAX])
{
    if (!default_store_path(geteuid() == 0, out, PATH_MAX))
        return false;
    char *name = strrchr(out, '/') + 1;
    size_t left = PATH_MAX - (size_t)(name - out);
    return (size_t)snprintf(name, left, "observed%s", suffix) < left;
}

/* The same URL can lead to other stores: `kept` names the server too, where the URL does not. */
static void observed_id(const struct context *context, const struct lh_epoch *current,
                        char out[ID_SIZE])
{
    char names[URL_SIZE + LH_NAME_SIZE + 1], hex[SHA256_HEX + 1];
    int length = snprintf(names, sizeof names, "%s\n%s", context->shown, current->kept);
    sha256_hex(names, (size_t)length, hex);
    (void)snprintf(out, ID_SIZE, "%.*s", ID_SIZE - 1, hex);
}

static bool observed_read_line(const char *text, struct observed_line *out)
{
    int end = -1;
    struct observed *seen = &out->seen;
    /* NOLINTNEXTLINE(cert-err34-c): a number that overflows is only a wrong notice */
    int fields = sscanf(text, "%32[0-9a-f] %" SCNu64 " %" SCNu64 " %" SCNd64 " %" SCNd64 "%n",
                        out->id, &seen->epoch, &seen->revision, &seen->now_ms, &seen->at_ms, &end);
    return fields == 5 && text[end] == '\n' && strlen(out->id) == ID_SIZE - 1;
}

static void observed_load(struct observed_file *file)
{
    char path[PATH_MAX], text[LINE_MAX_SIZE];
    int from = observed_path("", path) ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    FILE *stream = from >= 0 ? fdopen(from, "r") : NULL;
    file->count = 0;
    if (stream == NULL && from >= 0)
        (void)close(from);
    if (stream == NULL)
        return;
    while (file->count < STORES_MAX && fgets(text, sizeof text, stream) != NULL)
        file->count += observed_read_line(text, &file->lines[file->count]) ? 1 : 0;
    (void)fclose(stream);
}

static struct observed_line *observed_line_of(struct observed_file *file, const char *id)
{
    for (size_t i = 0; i < file->count; i++)
        if (strcmp(file->lines[i].id, id) == 0)
            return &file->lines[i];
    return NULL;
}

bool observed_find(const struct context *context, const struct lh_epoch *current,
                   struct observed *out)
{
    struct observed_file file;
    char id[ID_SIZE];
    observed_load(&file);
    observed_id(context, current, id);
    const struct observed_line *line = observed_line_of(&file, id);
    if (line != NULL)
        *out = line->seen;
    return line != NULL;
}

/* Frees a place for one more line: its own, or that of the store not seen for longest. */
static void observed_drop(struct observed_file *file, const char *id)
{
    struct observed_line *line = observed_line_of(file, id);
    if (line == NULL && file->count == STORES_MAX)
        line = &file->lines[0];
    if (line == NULL)
        return;
    file->count--;
    memmove(line, line + 1, (size_t)(&file->lines[file->count] - line) * sizeof *line);
}

static bool observed_write(const struct observed_file *file, const char *path)
{
    int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
    FILE *stream = to >= 0 ? fdopen(to, "w") : NULL;
    if (stream == NULL && to >= 0)
        (void)close(to);
    if (stream == NULL)
        return false;
    for (size_t i = 0; i < file->count; i++) {
        const struct observed *seen = &file->lines[i].seen;
        (void)fprintf(stream, "%s %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 "\n",
                      file->lines[i].id, seen->epoch, seen->revision, seen->now_ms, seen->at_ms);
    }
    bool written = ferror(stream) == 0;
    return fclose(stream) == 0 && written;
}

void observed_keep(const struct context *context, const struct lh_epoch *current)
{
    struct observed_file file;
    char path[PATH_MAX], fresh[PATH_MAX], suffix[32];
    (void)snprintf(suffix, sizeof suffix, ".%ld", (long)getpid());
    if (!observed_path("", path) || !observed_path(suffix, fresh))
        return;
    struct observed_line line = {.seen = {.epoch = current->epoch,
                                          .revision = current->revision,
                                          .now_ms = current->now_ms,
                                          .at_ms = wall_clock_ms()}};
    observed_id(context, current, line.id);
    observed_load(&file);
    const struct observed_line *before = observed_line_of(&file, line.id);
    if (current->revision == 0 && before != NULL) /* unknown now */
        line.seen.revision = before->seen.revision;
    observed_drop(&file, line.id);
    file.lines[file.count++] = line;
    (void)unlink(fresh); /* of a process with our id that died here */
    if (!observed_write(&file, fresh) || rename(fresh, path) != 0)
        (void)unlink(fresh);
}
