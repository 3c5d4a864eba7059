/* SPDX-License-Identifier: Apache-2.0 */
/* See disk_probe.h. */
#include "disk/disk_probe.h"

#include "disk/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static void probe_file_system(struct disk_probe *out, const struct statfs *system)
{
    out->file_system_type = (uint32_t)system->f_type;
    out->file_system = folder_file_system((uint32_t)system->f_type, &out->file_system_trusted);
    /* Some blocks are reserved for root. */
    uint64_t blocks = geteuid() == 0 ? system->f_bfree : system->f_bavail;
    out->room = blocks * (uint64_t)system->f_bsize;
}

/* Checks whether the missing folder can be created in its nearest existing ancestor. */
static void probe_parent(struct disk_probe *out)
{
    struct stat status;
    struct statfs system;
    (void)snprintf(out->above, sizeof out->above, "%s", out->folder);
    while (lstat(out->above, &status) != 0 && errno == ENOENT) {
        char *slash = strrchr(out->above, '/');
        if (slash == NULL || slash[1] == '\0')
            break;
        slash[slash == out->above ? 1 : 0] = '\0';
    }
    bool fine = stat(out->above, &status) == 0 && statfs(out->above, &system) == 0;
    if (fine && !S_ISDIR(status.st_mode)) {
        errno = ENOTDIR;
        fine = false;
    }
    out->can_be_made = fine && faccessat(AT_FDCWD, out->above, W_OK | X_OK, AT_EACCESS) == 0;
    out->above_error = out->can_be_made ? 0 : errno;
    if (fine)
        probe_file_system(out, &system);
}

void disk_probe_read(struct disk_probe *out, const char *path)
{
    struct stat status;
    struct statfs system;
    const char *slash = strrchr(path, '/');
    *out = (struct disk_probe){.folder = "."};
    if (slash != NULL)
        (void)snprintf(out->folder, sizeof out->folder, "%.*s",
                       slash == path ? 1 : (int)(slash - path), path);
    if (stat(out->folder, &status) != 0 || statfs(out->folder, &system) != 0) {
        out->folder_error = errno;
        if (errno == ENOENT)
            probe_parent(out);
        return;
    }
    if (!S_ISDIR(status.st_mode))
        out->folder_error = ENOTDIR;
    out->file_is_there = lstat(path, &status) == 0;
    probe_file_system(out, &system);
}

char process_state(uint32_t pid, char *out_name, size_t size)
{
    char path[64], line[512], state = 0;
    (void)snprintf(path, sizeof path, "/proc/%u/stat", (unsigned)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    size_t length = fread(line, 1, sizeof line - 1, file);
    (void)fclose(file);
    line[length] = '\0';
    /* "PID (NAME) STATE …", where the name may contain any character. */
    const char *open = strchr(line, '('), *close = strrchr(line, ')');
    if (open != NULL && close != NULL && close > open && close[1] == ' ') {
        state = close[2];
        (void)snprintf(out_name, size, "%.*s", (int)(close - open - 1), open + 1);
    }
    return state;
}
