/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shared library that is loaded when it is first needed, so that programs that never need it do
 * not load it and its dependencies at every start. It is never unloaded: libraries that it depends
 * on have exit handlers.
 */
#ifndef LEASEHOLD_PROCESS_LIBRARY_H
#define LEASEHOLD_PROCESS_LIBRARY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct library {
    const char *file, *package; /* "libcurl.so.4" of the package "libcurl4" */
    const char *const *names;   /* its functions */
    size_t count;
    void *calls;         /* a struct of `count` function pointers in the same order */
    bool (*start)(void); /* initialises it once all functions are found; NULL: nothing to do */
    pthread_mutex_t lock;
    bool tried;
    char error[160];
};

#define LIBRARY_LOCK .lock = PTHREAD_MUTEX_INITIALIZER

/* NULL if the library is loaded, or the error text, which names the package to install. Any thread
 * may call it; only the first call tries. */
const char *library_load(struct library *library);

#endif
