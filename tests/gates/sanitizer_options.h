/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comes before every file of a sanitized build (meson.build): the first finding ends the program.
 * For the address and undefined-behaviour sanitizers the compiler's flags say so; the thread
 * sanitizer, by itself, reports a race and goes on.
 */
#ifndef LEASEHOLD_TESTS_SANITIZER_OPTIONS_H
#define LEASEHOLD_TESTS_SANITIZER_OPTIONS_H

#ifdef __SANITIZE_THREAD__
const char *__tsan_default_options(void);

__attribute__((weak, used, visibility("default"))) const char *__tsan_default_options(void)
{
    return "halt_on_error=1";
}
#endif

#endif
