/* SPDX-License-Identifier: Apache-2.0 */
/* See curl.h. */
#include "http/curl.h"

#include "process/library.h"

static struct curl_calls calls;

static bool curl_start(void)
{
    return calls.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

const struct curl_calls *curl_load(const char **out_error)
{
#define CURL_NAME(name) "curl_" #name,
    static const char *const names[] = {CURL_CALLS(CURL_NAME)};
#undef CURL_NAME
    static struct library library = {LIBRARY_LOCK,
                                     .file = "libcurl.so.4",
                                     .package = "libcurl4",
                                     .names = names,
                                     .count = sizeof names / sizeof names[0],
                                     .calls = &calls,
                                     .start = curl_start};
    *out_error = library_load(&library);
    return *out_error == NULL ? &calls : NULL;
}
