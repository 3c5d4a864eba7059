/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of the API server without locks: one persistent connection, one request at a time,
 * prepared bodies. Address and credentials come from the environment of scripts/on-k8s.sh. An
 * unexpected reply ends the program.
 */
#ifndef LEASEHOLD_TESTS_K8S_PEER_H
#define LEASEHOLD_TESTS_K8S_PEER_H

struct k8s_peer;

/* Name of the Lease; each peer has its own. */
struct k8s_peer *k8s_peer_open(const char *name);
void k8s_peer_close(struct k8s_peer **peer);
/* Creates a Lease of the size of ours, and deletes it. */
void k8s_peer_create(struct k8s_peer *peer);
void k8s_peer_delete(struct k8s_peer *peer);
/* Overwrites the created Lease, with another value each time. */
void k8s_peer_replace(struct k8s_peer *peer);

#endif
