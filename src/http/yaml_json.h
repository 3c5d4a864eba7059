/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts one YAML document to JSON as kubectl does, by YAML 1.1: among plain scalars 0644 is
 * octal, 0x1f and 1_000 are numbers, yes, no, on and off are booleans; quoted ones are strings.
 * Accepts JSON too. Refuses YAML that JSON cannot represent: a key that is not a string, a
 * duplicate key, an anchor inside itself. Reads no files.
 */
#ifndef LEASEHOLD_HTTP_YAML_JSON_H
#define LEASEHOLD_HTTP_YAML_JSON_H

#include "base/text.h"

#include <jansson.h>

enum yaml_scalars {
    YAML_TYPED,   /* as above */
    YAML_STRINGS, /* all scalars are strings */
};

/* NULL with the reason in `why`. The caller releases it with json_decref(). */
json_t *yaml_to_json(const char *bytes, size_t length, enum yaml_scalars scalars, struct text *why);

#endif
