/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A token of Microsoft Entra ID that is always fresh, for servers that take one as a password.
 * Whose it is, the environment says, in the order and with the names of Azure's own libraries:
 *
 *   AZURE_CLIENT_SECRET, or a file named by AZURE_CLIENT_SECRET_FILE   client secret
 *   AZURE_CLIENT_CERTIFICATE_PATH (…_PASSWORD)                         client certificate
 *   AZURE_FEDERATED_TOKEN_FILE                                         workload identity
 *   IDENTITY_ENDPOINT and IDENTITY_HEADER                              App Service, Functions
 *   none of these                                                      the machine's own identity
 *
 * The first three also need AZURE_TENANT_ID and a client id, and go to AZURE_AUTHORITY_HOST; the
 * last one asks the metadata service, or AZURE_POD_IDENTITY_AUTHORITY_HOST. The Azure CLI is asked
 * only by choice. The next token is fetched long before one ends. Never printed, and wiped.
 */
#ifndef LEASEHOLD_HTTP_ENTRA_TOKEN_H
#define LEASEHOLD_HTTP_ENTRA_TOKEN_H

#include "net/poller.h"
#include "wire/entra_request.h"

struct entra;

struct entra_callbacks {
    /* There is another token; or a try failed, while there is none. From a step of the net. */
    void (*changed)(void *owner);
    void *owner;
};

struct entra_choice {
    const char *client_id; /* which identity; NULL: AZURE_CLIENT_ID, if that is set */
    bool cli;              /* the Azure CLI's, whatever the environment says */
};

/* NULL, with words, when the environment makes no sense or out of memory. Begins to fetch. What
 * `choice` points to stays. */
struct entra *entra_new(struct poller *poller, const struct entra_callbacks *callbacks,
                        const struct entra_choice *choice, struct text *why);
void entra_free(struct entra **entra); /* NULL is fine */
/* Until the next step; NULL while there is none that is good: then `why` says what the last try
 * came to, or nothing while the first one is on its way. */
const struct entra_token *entra_now(const struct entra *entra, struct text *why);
/* The server did not take it: another one is fetched, soon. */
void entra_refused(struct entra *entra);

#endif
