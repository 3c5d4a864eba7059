/* SPDX-License-Identifier: Apache-2.0 */
/* See usage.h. */
#include "process/usage.h"

#include "process/host.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define US_PER_SECOND ((uint64_t)1000000)
#define US_PER_MS     ((uint64_t)1000)

/* Of /proc/self/stat, counted from the field after the name of the program. */
enum { STAT_STARTED = 19, STAT_VIRTUAL = 20, STAT_RESIDENT = 21 };

/* The whole file, as text; its length, 0 if it cannot be read. */
static size_t usage_read_file(const char *path, char *out, size_t size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file >= 0 ? read(file, out, size - 1) : 0;
    if (file >= 0)
        (void)close(file);
    out[length > 0 ? length : 0] = '\0';
    return length > 0 ? (size_t)length : 0;
}

static uint64_t usage_field(const char *fields, int number)
{
    for (int i = 0; i < number && fields != NULL; i++) {
        fields = strchr(fields, ' ');
        fields = fields != NULL ? fields + 1 : NULL;
    }
    return fields != NULL ? strtoull(fields, NULL, 10) : 0;
}

/* The name of the program may contain spaces and parentheses. */
static void usage_read_stat(struct usage *out)
{
    char bytes[1024];
    const char *name_end = NULL;
    if (usage_read_file("/proc/self/stat", bytes, sizeof bytes) > 0)
        name_end = strrchr(bytes, ')');
    if (name_end == NULL || name_end[1] == '\0')
        return;
    const char *fields = name_end + 2;
    uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK), page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t since_boot_us = usage_field(fields, STAT_STARTED) * US_PER_SECOND / ticks;
    out->virtual_bytes = usage_field(fields, STAT_VIRTUAL);
    out->resident_bytes = usage_field(fields, STAT_RESIDENT) * page;
    uint64_t booted_us =
        (uint64_t)host_wall_ms() * US_PER_MS - (uint64_t)host_boot_ms() * US_PER_MS;
    out->started_us = booted_us + since_boot_us;
}

void usage_read(struct usage *out)
{
    struct rusage used;
    struct rlimit files;
    *out = (struct usage){0};
    usage_read_stat(out);
    if (getrusage(RUSAGE_SELF, &used) == 0)
        out->cpu_us = (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * US_PER_SECOND +
                      (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        out->files_max = files.rlim_cur;
}

static int usage_is_file(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

size_t usage_count_files(void)
{
    struct stat info;
    struct dirent **entries = NULL;
    if (stat("/proc/self/fd", &info) == 0 && info.st_size > 0)
        return (size_t)info.st_size;
    int count = scandir("/proc/self/fd", &entries, usage_is_file, alphasort);
    for (int i = 0; entries != NULL && i < count; i++)
        free(entries[i]);
    free(entries);
    return count > 1 ? (size_t)count - 1 : 0; /* without the folder itself */
}
