/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the commands for ids share (once, seen, mark): the options of what is remembered, and how an
 * id is told, for people and as JSON.
 */
#ifndef LEASEHOLD_FACE_CLI_IDS_H
#define LEASEHOLD_FACE_CLI_IDS_H

#include "face/cli/cli.h"

extern const struct option option_keep, option_watermark, option_until;

/* What the options say is to be remembered. EXIT_DONE, or it was said why not. */
int ids_read_done(const struct context *context, struct lh_done *out);

enum { IDS_HASH_SIZE = 65 };

/* What --payload-hash says, NULL: nothing. Upper and lower case are the same number. EXIT_DONE, or
 * it was said why not. */
int ids_read_payload(const struct context *context, char hash[IDS_HASH_SIZE],
                     const char **out_payload);

/* Does the store say how an id stands: new, running or done? Otherwise it is trouble, or refused.
 */
bool ids_is_state(enum lh_outcome outcome);

/* "new", "running", "done", or "failed" when that was kept. */
const char *ids_state_name(const struct lh_once *once, const struct lh_report *report);
/* For JSON: id, state, and whatever is known of it. */
void ids_to_json(struct text *json, const char *id, const struct lh_once *once,
                 const struct lh_report *report);

/*
 * "new TOKEN", "running HOLDER", "done RESULT" or "failed RESULT" on stdout, as the report's
 * outcome says; with
 * --json an object, that says the outcome itself only if `decided`: whoever only looked has none.
 * `once` may be NULL: not known.
 */
void ids_output(const struct context *context, const char *id, const struct lh_once *once,
                const struct lh_report *report, bool decided);
/* "marked: ID" on stdout, unless --quiet; with --json what became of it: `state`. */
int ids_output_done(const struct context *context, const char *what, const char *id,
                    const char *state);

/* once_run.c: leasehold once ID -- CMD. */
int once_run(struct context *context);

#endif
