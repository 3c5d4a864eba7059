/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is loaded when it is needed, and the errors if it cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "process/library.h"

static struct {
    double (*floor)(double number);
    double (*ceil)(double number);
} calls;
static unsigned starts;
static bool good;

static bool start(void)
{
    starts++;
    return good && calls.floor != NULL && calls.ceil != NULL;
}

static const char *const names[] = {"floor", "ceil"};
static const char *const unknown[] = {"floor", "no_such_function"};

#define MATHS LIBRARY_LOCK, .package = "libc6", .count = 2, .calls = &calls, .start = start

static void a_library_is_loaded_once(void **state)
{
    struct library library = {MATHS, .file = "libm.so.6", .names = names};
    (void)state;
    good = true;
    starts = 0;
    assert_null(library_load(&library));
    assert_null(library_load(&library));
    assert_int_equal(starts, 1);
    assert_true(calls.floor(1.5) < 1.25 && calls.ceil(1.5) > 1.75);
}

static void an_error_names_the_package(void **state)
{
    struct library none = {MATHS, .file = "libnone.so.1", .names = names};
    struct library old = {MATHS, .file = "libm.so.6", .names = unknown};
    struct library broken = {MATHS, .file = "libm.so.6", .names = names};
    (void)state;
    good = false;
    starts = 0;
    assert_string_equal(library_load(&none), "cannot load libnone.so.1; install libc6");
    assert_string_equal(library_load(&none), "cannot load libnone.so.1; install libc6");
    assert_string_equal(library_load(&old),
                        "libm.so.6 has no function no_such_function; install a newer libc6");
    assert_int_equal(starts, 0);
    assert_string_equal(library_load(&broken),
                        "libm.so.6 of the package libc6 cannot be initialised");
    assert_non_null(library_load(&broken));
    assert_int_equal(starts, 1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_library_is_loaded_once),
        cmocka_unit_test(an_error_names_the_package),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
