/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Azure CLI as a source of tokens: runs "az account get-access-token" from PATH, without a
 * shell, and kills it after a timeout. One call at a time, on a poller.
 */
#ifndef LEASEHOLD_HTTP_ENTRA_CLI_H
#define LEASEHOLD_HTTP_ENTRA_CLI_H

#include "net/poller.h"

#include <stdbool.h>
#include <stddef.h>

struct entra_cli;

struct entra_cli_callbacks {
    /* Its output, or NULL with the reason in `why`. */
    void (*done)(void *owner, const char *output, size_t length, const char *why);
    void *owner;
};

struct entra_cli *entra_cli_new(struct poller *poller, const struct entra_cli_callbacks *callbacks);
void entra_cli_free(struct entra_cli **cli); /* accepts NULL; kills a running az */
/* False if it cannot be started: `done` is not called, and `why` is the reason. */
bool entra_cli_start(struct entra_cli *cli, const char *resource, const char *tenant,
                     const char **why);

#endif
