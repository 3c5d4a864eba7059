/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks on a Kubernetes API server through the public calls, alternating with a bare Lease that is
 * created and deleted on the same server: bench_k8s URL, run by scripts/on-k8s.sh. See rounds.h for
 * the statistics.
 */
#include "k8s_peer.h"
#include "hand_off.h"
#include "rounds.h"

#include <stdio.h>
#include <unistd.h>

enum { PAIRS = 40, HANDOVERS = 20 };

static double our_pairs(struct lh_client *client)
{
    double from = rounds_seconds();
    for (int i = 0; i < PAIRS; i++)
        hand_off_release(hand_off_acquire(client, "our-0000000000000000000000000000"));
    return PAIRS / (rounds_seconds() - from);
}

static double bare_pairs(struct k8s_peer *peer)
{
    double from = rounds_seconds();
    for (int i = 0; i < PAIRS; i++) {
        k8s_peer_create(peer);
        k8s_peer_delete(peer);
    }
    return PAIRS / (rounds_seconds() - from);
}

static void one_at_a_time(const char *url)
{
    double ours[ROUNDS], bare[ROUNDS];
    struct lh_client *client = hand_off_open(url, /* on_event= */ NULL, /* user= */ NULL);
    struct k8s_peer *peer = k8s_peer_open("bare-0000000000000000000000000000");
    (void)our_pairs(client);
    (void)bare_pairs(peer);
    for (size_t i = 0; i < ROUNDS; i++) {
        ours[i] = our_pairs(client);
        bare[i] = bare_pairs(peer);
    }
    (void)printf("== k8s: acquire+release, one client, one request at a time\n");
    rounds_say("ours, blocking calls", ours, "pairs/s");
    rounds_say("a bare Lease, created and deleted", bare, "pairs/s");
    rounds_aim(ours, bare, AT_LEAST, 0.9);
    k8s_peer_close(&peer);
    lh_close(&client);
}

/* ---- hand-off ---- */

static void *connect_to(const void *owner)
{
    char name[64];
    (void)owner;
    (void)snprintf(name, sizeof name, "bare-%ld", (long)getpid());
    struct k8s_peer *peer = k8s_peer_open(name);
    k8s_peer_create(peer);
    return peer;
}

static void write_to(void *connection)
{
    k8s_peer_replace(connection);
}

static void disconnect(void *connection)
{
    struct k8s_peer *peer = connection;
    k8s_peer_delete(peer);
    k8s_peer_close(&peer);
}

int main(int count, char **argv)
{
    if (count != 2)
        rounds_fail("usage", "bench_k8s URL");
    one_at_a_time(argv[1]);
    hand_off_measure(&(struct hand_off_setup){.store = "k8s",
                                              .url = argv[1],
                                              .cheapest = "the cheapest write (PUT of a Lease)",
                                              .connect = connect_to,
                                              .write = write_to,
                                              .disconnect = disconnect,
                                              .handovers = HANDOVERS});
    return 0;
}
