/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See host.h. Reads the ids of the host from /proc and /etc. Caches the offset of the time
 * namespace until a fork, because unshare() moves only children into a new time namespace.
 */
#include "process/host.h"

#include "base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { FILE_MOST = 256, MS_PER_SECOND = 1000, NS_PER_MS = 1000000, NS_PER_US = 1000 };

static const char no_proc[] = "cannot identify the boot: cannot read /proc; is it mounted?";

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_bool known;
static _Atomic int64_t offset_ns;

static void host_forget_offset(void)
{
    atomic_store(&known, false);
}

static void watch_forks(void)
{
    int result = pthread_atfork(NULL, NULL, host_forget_offset);
    ASSERT(result == 0);
}

/* Reads the start of the file as text; false if it cannot be read. */
static bool read_text(const char *path, char *out, size_t size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t count = read(file, out, size - 1);
    out[count > 0 ? count : 0] = '\0';
    (void)close(file);
    return count > 0;
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = c != '\0' ? strchr(digits, c) : NULL;
    return found != NULL ? (int)(found - digits) : -1;
}

/* Parses 32 hex digits; ignores dashes between them. */
static bool parse_id(const char *content, unsigned char *out)
{
    unsigned char id[HOST_ID] = {0};
    size_t count = 0;
    for (; *content != '\0' && *content != '\n'; content++) {
        int digit = hex_digit(*content);
        if (*content == '-')
            continue;
        if (digit < 0 || count == 2 * sizeof id)
            return false;
        id[count / 2] = (unsigned char)(id[count / 2] << 4 | digit);
        count++;
    }
    if (count != 2 * sizeof id)
        return false;
    memcpy(out, id, sizeof id);
    return true;
}

static void read_machine(unsigned char *out)
{
    static const char *const paths[] = {"/etc/machine-id", "/var/lib/dbus/machine-id"};
    char content[FILE_MOST];
    memset(out, 0, HOST_ID);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (read_text(paths[i], content, sizeof content) && parse_id(content, out))
            return;
}

/* The line is "boottime SECONDS NANOSECONDS", relative to the host's initial namespace. */
static bool parse_offset(const char *content, int64_t *out_ns)
{
    static const char clock[] = "boottime";
    const char *at = strstr(content, clock);
    char *end = NULL;
    if (at == NULL)
        return false;
    at += sizeof clock - 1;
    long long seconds = strtoll(at, &end, /* base= */ 10);
    if (end == at)
        return false;
    at = end;
    long long nanoseconds = strtoll(at, &end, /* base= */ 10);
    if (end == at || seconds > INT64_MAX / 2000000000 || seconds < -INT64_MAX / 2000000000)
        return false;
    *out_ns = seconds * MS_PER_SECOND * NS_PER_MS + nanoseconds;
    return true;
}

static bool read_link(const char *path, char *out, size_t size)
{
    ssize_t length = readlink(path, out, size - 1);
    out[length > 0 ? length : 0] = '\0';
    return length > 0;
}

static bool read_offset(int64_t *out_ns, struct text *why)
{
    char content[FILE_MOST], ours[FILE_MOST], for_children[FILE_MOST];
    if (!read_text("/proc/self/timens_offsets", content, sizeof content)) {
        /* A kernel without time namespaces still has this folder. */
        if (errno == ENOENT && access("/proc/self/ns", F_OK) == 0) {
            *out_ns = 0;
            return true;
        }
        text_add(why, no_proc);
        return false;
    }
    /* The file describes the namespace of future children, which may differ from ours. */
    if (!read_link("/proc/self/ns/time", ours, sizeof ours) ||
        !read_link("/proc/self/ns/time_for_children", for_children, sizeof for_children) ||
        !parse_offset(content, out_ns)) {
        text_add(why, "cannot read the offset of the time namespace in /proc/self");
        return false;
    }
    if (strcmp(ours, for_children) != 0) {
        text_add(why, "this process has left its time namespace without entering the new one; "
                      "start leasehold in a child of it");
        return false;
    }
    return true;
}

static bool load_offset(struct text *why)
{
    int64_t offset = 0;
    if (atomic_load(&known))
        return true;
    (void)pthread_once(&once, watch_forks);
    if (!read_offset(&offset, why))
        return false;
    atomic_store(&offset_ns, offset);
    atomic_store(&known, true);
    return true;
}

bool host_read(struct host_ids *out, struct text *why)
{
    struct host_ids ids;
    char content[FILE_MOST];
    if (!read_text("/proc/sys/kernel/random/boot_id", content, sizeof content) ||
        !parse_id(content, ids.boot)) {
        text_add(why, no_proc);
        return false;
    }
    host_forget_offset(); /* the caller may have changed its namespace since */
    if (!load_offset(why))
        return false;
    read_machine(ids.machine);
    *out = ids;
    return true;
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now = {0};
    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * MS_PER_SECOND * NS_PER_MS + now.tv_nsec;
}

static int64_t boot_ns(void)
{
    (void)load_offset(NULL);
    return clock_ns(CLOCK_BOOTTIME) - atomic_load(&offset_ns);
}

int64_t host_boot_ms(void)
{
    return boot_ns() / NS_PER_MS;
}

int64_t host_boot_us(void)
{
    return boot_ns() / NS_PER_US;
}

int64_t host_wall_ms(void)
{
    return clock_ns(CLOCK_REALTIME) / NS_PER_MS;
}

void host_set_timer(int timer, int64_t at_ms)
{
    struct itimerspec when = {0};
    if (at_ms != INT64_MAX) {
        /* Relative, not absolute: the clock of a time namespace may have an offset. */
        int64_t left_ms = at_ms - host_boot_ms();
        when.it_value.tv_sec = left_ms > 0 ? left_ms / MS_PER_SECOND : 0;
        when.it_value.tv_nsec = left_ms > 0 ? left_ms % MS_PER_SECOND * NS_PER_MS : 1;
    }
    int result = timerfd_settime(timer, /* flags= */ 0, &when, NULL);
    ASSERT(result == 0);
}
