/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 for URLs (RFC 4648), without padding, as JSON Web Tokens have it. Pure. */
#ifndef LEASEHOLD_WIRE_BASE64URL_H
#define LEASEHOLD_WIRE_BASE64URL_H

#include "base/text.h"

extern const char base64url_digits[]; /* all 64, in order */

void base64url_add(const unsigned char *bytes, size_t length, struct text *out);

#endif
