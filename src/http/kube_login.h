/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The credentials of each request to the API server: a token of the configuration, a token file
 * that other programs replace, or the output of a credential plugin (a program that the kubeconfig
 * names, as for kubectl). The plugin runs asynchronously. Its output is never printed.
 */
#ifndef LEASEHOLD_HTTP_KUBE_LOGIN_H
#define LEASEHOLD_HTTP_KUBE_LOGIN_H

#include "http/kube_config.h"
#include "net/poller.h"

struct kube_login;

/* `ready` is called when a plugin has returned. The configuration belongs to the caller; a plugin
 * may replace its certificates. NULL when out of memory. */
struct kube_login *kube_login_new(struct poller *poller, struct kube_config *config,
                                  void (*ready)(void *owner), void *owner);
void kube_login_free(struct kube_login **login); /* NULL is allowed */

const struct kube_config *kube_login_config(const struct kube_login *login);

/* False while a plugin runs; starts the plugin if necessary. */
bool kube_login_ready(struct kube_login *login);
/* The bearer token, valid until the next call; NULL if none is needed. False with a reason if one
 * is needed but missing. */
bool kube_login_bearer(struct kube_login *login, const char **out, struct text *why);
/* The server refused the credentials: reads the file or runs the plugin again. */
void kube_login_refused(struct kube_login *login);

#endif
