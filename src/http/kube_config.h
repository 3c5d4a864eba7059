/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address of the API server and our credentials: from $KUBECONFIG, else from the service
 * account of a pod, else from ~/.kube/config. Certificates inside a kubeconfig are never written to
 * a disk. Reads files; sends no requests.
 */
#ifndef LEASEHOLD_HTTP_KUBE_CONFIG_H
#define LEASEHOLD_HTTP_KUBE_CONFIG_H

#include "net/stream.h"
#include "wire/k8s_url.h"

#include <jansson.h>

struct kube_config {
    char *server; /* https://host:port, without a trailing slash */
    char *proxy;  /* NULL: the one of the environment */
    char namespace[K8S_NAME_MAX + 1];
    struct stream_tls tls;    /* its strings belong to this struct */
    char *token_file, *token; /* the path of a token, or a token */
    json_t *plugin;           /* the `exec` entry of the user: a program that returns credentials */
    int memfd[3]; /* certificates in memory, which the paths in `tls` name; −1: none */
};

/* False with a reason; then there is nothing to undo. */
bool kube_config_load(struct kube_config *out, const struct k8s_url *url, struct text *why);
void kube_config_done(struct kube_config *config);

/* Decodes base64 or base64url up to its end, a "=" or a "."; `out` has room for the whole string.
 * Returns the length. */
size_t kube_decode64(const char *string, char *out);
/* Replaces one of `memfd` by a new one with these bytes. Returns its path. NULL: out of memory. */
char *kube_config_memfd(int *memfd, const char *bytes, size_t length);

#endif
