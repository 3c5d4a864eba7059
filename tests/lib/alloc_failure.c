/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See alloc_failure.h. Allocations that are not refused go to the sanitizer, if there is one.
 * Parameters are named as in the system's headers.
 */
#include "alloc_failure.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *plain_malloc(size_t size) __asm__("__libc_malloc");
void *plain_calloc(size_t count, size_t size) __asm__("__libc_calloc");
void *plain_realloc(void *before, size_t size) __asm__("__libc_realloc");
__attribute__((weak)) void *checked_malloc(size_t size) __asm__("__interceptor_malloc");
__attribute__((weak)) void *checked_calloc(size_t n, size_t size) __asm__("__interceptor_calloc");
__attribute__((weak)) void *checked_realloc(void *p, size_t size) __asm__("__interceptor_realloc");

/* Set by the thread itself: allocations of the sanitizer before that do not count. */
static _Thread_local bool counts_here;
static atomic_bool counting, all_from_there;
static atomic_ulong asked, refused, refuse_at;

void alloc_failure_here(bool counts)
{
    counts_here = counts;
}

void alloc_failure_begin(unsigned long nth, bool from_then_on)
{
    atomic_store(&asked, 0);
    atomic_store(&refused, 0);
    atomic_store(&refuse_at, nth);
    atomic_store(&all_from_there, from_then_on);
    atomic_store(&counting, true);
}

unsigned long alloc_failure_end(unsigned long *out_refused)
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
    return checked_malloc != NULL ? checked_malloc(size) : plain_malloc(size);
}

void *calloc(size_t nmemb, size_t size)
{
    if (is_refused())
        return NULL;
    return checked_calloc != NULL ? checked_calloc(nmemb, size) : plain_calloc(nmemb, size);
}

void *realloc(void *ptr, size_t size)
{
    if (is_refused())
        return NULL;
    return checked_realloc != NULL ? checked_realloc(ptr, size) : plain_realloc(ptr, size);
}

/* The sanitizer's strdup() would bypass malloc() above. */
char *strdup(const char *s)
{
    size_t size = strlen(s) + 1;
    char *copy = malloc(size);
    return copy != NULL ? memcpy(copy, s, size) : NULL;
}

/* Pages are memory, too. */
void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
    if (is_refused())
        return MAP_FAILED;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): it is an address */
    return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
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

/* A thread counts as one allocation. */
int pthread_create(pthread_t *newthread, const pthread_attr_t *attr,
                   void *(*start_routine)(void *argument), void *arg)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (is_refused())
        return EAGAIN;
    bool counted = counts_here;
    counts_here = false;
    struct beginning *beginning = malloc(sizeof *beginning);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    *beginning = (struct beginning){start_routine, arg, counted};
    int result = real(newthread, attr, begin_thread, beginning);
    if (result != 0)
        free(beginning);
    counts_here = counted;
    return result;
}
