/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small GitHub with one repository (hostile_hub.c: strict and correct): refs, commits, trees,
 * issues with labels and comments; and the replies of a hostile one (the table is in
 * hostile_github_table.c).
 */
#ifndef LEASEHOLD_TESTS_HOSTILE_GITHUB_H
#define LEASEHOLD_TESTS_HOSTILE_GITHUB_H

#include "hostile_http.h"

#define HUB_REPOSITORY "/repos/alice/locks"
#define HUB_COMMIT     "00000000000000000000000000000000000000aa" /* the first commit */
#define HUB_WORKER     "00000000000000000000000000000000000000bb" /* of a dead worker, session 77 */

/* `target` is path and query, `etag` that of the caller's copy or ""; the body is borrowed, and may
 * be NULL. */
void hub_answer(const char *method, const char *target, const char *etag, const json_t *body,
                struct api_answer *out);
/* The whole repository, a new reference; and back, by a copy. NULL: a new repository. */
json_t *hub_copy(void);
void hub_set(const json_t *repository);
void hub_free(void);
/* The commit to which a ref of a key was moved last, since hub_set(); "": none was. */
const char *hub_written(void);

extern const struct variant github_variants[];
extern const size_t github_variant_count;

#endif
