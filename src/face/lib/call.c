/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocking calls: something is run in the client's loop, and the caller waits until it has ended.
 * How long that takes is the core's business: every wait and all patience end there. With own_loop
 * the caller turns the loop meanwhile.
 */
#include "face/lib/lib_inside.h"

void call_begin(struct call *call, struct lh_client *client)
{
    call->client = client;
    call->over = false;
    report_clear(&call->report);
    (void)pthread_mutex_init(&call->mutex, NULL);
    (void)pthread_cond_init(&call->ended, NULL);
}

void call_end(struct call *call)
{
    (void)pthread_mutex_lock(&call->mutex);
    call->over = true;
    (void)pthread_cond_signal(&call->ended);
    (void)pthread_mutex_unlock(&call->mutex);
}

static void await(struct call *call)
{
    (void)pthread_mutex_lock(&call->mutex);
    while (!call->over)
        (void)pthread_cond_wait(&call->ended, &call->mutex);
    (void)pthread_mutex_unlock(&call->mutex);
}

enum lh_outcome call_make(struct call *call, struct loop_task *task, struct lh_report *report)
{
    loop_post(call->client->loop, task);
    if (call->client->own_loop) {
        while (!call->over)
            loop_step(call->client->loop, /* wait= */ true);
    } else {
        await(call);
    }
    (void)pthread_cond_destroy(&call->ended);
    (void)pthread_mutex_destroy(&call->mutex);
    report_copy(report, &call->report);
    return call->report.outcome;
}
