/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocking and started calls. A task runs in the client's loop; a blocking caller waits until it
 * ends. The core limits the duration: every wait and timeout ends there. With own_loop the caller
 * runs the loop meanwhile. With own_loop, and on a store that replies at once, the caller's thread
 * runs the task itself, so that no other thread must be woken.
 */
#include "face/lib/lib_internal.h"

#include <stdlib.h>

void call_begin(struct call *call, struct lh_client *client)
{
    call->client = client;
    call->done = NULL;
    report_init(&call->report);
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

enum lh_outcome call_start(struct call *call, struct inbox_item *task, void *memory,
                           lh_done_fn *done, void *user, struct lh_report *report)
{
    struct lh_client *client = call->client;
    call->done = done;
    call->user = user;
    call->memory = memory;
    atomic_fetch_add(&client->started, 1);
    (void)report_ok(report, "ok: started"); /* before done, which may free the report */
    executor_post(client->executor, task);
    return LH_OK;
}

static void wait_for(struct lh_client *client, sem_t *ended)
{
    if (client->own_loop) {
        client_expect_wait(client);
        while (sem_trywait(ended) != 0) {
            if (client_poll_store(client))
                client_run_item(client, NULL);
            else
                loop_step(client->loop, /* wait= */ true);
        }
    } else {
        while (sem_wait(ended) != 0) { /* interrupted by a signal */
        }
    }
}

void call_block(struct lh_client *client, struct inbox_item *task, sem_t *ended)
{
    (void)sem_init(ended, /* pshared= */ 0, 0);
    if (client->own_loop || client->driver->step == NULL)
        client_run_item(client, task);
    else
        executor_post(client->executor, task);
    wait_for(client, ended);
    (void)sem_destroy(ended);
}

enum lh_outcome call_make(struct call *call, struct inbox_item *task, struct lh_report *report)
{
    call_block(call->client, task, &call->ended);
    report_copy(report, &call->report);
    return call->report.outcome;
}
