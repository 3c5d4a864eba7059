/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A token of Microsoft Entra ID that is always fresh, for servers that take one as a password. As
 * whom it is asked for is said by the environment that Azure makes: AZURE_TENANT_ID,
 * AZURE_CLIENT_ID and AZURE_FEDERATED_TOKEN_FILE mean a workload identity, asked at
 * AZURE_AUTHORITY_HOST; otherwise it is the machine's managed identity (AZURE_CLIENT_ID: which one
 * of them), asked at its metadata service, or where AZURE_POD_IDENTITY_AUTHORITY_HOST says. Another
 * one is fetched long before one ends. Never printed, and wiped when it goes.
 */
#ifndef LEASEHOLD_IO_ENTRA_H
#define LEASEHOLD_IO_ENTRA_H

#include "io/net.h"
#include "wire/entra.h"

struct entra;

struct entra_site {
    /* There is another token; or a try failed, while there is none. From a step of the net. */
    void (*changed)(void *owner);
    void *owner;
};

/* NULL, with words, when the environment makes no sense or memory is short. Begins to fetch. */
struct entra *entra_new(struct net *net, const struct entra_site *site, struct text *why);
void entra_free(struct entra **entra); /* NULL is fine */
/* Until the next step; NULL while there is none that is good: then `why` says what the last try
 * came to, or nothing while the first one is on its way. */
const struct entra_token *entra_now(const struct entra *entra, struct text *why);
/* The server did not take it: another one is fetched, soon. */
void entra_refused(struct entra *entra);

#endif
