/* SPDX-License-Identifier: Apache-2.0 */
/* See redis_names.h. */
#include "wire/redis_names.h"

#include "base/check.h"
#include "core/rules.h"

#include <string.h>

#define RECORD_PREFIX "leasehold:{"

enum { TAG = 4, NIBBLE = 16 };

/* The key prefix of each family; the rest of the key goes into the template. */
static const char *const prefixes[REDIS_FAMILIES] = {
    [REDIS_ONCE] = ONCE_PREFIX, [REDIS_WATERMARK] = WATERMARK_PREFIX, [REDIS_LOCK] = ""};

static bool begins_with(const char *string, const char *prefix)
{
    return strncmp(string, prefix, strlen(prefix)) == 0;
}

void redis_templates_init(struct redis_templates *templates)
{
    *templates = (struct redis_templates){
        {[REDIS_ONCE] = "dedup:%s", [REDIS_WATERMARK] = "watermark:%s", [REDIS_LOCK] = "lock:%s"}};
}

bool redis_template_is_valid(const char *template)
{
    const char *hole = strstr(template, "%s");
    size_t length = strlen(template);
    return hole != NULL && strchr(hole + 1, '%') == NULL && length <= REDIS_TEMPLATE_MAX &&
           text_is_clean(template, length);
}

/* ---- slots and tags ---- */

static uint16_t crc_of(uint16_t crc, const char *bytes, size_t length)
{
    /* The effect of the four bits shifted out: multiples of the polynomial 0x1021. */
    static const uint16_t leaves[NIBBLE] = {
        0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
        0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef,
    };
    for (size_t i = 0; i < length; i++) {
        crc ^= (uint16_t)((unsigned char)bytes[i] << 8);
        crc = (uint16_t)(crc << 4 ^ leaves[crc >> 12]);
        crc = (uint16_t)(crc << 4 ^ leaves[crc >> 12]);
    }
    return crc;
}

unsigned redis_slot_of(const char *name, size_t length)
{
    const char *open = memchr(name, '{', length);
    const char *close = open != NULL ? memchr(open, '}', length - (size_t)(open - name)) : NULL;
    if (close != NULL && close > open + 1)
        return crc_of(0, open + 1, (size_t)(close - open) - 1) % REDIS_SLOTS;
    return crc_of(0, name, length) % REDIS_SLOTS;
}

/*
 * The CRC is linear: the tag of a slot is the tag of slot 0, XORed with one constant for each bit
 * that is set in the slot. (Found by search; a test checks all slots.)
 */
void redis_tag_of(unsigned slot, char *out)
{
    static const uint16_t bits[] = {
        0x1afa, 0x06ed, 0x277b, 0x110c, 0x2a91, 0x39c0, 0x1f63,
        0x277f, 0x1104, 0x2208, 0x1bea, 0x04cd, 0x233b, 0x198c,
    };
    unsigned letters = 0x1bf2;
    for (size_t bit = 0; bit < sizeof bits / sizeof bits[0]; bit++)
        letters ^= (slot >> bit & 1) != 0 ? bits[bit] : 0U;
    for (size_t i = TAG; i-- > 0; letters /= NIBBLE)
        out[i] = (char)('@' + letters % NIBBLE);
    out[TAG] = '\0';
}

/* ---- names ---- */

static enum redis_family family_of(const char *key)
{
    enum redis_family family = REDIS_ONCE;
    while (family < REDIS_LOCK && !begins_with(key, prefixes[family]))
        family++;
    return family;
}

/* The part of the name at %s; false if the name does not match the template. */
static bool template_match(const char *template, const char *name, size_t length,
                           const char **out_string, size_t *out_length)
{
    const char *hole = strstr(template, "%s");
    size_t before = (size_t)(hole - template), behind = strlen(hole + 2);
    if (length < before + behind || memcmp(name, template, before) != 0 ||
        memcmp(name + length - behind, hole + 2, behind) != 0)
        return false;
    *out_string = name + before;
    *out_length = length - before - behind;
    return true;
}

bool redis_key_of_plain(const struct redis_templates *templates, const char *name, size_t length,
                        char *out_key)
{
    for (enum redis_family family = REDIS_ONCE; family < REDIS_FAMILIES; family++) {
        const char *string;
        size_t count, prefix = strlen(prefixes[family]);
        if (!template_match(templates->of[family], name, length, &string, &count))
            continue;
        if (prefix + count > KEY_MAX || prefix + count == 0 || !text_is_clean(string, count))
            return false;
        memcpy(out_key, prefixes[family], prefix);
        memcpy(out_key + prefix, string, count);
        out_key[prefix + count] = '\0';
        return true;
    }
    return false;
}

bool redis_key_of_record(const struct redis_templates *templates, const char *name, size_t length,
                         char *out_key)
{
    size_t before = sizeof RECORD_PREFIX - 1 + TAG;
    if (length <= before + 2 || memcmp(name, RECORD_PREFIX, sizeof RECORD_PREFIX - 1) != 0 ||
        memcmp(name + before, "}:", 2) != 0)
        return false;
    return redis_key_of_plain(templates, name + before + 2, length - before - 2, out_key);
}

bool redis_key_of_name(const struct redis_templates *templates, const char *name, size_t length,
                       char *out_key)
{
    bool is_record = length >= sizeof RECORD_PREFIX - 1 &&
                     memcmp(name, RECORD_PREFIX, sizeof RECORD_PREFIX - 1) == 0;
    return is_record ? redis_key_of_record(templates, name, length, out_key)
                     : redis_key_of_plain(templates, name, length, out_key);
}

bool redis_names_of(const struct redis_templates *templates, const char *key,
                    struct redis_names *out)
{
    struct text text;
    char tag[TAG + 1], back[KEY_MAX + 1];
    out->family = family_of(key);
    const char *template = templates->of[out->family], *hole = strstr(template, "%s");
    text_init(&text, out->plain, sizeof out->plain);
    text_add_bytes(&text, template, (size_t)(hole - template));
    text_add(&text, key + strlen(prefixes[out->family]));
    text_add(&text, hole + 2);
    if (!redis_key_of_plain(templates, out->plain, text.length, back) || strcmp(back, key) != 0)
        return false;
    out->slot = redis_slot_of(out->plain, text.length);
    redis_tag_of(out->slot, tag);
    text_init(&text, out->counter, sizeof out->counter);
    text_add(&text, RECORD_PREFIX);
    text_add(&text, tag);
    text_add(&text, "}");
    text_init(&text, out->record, sizeof out->record);
    text_add(&text, out->counter);
    text_add(&text, ":");
    text_add(&text, out->plain);
    ASSERT(!text.cut);
    return true;
}

static void add_glob_escaped(struct text *out, const char *string, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (strchr("*?[]^\\", string[i]) != NULL)
            text_add(out, "\\");
        text_add_bytes(out, string + i, 1);
    }
}

static void add_template_pattern(const struct redis_templates *templates, enum redis_family family,
                                 const char *rest, struct text *out)
{
    const char *template = templates->of[family], *hole = strstr(template, "%s");
    add_glob_escaped(out, template, (size_t)(hole - template));
    add_glob_escaped(out, rest, strlen(rest));
    text_add(out, "*");
}

bool redis_pattern_of(const struct redis_templates *templates, const char *prefix, unsigned number,
                      struct text *out)
{
    enum redis_family family = family_of(prefix);
    bool once = begins_with(ONCE_PREFIX, prefix),
         watermarks = begins_with(WATERMARK_PREFIX, prefix);
    const char *rest = prefix + strlen(prefixes[family]);
    if (number == 0) {
        text_add(out, RECORD_PREFIX "????}:");
        if (family == REDIS_LOCK && (once || watermarks)) /* keys of several families */
            text_add(out, "*");
        else
            add_template_pattern(templates, family, rest, out);
        return true;
    }
    if (number == 1 && family != REDIS_WATERMARK) {
        add_template_pattern(templates, family, rest, out);
        return true;
    }
    if (number == 2 && family == REDIS_LOCK && once) {
        add_template_pattern(templates, REDIS_ONCE, "", out);
        return true;
    }
    return false;
}
