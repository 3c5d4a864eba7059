/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client in the caller's own loop. lh_step() polls the descriptors, lh_run() does not; both
 * handle all that was posted before they return, so that a call that is started in a callback needs
 * no wake-up. Decides nothing.
 */
#include "face/lib/lib_internal.h"

enum { STEP_TURNS_MAX = 16 };

int lh_fd(struct lh_client *client)
{
    bool usable = client != NULL && !client_is_forked(client) && client->own_loop;
    return usable ? loop_fd(client->loop) : -1;
}

/* LH_OK if the caller may run the loop. */
static enum lh_outcome client_admits_step(const struct lh_client *client)
{
    enum lh_outcome outcome = client_admits(client, /* blocks= */ true, NULL);
    return outcome == LH_OK && !client->own_loop ? LH_USAGE : outcome;
}

/* A chain of calls without end goes on in the next step: the caller has other work. */
static void client_finish_step(struct lh_client *client)
{
    for (int i = 0; i < STEP_TURNS_MAX && executor_has_posted(client->executor); i++)
        client_turn(client);
    client->stepping = false;
    if (executor_has_posted(client->executor))
        loop_wake(client->loop);
}

enum lh_outcome lh_step(struct lh_client *client)
{
    enum lh_outcome outcome = client_admits_step(client);
    if (outcome != LH_OK)
        return outcome;
    client->stepping = true;
    loop_step(client->loop, /* wait= */ false);
    loop_enter(client->loop);
    client_finish_step(client);
    loop_leave(client->loop);
    return LH_OK;
}

enum lh_outcome lh_run(struct lh_client *client)
{
    enum lh_outcome outcome = client_admits_step(client);
    if (outcome != LH_OK)
        return outcome;
    client->runs = client->stepping = true;
    loop_enter(client->loop);
    if (client_is_due(client))
        client_turn(client);
    client_finish_step(client);
    loop_leave(client->loop);
    return LH_OK;
}

void client_expect_wait(struct lh_client *client)
{
    if (!client->runs)
        return;
    client->runs = false;
    loop_wake(client->loop);
}
