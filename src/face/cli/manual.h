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
void completion_fish(FILE *out);

/* Shared by these: */
bool completion_takes_file(const struct option *option);
bool completion_takes_keys(const struct command *command);
/* True for args such as "begin|finish ID": the first argument is a step. */
bool completion_takes_step(const struct command *command);
void completion_put_steps(FILE *out, const struct command *command);

#endif
