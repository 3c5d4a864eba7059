/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store's URL as it may be shown: passwords and tokens in it are replaced by stars, also when the
 * URL does not parse, and control characters by question marks. Everything that prints a URL prints
 * this form of it.
 */
#ifndef LEASEHOLD_WIRE_URL_REDACT_H
#define LEASEHOLD_WIRE_URL_REDACT_H

#include "base/text.h"

/* Adds what may be shown: "redis://user:***@host/0?password=***". */
void url_redact(const char *url, struct text *out);
/* Within the URL itself every byte of a secret becomes a star. */
void url_redact_in_place(char *url);
/* The length of the scheme, which may be shown; 0 when there is none, or it may not be. */
size_t url_scheme(const char *url);

#endif
