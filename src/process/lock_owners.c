/* SPDX-License-Identifier: Apache-2.0 */
/* See lock_owners.h. The kernel lists the locks of each open file in /proc/PID/fdinfo/FD. */
#include "process/lock_owners.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_SIZE = 64, INFO_SIZE = 4096 };

/* "lock:\t1: OFDLCK  ADVISORY  WRITE -1 08:01:1234 FIRST LAST" */
static bool info_has_byte(const char *info, const char *byte)
{
    for (const char *line = strstr(info, "lock:"); line != NULL; line = strstr(line + 1, "lock:")) {
        size_t length = strcspn(line, "\n");
        const char *found = memmem(line, length, byte, strlen(byte));
        if (found != NULL)
            return true;
    }
    return false;
}

static bool file_has_byte(int folder, const char *name, const char *byte)
{
    char info[INFO_SIZE];
    int file = openat(folder, name, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t length = read(file, info, sizeof info - 1);
    (void)close(file);
    if (length <= 0)
        return false;
    info[length] = '\0';
    return info_has_byte(info, byte);
}

static int is_number(const struct dirent *entry)
{
    return entry->d_name[strspn(entry->d_name, "0123456789")] == '\0';
}

static bool process_has_byte(const char *pid, const char *byte)
{
    char path[NAME_SIZE];
    bool found = false;
    struct dirent **files = NULL;
    (void)snprintf(path, sizeof path, "/proc/%.20s/fdinfo", pid);
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return false; /* it has ended, or belongs to another user */
    int count = scandirat(folder, ".", &files, is_number, NULL);
    for (int i = 0; i < count; i++) {
        found = found || file_has_byte(folder, files[i]->d_name, byte);
        free(files[i]);
    }
    free(files);
    (void)close(folder);
    return found;
}

size_t lock_owners(uint64_t byte, int *out, size_t size)
{
    char number[NAME_SIZE];
    size_t found = 0;
    struct dirent **processes = NULL;
    (void)snprintf(number, sizeof number, " %llu %llu", (unsigned long long)byte,
                   (unsigned long long)byte);
    int count = scandirat(AT_FDCWD, "/proc", &processes, is_number, versionsort);
    for (int i = 0; i < count; i++) {
        if (found < size && process_has_byte(processes[i]->d_name, number))
            out[found++] = (int)strtol(processes[i]->d_name, NULL, 10);
        free(processes[i]);
    }
    free(processes);
    return found;
}
