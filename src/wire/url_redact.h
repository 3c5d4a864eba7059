/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The printable form of a store's URL: passwords and tokens are replaced by stars, even if the URL
 * does not parse, and control characters by question marks. All output of URLs uses this form.
 */
#ifndef LEASEHOLD_WIRE_URL_REDACT_H
#define LEASEHOLD_WIRE_URL_REDACT_H

#include "base/text.h"

/* Adds the printable form: "redis://user:***@host/0?password=***". */
void url_redact(const char *url, struct text *out);
/* Replaces every byte of a secret in the URL by a star. */
void url_redact_in_place(char *url);
/* The length of the scheme; 0 if there is none, or it must not be shown. */
size_t url_scheme(const char *url);

#endif
