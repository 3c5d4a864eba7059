/* SPDX-License-Identifier: Apache-2.0 */
/* See may.h. */
#include "face/daemon/may.h"

#include <string.h>

static const struct may_right all_rights[] = {
    {.verbs = MAY_READ | MAY_TAKE | MAY_RENEW | MAY_OPERATE, .prefix = ""}};

const struct may_identity may_everything = {
    .name = "default", .rights = all_rights, .right_count = 1};

const struct may_identity may_nothing = {.name = "(nobody)", .rights = NULL, .right_count = 0};

bool may(const struct may_identity *who, enum may_verb verb, const char *key)
{
    if (verb == MAY_ALWAYS)
        return true;
    for (size_t i = 0; i < who->right_count; i++) {
        const struct may_right *right = &who->rights[i];
        if ((right->verbs & (unsigned)verb) != 0 &&
            strncmp(key, right->prefix, strlen(right->prefix)) == 0)
            return true;
    }
    return false;
}

#ifdef LH_MUTANTS
enum may_hole may_hole_on;

bool may_plant(const char *name)
{
    static const char *const names[HOLE_COUNT] = {
#define MAY_HOLE_TEXT(name, description) [HOLE_##name] = #name,
        MAY_HOLE_LIST(MAY_HOLE_TEXT)
#undef MAY_HOLE_TEXT
    };
    for (int i = HOLE_NONE + 1; i < HOLE_COUNT; i++) {
        if (strcmp(names[i], name) == 0) {
            may_hole_on = (enum may_hole)i;
            return true;
        }
    }
    return false;
}
#endif
