/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who we are to the API server, from request to request: a token of the configuration, one in a
 * file that others replace, or what a credential plugin says (a program that the kubeconfig names,
 * as for kubectl). The plugin runs beside us; nobody waits for it. Its words are never shown.
 */
#ifndef LEASEHOLD_STORE_K8S_KUBE_LOGIN_H
#define LEASEHOLD_STORE_K8S_KUBE_LOGIN_H

#include "store/k8s/kube_config.h"
#include "net/poller.h"

struct kube_login;

/* `ready` is called once a plugin that had to be asked has said something. The configuration is the
 * caller's, and its certificates may change with what a plugin says. NULL when out of memory. */
struct kube_login *kube_login_new(struct poller *poller, struct kube_config *config,
                                  void (*ready)(void *owner), void *owner);
void kube_login_free(struct kube_login **login); /* NULL is fine */

const struct kube_config *kube_login_config(const struct kube_login *login);

/* False while a plugin is being asked, which this begins when it has to. */
bool kube_login_ready(struct kube_login *login);
/* The bearer's token, until the next call; NULL where none is needed. False with words when there
 * should be one and is none. */
bool kube_login_bearer(struct kube_login *login, const char **out, struct text *why);
/* The server refused it: a file is read anew, a plugin asked anew. */
void kube_login_refused(struct kube_login *login);

#endif
