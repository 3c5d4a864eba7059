/* SPDX-License-Identifier: Apache-2.0 */
/* See http_kit.h. */
#include "http_kit.h"

#include "stream_kit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct {
    int listening;
    pthread_t thread;
    http_kit_answer *reply;
    atomic_uint connections;
    atomic_uint starts; /* a connection that outlives its server gets no reply from the next one */
} server;

void http_kit_say(int file, const char *text)
{
    size_t length = strlen(text);
    while (length > 0) {
        ssize_t sent = send(file, text, length, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        text += sent;
        length -= (size_t)sent;
    }
}

void http_kit_be_silent(int file)
{
    char byte;
    (void)recv(file, &byte, sizeof byte, 0);
}

/* A whole request with its body, or false. */
static bool hear(int file, char *request)
{
    size_t length = 0, wanted = 0;
    while (length + 1 < HTTP_REQUEST_SIZE && (wanted == 0 || length < wanted)) {
        ssize_t got = recv(file, request + length, HTTP_REQUEST_SIZE - length - 1, 0);
        if (got <= 0)
            return false;
        length += (size_t)got;
        request[length] = '\0';
        const char *end = strstr(request, "\r\n\r\n"), *body = strstr(request, "Content-Length: ");
        if (end != NULL)
            wanted =
                (size_t)(end + 4 - request) + (body != NULL ? strtoul(body + 16, NULL, 10) : 0);
    }
    return true;
}

static void *serve_one(void *argument)
{
    int file = *(int *)argument;
    char request[HTTP_REQUEST_SIZE];
    unsigned start = atomic_load(&server.starts);
    free(argument);
    while (hear(file, request) && start == atomic_load(&server.starts) &&
           server.reply(file, request))
        ;
    (void)close(file);
    return NULL;
}

static void *serve(void *argument)
{
    (void)argument;
    for (;;) {
        int file = accept4(server.listening, NULL, NULL, SOCK_CLOEXEC);
        pthread_t thread;
        if (file < 0)
            return NULL;
        atomic_fetch_add(&server.connections, 1);
        int *own = malloc(sizeof *own);
        if (own == NULL)
            abort();
        *own = file;
        if (pthread_create(&thread, NULL, serve_one, own) == 0)
            (void)pthread_detach(thread);
    }
}

uint16_t http_kit_start(http_kit_answer *reply)
{
    uint16_t port = 0;
    server.listening = kit_listen(AF_INET, &port);
    server.reply = reply;
    atomic_store(&server.connections, 0);
    atomic_fetch_add(&server.starts, 1);
    return pthread_create(&server.thread, NULL, serve, NULL) == 0 ? port : 0;
}

void http_kit_stop(void)
{
    (void)shutdown(server.listening, SHUT_RDWR);
    (void)pthread_join(server.thread, NULL);
    (void)close(server.listening);
}

unsigned http_kit_connections(void)
{
    return atomic_load(&server.connections);
}
