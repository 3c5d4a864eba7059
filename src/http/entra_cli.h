/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Azure CLI as a source of tokens: "az account get-access-token", found in PATH, without a
 * shell, killed when it takes too long. One call at a time, on a net.
 */
#ifndef LEASEHOLD_HTTP_ENTRA_CLI_H
#define LEASEHOLD_HTTP_ENTRA_CLI_H

#include "net/poller.h"

#include <stdbool.h>
#include <stddef.h>

struct entra_cli;

struct entra_cli_callbacks {
    /* Its output; or NULL, and why there is none. */
    void (*done)(void *owner, const char *output, size_t length, const char *why);
    void *owner;
};

struct entra_cli *entra_cli_new(struct poller *poller, const struct entra_cli_callbacks *callbacks);
void entra_cli_free(struct entra_cli **cli); /* NULL is fine; what runs is killed */
/* False, when it cannot be started: there is no `done`, and `why` says the reason. */
bool entra_cli_start(struct entra_cli *cli, const char *resource, const char *tenant,
                     const char **why);

#endif
