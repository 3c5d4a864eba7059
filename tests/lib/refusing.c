/* SPDX-License-Identifier: Apache-2.0 */
/* See refusing.h. What was not refused comes from the sanitizer where there is one. */
#include "refusing.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that those libraries give them */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *before, size_t size);
__attribute__((weak)) void *__interceptor_malloc(size_t size);
__attribute__((weak)) void *__interceptor_calloc(size_t count, size_t size);
__attribute__((weak)) void *__interceptor_realloc(void *before, size_t size);
/* NOLINTEND(bugprone-reserved-identifier) */

/* Not before a thread's first line: what the sanitizer does there is its own affair. */
static _Thread_local bool counts_here;
static atomic_bool counting, all_from_there;
static atomic_ulong asked, refused, refuse_at;

void refusing_here(bool counts)
{
    counts_here = counts;
}

void refusing_begin(unsigned long nth, bool from_then_on)
{
    atomic_store(&asked, 0);
    atomic_store(&refused, 0);
    atomic_store(&refuse_at, nth);
    atomic_store(&all_from_there, from_then_on);
    atomic_store(&counting, true);
}

unsigned long refusing_end(unsigned long *out_refused)
{
    atomic_store(&counting, false);
    *out_refused = atomic_load(&refused);
    return atomic_load(&asked);
}

static bool is_refused(void)
{
    if (!counts_here || !atomic_load(&counting))
        return false;
    unsigned long number = atomic_fetch_add(&asked, 1) + 1, at = atomic_load(&refuse_at);
    if (at == 0 || number < at || (number > at && !atomic_load(&all_from_there)))
        return false;
    atomic_fetch_add(&refused, 1);
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    if (is_refused())
        return NULL;
    return __interceptor_malloc != NULL ? __interceptor_malloc(size) : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    if (is_refused())
        return NULL;
    return __interceptor_calloc != NULL ? __interceptor_calloc(count, size)
                                        : __libc_calloc(count, size);
}

void *realloc(void *before, size_t size)
{
    if (is_refused())
        return NULL;
    return __interceptor_realloc != NULL ? __interceptor_realloc(before, size)
                                         : __libc_realloc(before, size);
}

/* The sanitizer's would not come through here. */
char *strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    return copy != NULL ? memcpy(copy, text, size) : NULL;
}

/* Pages are memory, too. */
void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset)
{
    if (is_refused())
        return MAP_FAILED;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): it is an address */
    return (void *)syscall(SYS_mmap, address, length, protection, flags, file, offset);
}

struct beginning {
    void *(*start)(void *argument);
    void *argument;
    bool counts;
};

static void *begin_thread(void *argument)
{
    struct beginning beginning = *(struct beginning *)argument;
    free(argument);
    counts_here = beginning.counts;
    return beginning.start(beginning.argument);
}

/* A thread is one allocation, whatever it takes. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                   void *(*start)(void *argument), void *argument)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (is_refused())
        return EAGAIN;
    bool counted = counts_here;
    counts_here = false;
    struct beginning *beginning = malloc(sizeof *beginning);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    *beginning = (struct beginning){start, argument, counted};
    int result = real(thread, attributes, begin_thread, beginning);
    if (result != 0)
        free(beginning);
    counts_here = counted;
    return result;
}
