/* SPDX-License-Identifier: Apache-2.0 */
/* See github_issue.h. */
#include "wire/github_issue.h"

bool github_is_issue_number(const char *key)
{
    size_t length = strspn(key, "0123456789");
    return length > 0 && length <= GITHUB_DIGITS_MAX && key[length] == '\0' && key[0] != '0';
}

static int lower(char letter)
{
    return letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter;
}

bool github_label_equal(const char *a, const char *b)
{
    while (*a != '\0' && lower(*a) == lower(*b)) {
        a++;
        b++;
    }
    return *a == *b;
}

int32_t github_label_priority(const char *label)
{
    static const char prefix[] = "priority:";
    static const char *const words[] = {"low", "medium", "high"};
    size_t length = 0;
    while (length < sizeof prefix - 1 && lower(label[length]) == prefix[length])
        length++;
    const char *at = prefix[length] == '\0' ? label + length : label;
    for (int32_t i = 0; i < 3; i++) {
        if (github_label_equal(at, words[i]))
            return i + 1;
    }
    bool negative = *at == '-';
    const char *digits = at + negative;
    int32_t number = 0;
    if (at == label || digits[strspn(digits, "0123456789")] != '\0' || *digits == '\0')
        return GITHUB_NO_PRIORITY;
    for (; *digits != '\0' && number < GITHUB_PRIORITY_MAX; digits++)
        number = number * 10 + (*digits - '0');
    number = number < GITHUB_PRIORITY_MAX ? number : GITHUB_PRIORITY_MAX;
    return negative ? -number : number;
}

void github_add_escaped(struct text *out, const char *string)
{
    static const char digits[] = "0123456789ABCDEF";
    for (; *string != '\0'; string++) {
        unsigned char byte = (unsigned char)*string;
        const char escaped[] = {'%', digits[byte >> 4], digits[byte & 15]};
        bool stays = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                     (byte >= '0' && byte <= '9') || byte == '-' || byte == '_';
        text_add_bytes(out, stays ? string : escaped, stays ? 1 : sizeof escaped);
    }
}
