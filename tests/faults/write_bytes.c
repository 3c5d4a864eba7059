/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes any bytes under a key of a store: write_bytes URL KEY BYTES. For tests of the other
 * records when one cannot be decoded. The key must have no record yet.
 */
#include "base/check.h"
#include "process/host.h"
#include "store/store.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TIMEOUT_MS = 10000, NAP_MS = 100 };

static int64_t now_ms(void *owner)
{
    (void)owner;
    return host_boot_ms();
}

static void on_done(void *caller, const struct store_reply *reply)
{
    *(int *)caller = reply->result == REPLY_OK ? EXIT_SUCCESS : EXIT_FAILURE;
    if (reply->result != REPLY_OK)
        fprintf(stderr, "not written: %s\n", reply->why != NULL ? reply->why : "a conflict");
}

int main(int argc, char **argv)
{
    char text[512];
    struct text why;
    int status = -1;
    struct store_callbacks site = {
        .clock = {.now_ms = now_ms}, .session = (uint64_t)getpid(), .timeout_ms = TIMEOUT_MS};
    const struct store_driver *driver = argc == 4 ? store_find(argv[1]) : NULL;
    if (driver == NULL) {
        fprintf(stderr, "usage: write_bytes URL KEY BYTES\n");
        return EXIT_FAILURE;
    }
    void *state = malloc(driver->state_size);
    text_init(&why, text, sizeof text);
    if (state == NULL || !driver->open(state, argv[1], &site, &why)) {
        fprintf(stderr, "%s\n", text);
        free(state);
        return EXIT_FAILURE;
    }
    struct store_request request = {.verb = VERB_STORE_SWAP,
                                    .key = argv[2],
                                    .condition = {.kind = IF_ABSENT},
                                    .bytes = argv[3],
                                    .length = strlen(argv[3])};
    driver->submit(state, &request, on_done, &status);
    driver->step(state);
    while (status < 0) {
        struct pollfd wait = {.fd = driver->fd != NULL ? driver->fd(state) : -1, .events = POLLIN};
        (void)poll(&wait, 1, NAP_MS);
        driver->step(state);
    }
    driver->close(state);
    free(state);
    return status;
}
