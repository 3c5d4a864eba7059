/* SPDX-License-Identifier: Apache-2.0 */
/* See library.h. */
#include "process/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY_REFUSE(library, ...) \
    ((void)snprintf((library)->error, sizeof(library)->error, __VA_ARGS__))

static void library_try(struct library *library)
{
    void *handle = dlopen(library->file, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        LIBRARY_REFUSE(library, "cannot load %s; install %s", library->file, library->package);
        return;
    }
    for (size_t i = 0; i < library->count; i++) {
        void *call = dlsym(handle, library->names[i]);
        if (call == NULL) {
            LIBRARY_REFUSE(library, "%s has no function %s; install a newer %s", library->file,
                           library->names[i], library->package);
            return;
        }
        /* C has no cast from data to function pointers. */
        memcpy((char *)library->calls + i * sizeof call, &call, sizeof call);
    }
    if (library->start != NULL && !library->start())
        LIBRARY_REFUSE(library, "%s of the package %s cannot be initialised", library->file,
                       library->package);
}

const char *library_load(struct library *library)
{
    (void)pthread_mutex_lock(&library->lock);
    if (!library->tried)
        library_try(library);
    library->tried = true;
    (void)pthread_mutex_unlock(&library->lock);
    return library->error[0] != '\0' ? library->error : NULL;
}
