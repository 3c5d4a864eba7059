/* SPDX-License-Identifier: Apache-2.0 */
/* See curl.h. libcurl is never unloaded: libraries that it depends on have exit handlers. */
#include "http/curl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static struct curl_calls calls;
static bool loaded;

static bool curl_find(void *library, const char *name, void *out_call)
{
    void *call = dlsym(library, name);
    memcpy(out_call, &call, sizeof call); /* C has no cast from data to function pointers */
    return call != NULL;
}

static void curl_load_once(void)
{
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return;
#define FIND(name) &&curl_find(library, "curl_" #name, (void *)&calls.name)
    loaded = true CURL_CALLS(FIND) && calls.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
#undef FIND
}

const struct curl_calls *curl_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, curl_load_once);
    return loaded ? &calls : NULL;
}
