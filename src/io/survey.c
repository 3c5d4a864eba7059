/* SPDX-License-Identifier: Apache-2.0 */
/* See survey.h. */
#include "io/survey.h"

#include "io/folder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

void survey_look(struct survey *out, const char *path)
{
    struct stat status;
    struct statfs system;
    const char *slash = strrchr(path, '/');
    *out = (struct survey){.folder = "."};
    if (slash != NULL)
        (void)snprintf(out->folder, sizeof out->folder, "%.*s",
                       slash == path ? 1 : (int)(slash - path), path);
    if (stat(out->folder, &status) != 0 || statfs(out->folder, &system) != 0) {
        out->folder_error = errno;
        return;
    }
    if (!S_ISDIR(status.st_mode))
        out->folder_error = ENOTDIR;
    out->file_is_there = lstat(path, &status) == 0;
    out->file_system_type = (uint32_t)system.f_type;
    out->file_system = folder_file_system((uint32_t)system.f_type, &out->file_system_trusted);
    out->room = (uint64_t)system.f_bavail * (uint64_t)system.f_bsize;
}

char survey_process(uint32_t pid, char *out_name, size_t size)
{
    char path[64], line[512], state = 0;
    (void)snprintf(path, sizeof path, "/proc/%u/stat", (unsigned)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    size_t length = fread(line, 1, sizeof line - 1, file);
    (void)fclose(file);
    line[length] = '\0';
    /* "PID (NAME) STATE …", where the name may hold anything. */
    const char *open = strchr(line, '('), *close = strrchr(line, ')');
    if (open != NULL && close != NULL && close > open && close[1] == ' ') {
        state = close[2];
        (void)snprintf(out_name, size, "%.*s", (int)(close - open - 1), open + 1);
    }
    return state;
}
