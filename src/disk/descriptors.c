/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See descriptors.h. Keeps one list of all sets of the process under a mutex that fork() takes too,
 * so that no fork happens between an open and its entry, or between a close and its removal.
 */
#include "disk/descriptors.h"

#include "base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct list all;
static bool registered;

static void registry_lock(void)
{
    int result = pthread_mutex_lock(&mutex);
    ASSERT(result == 0);
}

static void registry_unlock(void)
{
    int result = pthread_mutex_unlock(&mutex);
    ASSERT(result == 0);
}

static void descriptors_close_all(struct descriptors *set)
{
    for (size_t i = 0; i < set->count; i++)
        (void)close(set->files[i]);
    set->count = 0;
}

static void close_in_child(void)
{
    for (struct list_node *node = all.first; node != NULL; node = node->next) {
        struct descriptors *set = LIST_ENTRY(node, struct descriptors, node);
        descriptors_close_all(set);
        atomic_store(&set->forked, true);
    }
    registry_unlock();
}

bool descriptors_init(struct descriptors *set)
{
    *set = (struct descriptors){0};
    registry_lock();
    registered = registered || pthread_atfork(registry_lock, registry_unlock, close_in_child) == 0;
    bool ready = registered;
    if (ready)
        list_prepend(&all, &set->node);
    registry_unlock();
    return ready;
}

void descriptors_done(struct descriptors *set)
{
    registry_lock();
    list_remove(&all, &set->node);
    descriptors_close_all(set);
    registry_unlock();
}

bool descriptors_are_forked(const struct descriptors *set)
{
    return atomic_load(&set->forked);
}

/* glibc 2.36 has no wrapper for openat2(). */
static int open_at(int folder, const char *name, int flags, mode_t mode)
{
    struct open_how how = {.flags = (unsigned)(flags | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY),
                           .mode = mode,
                           .resolve = RESOLVE_NO_SYMLINKS};
    long file = syscall(SYS_openat2, folder, name, &how, sizeof how);
    return file < 0 ? -errno : (int)file;
}

int descriptors_open(struct descriptors *set, int folder, const char *name, int flags, mode_t mode)
{
    int file;
    registry_lock();
    if (descriptors_are_forked(set))
        file = -EOWNERDEAD;
    else if (set->count == DESCRIPTORS_MOST)
        file = -EMFILE;
    else
        file = open_at(folder, name, flags, mode);
    if (file >= 0)
        set->files[set->count++] = file;
    registry_unlock();
    return file;
}

void descriptors_close(struct descriptors *set, int file)
{
    registry_lock();
    for (size_t i = 0; i < set->count; i++) {
        if (set->files[i] == file) {
            (void)close(file);
            set->files[i] = set->files[--set->count];
            break;
        }
    }
    registry_unlock();
}
