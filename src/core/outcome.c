/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the outcomes; see outcome.h. */
#include "core/outcome.h"

static const char *const names[] = {
#define OUTCOME_WORD(name, word, code, again) [OUTCOME_##name] = (word),
    OUTCOME_LIST(OUTCOME_WORD)
#undef OUTCOME_WORD
};

const char *outcome_name(enum outcome outcome)
{
    return names[outcome];
}
