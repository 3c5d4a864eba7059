/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptor that a command inherits: while it is open, a bound lease lasts until its TTL even
 * if its holder dies. The store creates it, the caller owns it.
 */
#include "face/lib/lib_internal.h"

#include <fcntl.h>
#include <unistd.h>

int lh_liveness_fd(struct lh_client *client)
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
