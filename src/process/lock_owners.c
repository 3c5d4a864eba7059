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

static bool process_has_byte(const char *pid, const char *byte)
{
    char path[NAME_SIZE];
    (void)snprintf(path, sizeof path, "/proc/%.20s/fdinfo", pid);
    DIR *files = opendir(path);
    if (files == NULL)
        return false; /* it has ended, or belongs to another user */
    bool found = false;
    for (const struct dirent *entry = readdir(files); entry != NULL && !found;
         entry = readdir(files))
        found = entry->d_name[0] != '.' && file_has_byte(dirfd(files), entry->d_name, byte);
    (void)closedir(files);
    return found;
}

size_t lock_owners(uint64_t byte, int *out, size_t size)
{
    char number[NAME_SIZE];
    size_t count = 0;
    DIR *processes = opendir("/proc");
    if (processes == NULL)
        return 0;
    (void)snprintf(number, sizeof number, " %llu %llu", (unsigned long long)byte,
                   (unsigned long long)byte);
    for (const struct dirent *entry = readdir(processes); entry != NULL && count < size;
         entry = readdir(processes)) {
        bool process = entry->d_name[0] >= '1' && entry->d_name[0] <= '9';
        if (process && process_has_byte(entry->d_name, number))
            out[count++] = (int)strtol(entry->d_name, NULL, 10);
    }
    (void)closedir(processes);
    return count;
}
