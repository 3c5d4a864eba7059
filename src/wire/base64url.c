/* SPDX-License-Identifier: Apache-2.0 */
/* See base64url.h. */
#include "wire/base64url.h"

const char base64url_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void base64url_add(const unsigned char *bytes, size_t length, struct text *out)
{
    for (size_t at = 0; at < length; at += 3) {
        unsigned char part[3] = {0};
        size_t left = length - at;
        if (left > sizeof part)
            left = sizeof part;
        memcpy(part, bytes + at, left);
        uint32_t bits = (uint32_t)part[0] << 16 | (uint32_t)part[1] << 8 | part[2];
        for (size_t i = 0; i <= left; i++)
            text_add_bytes(out, &base64url_digits[bits >> (18 - 6 * i) & 63], 1);
    }
}
