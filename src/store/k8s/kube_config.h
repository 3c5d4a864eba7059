/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the API server is and who we are there: $KUBECONFIG, else what a pod finds in its own file
 * system, else ~/.kube/config. Certificates that stand inside a kubeconfig never touch a disk.
 * Reads files; knows no requests.
 */
#ifndef LEASEHOLD_STORE_K8S_KUBE_CONFIG_H
#define LEASEHOLD_STORE_K8S_KUBE_CONFIG_H

#include "disk/secret.h"
#include "net/stream.h"
#include "wire/k8s_url.h"

#include <jansson.h>

struct kube_config {
    char *server; /* https://host:port, without a slash at its end */
    char *proxy;  /* that leads there; NULL: what the environment says */
    char namespace[K8S_NAME_MAX + 1];
    struct stream_tls tls; /* its words are ours */
    struct secret *token_file;
    char *token;
    json_t *plugin; /* of the user, as the kubeconfig has it: a program that gets credentials */
    int memfd[3];   /* certificates in memory, that the paths in `tls` lead to; −1: none */
};

/* False with words; there is nothing to undo then. */
bool kube_config_load(struct kube_config *out, const struct k8s_url *url, struct text *why);
void kube_config_done(struct kube_config *config);

/* As config_done() does for one of `held`; the new one holds these bytes. NULL: out of memory. */
char *kube_config_memfd(int *memfd, const char *bytes, size_t length);

#endif
