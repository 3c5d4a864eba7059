/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps keys to names in Redis and back. A lock `k` is `lock:k`, an id `dedup:…`, unless the
 * templates differ, so that other programs find it. The record is in the same hash slot of a
 * cluster, under a tag of four letters that hashes to the slot, whichever braces the key contains.
 * Pure.
 */
#ifndef LEASEHOLD_WIRE_REDIS_NAMES_H
#define LEASEHOLD_WIRE_REDIS_NAMES_H

#include "base/text.h"
#include "core/record.h"

enum {
    REDIS_SLOTS = 16384,
    REDIS_TEMPLATE_MAX = 128,
    REDIS_NAME_MAX = KEY_MAX + REDIS_TEMPLATE_MAX,
    REDIS_RECORD_NAME_MAX = REDIS_NAME_MAX + 32,
    REDIS_PATTERN_MAX = 2 * REDIS_NAME_MAX + 32,
};

/* In matching order: a name that fits two templates belongs to the first. */
enum redis_family { REDIS_ONCE, REDIS_WATERMARK, REDIS_LOCK, REDIS_FAMILIES };

struct redis_templates {
    char of[REDIS_FAMILIES][REDIS_TEMPLATE_MAX + 1]; /* one %s each */
};

void redis_templates_init(struct redis_templates *templates);
/* False if it has not exactly one %s, is too long, or is not clean. */
bool redis_template_is_valid(const char *template);

struct redis_names {
    enum redis_family family;
    unsigned slot;
    char plain[REDIS_NAME_MAX + 1];         /* name for other programs; unused for a watermark */
    char record[REDIS_RECORD_NAME_MAX + 1]; /* in the same slot: the record … */
    char counter[32];                       /* … and the slot's revision counter */
};

/* False if the name belongs to a key of another family. */
bool redis_names_of(const struct redis_templates *templates, const char *key,
                    struct redis_names *out);
/* The key with this plain name, or with this record name; false if there is none. */
bool redis_key_of_plain(const struct redis_templates *templates, const char *name, size_t length,
                        char *out_key);
bool redis_key_of_record(const struct redis_templates *templates, const char *name, size_t length,
                         char *out_key);
/* The SCAN patterns, numbered from 0, that together match at least all records and plain names of
 * the keys that begin with the prefix. False after the last. */
bool redis_pattern_of(const struct redis_templates *templates, const char *prefix, unsigned number,
                      struct text *out);
/* The key with this name of either kind. */
bool redis_key_of_name(const struct redis_templates *templates, const char *name, size_t length,
                       char *out_key);

unsigned redis_slot_of(const char *name, size_t length);
/* Four letters that hash to that slot. */
void redis_tag_of(unsigned slot, char *out);

#endif
