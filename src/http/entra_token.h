/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps a valid token of Microsoft Entra ID, for servers that accept one as a password. The
 * environment selects the identity, in the order and with the names of Azure's own libraries:
 *
 *   AZURE_CLIENT_SECRET, or a file named by AZURE_CLIENT_SECRET_FILE   client secret
 *   AZURE_CLIENT_CERTIFICATE_PATH (…_PASSWORD)                         client certificate
 *   AZURE_FEDERATED_TOKEN_FILE                                         workload identity
 *   IDENTITY_ENDPOINT and IDENTITY_HEADER                              App Service, Functions
 *   none of these                                                      the machine's own identity
 *
 * The first three also require AZURE_TENANT_ID and a client id, and query AZURE_AUTHORITY_HOST. The
 * last one queries the metadata service or AZURE_POD_IDENTITY_AUTHORITY_HOST. The Azure CLI is used
 * only if chosen. Refreshes a token long before it expires. Must not print a token, and wipes it.
 */
#ifndef LEASEHOLD_HTTP_ENTRA_TOKEN_H
#define LEASEHOLD_HTTP_ENTRA_TOKEN_H

#include "net/poller.h"
#include "wire/entra_request.h"

struct entra;

struct entra_callbacks {
    /* There is a new token, or a request failed while there is none. Called from a step. */
    void (*changed)(void *owner);
    void *owner;
};

struct entra_choice {
    const char *client_id; /* which identity; NULL: AZURE_CLIENT_ID, if that is set */
    bool cli;              /* use the Azure CLI, regardless of the environment */
};

/* Requests the first token. NULL, with the reason, if the environment is inconsistent or memory is
 * exhausted. The strings of `choice` must outlive it. */
struct entra *entra_new(struct poller *poller, const struct entra_callbacks *callbacks,
                        const struct entra_choice *choice, struct text *why);
void entra_free(struct entra **entra); /* accepts NULL */
/* Valid until the next step. NULL while no token is valid: then `why` is the error of the last
 * request, or empty while the first one is in flight. */
const struct entra_token *entra_now(const struct entra *entra, struct text *why);
/* The server refused it: requests another one soon. */
void entra_refused(struct entra *entra);

#endif
