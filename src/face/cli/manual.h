/* SPDX-License-Identifier: Apache-2.0 */
/* Manual pages and shell completions, generated from the tables of commands and options. */
#ifndef LEASEHOLD_FACE_CLI_MANUAL_H
#define LEASEHOLD_FACE_CLI_MANUAL_H

#include "face/cli/cli.h"

#include <stdio.h>

/* The page of a command; of the program if it is NULL. */
void manual_page(const struct command *command, FILE *out);

void completion_bash(FILE *out);
void completion_zsh(FILE *out);

#endif
