/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads libcurl when the first request needs it: it depends on thirty libraries, and a program that
 * locks a file must not load them at every start. Only http.c and http_setup.c may call it.
 */
#ifndef LEASEHOLD_HTTP_CURL_H
#define LEASEHOLD_HTTP_CURL_H

#define CURL_DISABLE_TYPECHECK /* its macros would call functions that are not linked */
#include <curl/curl.h>

#define CURL_CALLS(X)      \
    X(easy_cleanup)        \
    X(easy_getinfo)        \
    X(easy_header)         \
    X(easy_init)           \
    X(easy_setopt)         \
    X(easy_strerror)       \
    X(free)                \
    X(getdate)             \
    X(global_init)         \
    X(multi_add_handle)    \
    X(multi_assign)        \
    X(multi_cleanup)       \
    X(multi_info_read)     \
    X(multi_init)          \
    X(multi_remove_handle) \
    X(multi_setopt)        \
    X(multi_socket_action) \
    X(slist_append)        \
    X(slist_free_all)      \
    X(url)                 \
    X(url_cleanup)         \
    X(url_get)             \
    X(url_set)

struct curl_calls {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): it is the name of a member */
#define CURL_CALL(name) __typeof__(curl_##name) *name;
    CURL_CALLS(CURL_CALL)
#undef CURL_CALL
};

/* One table for all threads, valid until the process ends; NULL with the error text if libcurl
 * cannot be loaded. */
const struct curl_calls *curl_load(const char **out_error);

#endif
