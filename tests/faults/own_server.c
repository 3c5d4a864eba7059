/* SPDX-License-Identifier: Apache-2.0 */
/* See own_server.h. */
#include "own_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { UP_MS = 20000 }; /* startup limit */

static uint16_t server_port;

static int loopback(bool connects)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(server_port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval limit = {.tv_sec = 1};
    int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    const struct sockaddr *where = (const struct sockaddr *)&address;
    int result =
        connects ? connect(file, where, sizeof address) : bind(file, where, sizeof address);
    if (result == 0)
        return file;
    (void)close(file);
    return -1;
}

/* Below the ephemeral port range: the port must be free again when the server restarts. */
static void choose_port(struct fixture *fixture)
{
    int file = -1;
    for (unsigned i = 0; file < 0 && i < 1000; i++) {
        server_port = (uint16_t)(10000 + random_below(&fixture->random, 10000));
        file = loopback(/* connects= */ false);
    }
    if (file < 0)
        abort();
    (void)close(file);
    (void)snprintf(fixture->url, sizeof fixture->url, "redis://127.0.0.1:%u", server_port);
}

static void play_server(struct fixture *fixture, size_t child)
{
    char port[16];
    (void)child;
    (void)snprintf(port, sizeof port, "%u", server_port);
    int log = open("/dev/null", O_RDWR);
    if (chdir(fixture->folder) != 0 || dup2(log, STDOUT_FILENO) < 0)
        _exit(1);
    (void)execlp("redis-server", "redis-server", "--bind", "127.0.0.1", "--port", port, "--save",
                 "", "--appendonly", "yes", "--appendfsync", "always", NULL);
    _exit(127);
}

static bool server_answers(void)
{
    static const char ping[] = "PING\r\n", pong[] = "+PONG";
    char said[sizeof pong] = "";
    int file = loopback(/* connects= */ true);
    if (file < 0)
        return false;
    bool answered = write(file, ping, sizeof ping - 1) == sizeof ping - 1 &&
                    read(file, said, sizeof pong - 1) == sizeof pong - 1 &&
                    memcmp(said, pong, sizeof pong - 1) == 0;
    (void)close(file);
    return answered;
}

bool own_server_start(struct fixture *fixture, size_t child)
{
    int64_t end_ms = live_now_ms() + UP_MS;
    if (server_port == 0)
        choose_port(fixture);
    fixture_start(fixture, child, play_server);
    while (!server_answers()) {
        if (live_now_ms() >= end_ms || !fixture_lives(fixture, child))
            return false;
        fixture_pause_us(2000);
    }
    return true;
}

uint16_t own_server_port(void)
{
    return server_port;
}
