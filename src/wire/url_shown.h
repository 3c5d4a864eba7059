/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store's URL as it may be shown: passwords and tokens in it are replaced by stars. Everything
 * that prints a URL prints this form of it.
 */
#ifndef LEASEHOLD_WIRE_URL_SHOWN_H
#define LEASEHOLD_WIRE_URL_SHOWN_H

#include "base/text.h"

/* Adds what may be shown: "redis://user:***@host/0?password=***". */
void url_show(const char *url, struct text *out);
/* Within the URL itself every byte of a secret becomes a star. */
void url_hide(char *url);

#endif
