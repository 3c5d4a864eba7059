/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which names the keys of a user have in Redis, and back. A lock `k` is `lock:k` there, an id
 * `dedup:…`, unless the templates say otherwise: so other programs find it. What is ours alone
 * stands beside it, in the same hash slot of a cluster, under a tag of four letters that belongs to
 * the slot; so it does not matter which braces a key has. Pure.
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

/* In the order in which a name is looked at: one that fits two belongs to the first. */
enum redis_family { REDIS_ONCE, REDIS_WATERMARK, REDIS_LOCK, REDIS_FAMILIES };

struct redis_templates {
    char of[REDIS_FAMILIES][REDIS_TEMPLATE_MAX + 1]; /* with one %s each */
};

void redis_templates_init(struct redis_templates *templates);
/* False when it has not exactly one %s, is too long, or is not clean. */
bool redis_template_set(struct redis_templates *templates, enum redis_family family,
                        const char *string);

struct redis_names {
    enum redis_family family;
    unsigned slot;
    char plain[REDIS_NAME_MAX + 1];         /* what others know; a watermark's is not used */
    char record[REDIS_RECORD_NAME_MAX + 1]; /* beside it: the record … */
    char counter[32];                       /* … and the slot's count of revisions */
};

/* False when the key's name is the one of another family's key. */
bool redis_names_of(const struct redis_templates *templates, const char *key,
                    struct redis_names *out);
/* The key that has this plain name, or whose record has that one; false when none has. */
bool redis_key_of_plain(const struct redis_templates *templates, const char *name, size_t length,
                        char *out_key);
bool redis_key_of_record(const struct redis_templates *templates, const char *name, size_t length,
                         char *out_key);
/* A pattern for SCAN: at least all names of records whose keys begin with the prefix. */
void redis_pattern_of(const struct redis_templates *templates, const char *prefix,
                      struct text *out);

unsigned redis_slot_of(const char *name, size_t length);
/* Four letters that hash into that slot. */
void redis_tag_of(unsigned slot, char *out);

#endif
