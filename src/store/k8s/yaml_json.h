/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One YAML document as JSON, as kubectl reads it, which is YAML 1.1: among plain scalars 0644 is
 * octal, 0x1f and 1_000 are numbers, yes, no, on and off are truths; quoted ones are text. JSON
 * itself is read, too. What JSON cannot say is refused: a key that is no text, the same key twice,
 * an anchor inside itself. Knows no files.
 */
#ifndef LEASEHOLD_STORE_K8S_YAML_JSON_H
#define LEASEHOLD_STORE_K8S_YAML_JSON_H

#include "base/text.h"

#include <jansson.h>

enum yaml_scalars {
    YAML_TYPED,   /* as above */
    YAML_STRINGS, /* all are text, for those who know what they expect */
};

/* NULL with words in `why`. The caller's to json_decref(). */
json_t *yaml_to_json(const char *bytes, size_t length, enum yaml_scalars scalars, struct text *why);

#endif
