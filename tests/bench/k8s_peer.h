/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of the API server that knows nothing of locks: one connection that stays open, one
 * request at a time, bodies that are ready beforehand. Where the server is and who we are comes
 * from what scripts/on-k8s.sh sets. A wrong answer ends the program.
 */
#ifndef LEASEHOLD_TESTS_K8S_PEER_H
#define LEASEHOLD_TESTS_K8S_PEER_H

struct k8s_peer;

/* The Lease gets this name; another peer has another one. */
struct k8s_peer *k8s_peer_open(const char *name);
void k8s_peer_close(struct k8s_peer **peer);
/* Makes a Lease as large as ours are, and removes it. */
void k8s_peer_create(struct k8s_peer *peer);
void k8s_peer_delete(struct k8s_peer *peer);
/* Writes over the Lease that was made, something else each time. */
void k8s_peer_replace(struct k8s_peer *peer);

#endif
