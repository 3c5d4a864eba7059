/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocking calls: something is run in the client's loop, and the caller waits until it has ended.
 * How long that takes is the core's business: every wait and all patience end there. With own_loop
 * the caller is the loop's thread, and turns it meanwhile. There, and where the store answers at
 * once, the caller does it itself, in the loop's stead: no other thread need be woken for it.
 */
#include "face/lib/lib_internal.h"

#include <stdlib.h>

void call_begin(struct call *call, struct lh_client *client)
{
    call->client = client;
    call->done = NULL;
    report_clear(&call->report);
    (void)sem_init(&call->ended, /* pshared= */ 0, 0);
}

void call_end(struct call *call)
{
    struct lh_client *client = call->client;
    if (call->done == NULL) {
        (void)sem_post(&call->ended);
        return;
    }
    client_enter_callback(client);
    call->done(call->user, NULL, &call->report);
    client_leave_callback(client);
    free(call->memory);
    atomic_fetch_sub(&client->started, 1);
    client_stop_if_idle(client);
}

enum lh_outcome call_start(struct call *call, struct loop_task *task, void *memory,
                           lh_done_fn *done, void *user, struct lh_report *report)
{
    struct lh_client *client = call->client;
    call->done = done;
    call->user = user;
    call->memory = memory;
    atomic_fetch_add(&client->started, 1);
    loop_post(client->loop, task);
    return report_set(report, LH_OK, "ok: on its way");
}

static void call_wait(struct call *call)
{
    struct lh_client *client = call->client;
    if (client->own_loop) {
        while (sem_trywait(&call->ended) != 0) {
            if (client_poll_store(client))
                client_run_task(client, NULL);
            else
                loop_step(client->loop, /* wait= */ true);
        }
    } else {
        while (sem_wait(&call->ended) != 0) { /* a signal came in between */
        }
    }
}

enum lh_outcome call_make(struct call *call, struct loop_task *task, struct lh_report *report)
{
    struct lh_client *client = call->client;
    if (client->own_loop || client->driver->step == NULL)
        client_run_task(client, task);
    else
        loop_post(client->loop, task);
    call_wait(call);
    (void)sem_destroy(&call->ended);
    report_copy(report, &call->report);
    return call->report.outcome;
}
