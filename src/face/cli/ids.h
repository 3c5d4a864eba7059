/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the commands on ids (once, seen, mark): options for the stored result, and the output
 * of an id as text and JSON.
 */
#ifndef LEASEHOLD_FACE_CLI_IDS_H
#define LEASEHOLD_FACE_CLI_IDS_H

#include "face/cli/cli.h"

extern const struct option option_keep, option_watermark, option_until;

/* Reads from the options what to store. EXIT_DONE, or a usage error that was printed. */
int ids_read_done(const struct context *context, struct lh_completion *out);

enum { IDS_HASH_SIZE = 65 };

/* Reads --payload-hash in lower case; *out_payload is NULL without it. EXIT_DONE, or a usage error
 * that was printed. */
int ids_read_payload(const struct context *context, char hash[IDS_HASH_SIZE],
                     const char **out_payload);

/* True if the outcome is a state of an id (new, running or done), not an error or a refusal. */
bool ids_is_state(enum lh_outcome outcome);

/* "new", "running", "done", or "failed" for a stored failure. */
const char *ids_state_name(const struct lh_once *once, const struct lh_report *report);
/* Adds the id, its state and its known members. */
void ids_to_json(struct text *json, const char *id, const struct lh_once *once,
                 const struct lh_report *report);

/*
 * Prints "new TOKEN", "running HOLDER", "done RESULT" or "failed RESULT" to stdout, by the outcome
 * of the report; with --json an object, which contains the outcome only if `decided`: a query has
 * none. `once` may be NULL: unknown.
 */
void ids_output(const struct context *context, const char *id, const struct lh_once *once,
                const struct lh_report *report, bool decided);
/* Prints "marked: ID", unless --quiet; with --json an object with the new `state`. */
int ids_output_done(const struct context *context, const char *what, const char *id,
                    const char *state);

/* once_run.c: leasehold once ID -- CMD. */
int once_run(struct context *context);

#endif
