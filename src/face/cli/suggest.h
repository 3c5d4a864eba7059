/* SPDX-License-Identifier: Apache-2.0 */
/* Suggestions for mistyped command lines, for error messages only. */
#ifndef LEASEHOLD_FACE_CLI_SUGGEST_H
#define LEASEHOLD_FACE_CLI_SUGGEST_H

#include "face/cli/cli.h"

/* Adds "; write: …" for a word of other tools, "; the closest is '…'", or where to look. */
void suggest_command(const char *word, struct text *out);
/* True if argument `at` can only belong to a program before which "--" is missing. */
bool suggest_wants_separator(const struct context *context, int argc, char *const *argv, int at);
/* Adds the command line with "--" before argument `before`, quoted for a shell, without secrets. */
void suggest_separator(int argc, char *const *argv, int before, struct text *out);
/* Adds the command line with "run" in place of argument `command`, hold or acquire, likewise. */
void suggest_run(int argc, char *const *argv, int command, struct text *out);
/* Adds an argument, quoted for a shell if necessary. */
void suggest_add_quoted(struct text *out, const char *arg);

#endif
