/* SPDX-License-Identifier: Apache-2.0 */
/* See admin.h: shared by the diagnoses of all drivers. */
#include "store/admin.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

enum { FINDING_SIZE = PATH_MAX + 512 }; /* a path, and a sentence about it */

void diagnosis_report(const struct diagnosis *diagnosis, enum finding_level level,
                      const char *about, const char *remedy, const char *format, ...)
{
    char text[FINDING_SIZE];
    va_list arguments;
    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it is begun one line above */
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    struct finding finding = {.level = level, .about = about, .text = text, .remedy = remedy};
    diagnosis->on_finding(diagnosis, &finding);
}

int64_t diagnosis_timeout_ms(const struct diagnosis *diagnosis, int64_t most_ms)
{
    bool chosen = diagnosis->timeout_ms > 0 && diagnosis->timeout_ms < most_ms;
    return chosen ? diagnosis->timeout_ms : most_ms;
}
