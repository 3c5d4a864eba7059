/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of GitHub issues; labels: the priority that they state, their form in a URL. Pure. */
#ifndef LEASEHOLD_WIRE_GITHUB_ISSUE_H
#define LEASEHOLD_WIRE_GITHUB_ISSUE_H

#include "base/text.h"

/* Of an issue whose key is held, for people. */
#define GITHUB_HELD_LABEL "leasehold:held"

enum { GITHUB_PRIORITY_MAX = 1000000, GITHUB_NO_PRIORITY = INT32_MIN, GITHUB_DIGITS_MAX = 18 };

/* True if the key has the form of the number of an issue. */
bool github_is_issue_number(const char *key);

/* N of "priority:N", cut to the maximum; 3, 2 or 1 of "high", "medium" or "low", also behind
 * "priority:". GITHUB_NO_PRIORITY: it states none. Case does not matter. */
int32_t github_label_priority(const char *label);
/* GitHub finds a label whatever its case. */
bool github_label_equal(const char *a, const char *b);
/* As a part of a URL's path or query: letters, digits, - and _ stay, every other byte is %XX. */
void github_add_escaped(struct text *out, const char *string);

#endif
