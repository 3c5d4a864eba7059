/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command inherits so that a bound lease outlives its holder for as long as the command
 * runs. Asks the store for it and keeps nothing: the descriptor is the caller's.
 */
#include "face/lib/lib_internal.h"

#include <fcntl.h>
#include <unistd.h>

int lh_liveness(struct lh_client *client)
{
    if (client_admits(client, /* blocks= */ false, NULL) != LH_OK || client->store_thread == NULL)
        return -1;
    int file = store_thread_liveness(client->store_thread);
    if (file >= 0 && fcntl(file, F_SETFD, 0) != 0) {
        (void)close(file);
        return -1;
    }
    return file;
}
