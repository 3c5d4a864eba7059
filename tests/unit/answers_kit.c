/* SPDX-License-Identifier: Apache-2.0 */
/* See answers_kit.h. */
#include "answers_kit.h"

#include "stream_kit.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { HEARD_MAX = 64, REQUEST_SIZE = 8192 };

static int listening;
static uint16_t port;
static pthread_t server;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char heard[HEARD_MAX][REQUEST_SIZE];
static size_t heard_count;
static const char *const *script;

static bool hear(int file, char *request)
{
    size_t length = 0, wanted = 0;
    while (length + 1 < REQUEST_SIZE && (wanted == 0 || length < wanted)) {
        ssize_t got = recv(file, request + length, REQUEST_SIZE - length - 1, 0);
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

static bool answer(int file, const char *words)
{
    char head[256];
    bool stalls = strncmp(words, "stall", 5) == 0;
    bool watch = stalls || strncmp(words, "watch", 5) == 0;
    const char *body = 1 + (watch ? strchr(words, '\n') : strrchr(words, '\n'));
    int length = snprintf(head, sizeof head, "HTTP/1.1 %.*s\r\nDate: %s\r\n",
                          watch ? 6 : (int)(body - words - 1), watch ? "200 OK" : words,
                          "Thu, 01 Jan 2026 00:00:00 GMT");
    if (!watch)
        length += snprintf(head + length, sizeof head - (size_t)length, "Content-Length: %zu\r\n",
                           strlen(body));
    (void)snprintf(head + length, sizeof head - (size_t)length, "\r\n");
    (void)send(file, head, strlen(head), MSG_NOSIGNAL);
    (void)send(file, body, strlen(body), MSG_NOSIGNAL);
    if (stalls)
        (void)recv(file, head, sizeof head, 0);
    return !watch;
}

static void *serve_one(void *argument)
{
    int file = *(int *)argument;
    free(argument);
    static __thread char request[REQUEST_SIZE];
    bool stays = true;
    while (stays && hear(file, request)) {
        (void)pthread_mutex_lock(&lock);
        const char *words = *script;
        if (words != NULL)
            script++;
        if (heard_count < HEARD_MAX)
            memcpy(heard[heard_count++], request, sizeof request);
        (void)pthread_mutex_unlock(&lock);
        stays = words != NULL && *words != '\0' && answer(file, words);
        if (words == NULL)
            (void)recv(file, request, 1, 0); /* silence until it is given up */
    }
    (void)close(file);
    return NULL;
}

static void *serve(void *argument)
{
    (void)argument;
    for (;;) {
        int file = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
        pthread_t thread;
        if (file < 0)
            return NULL;
        int *own = malloc(sizeof *own);
        assert_non_null(own);
        *own = file;
        if (pthread_create(&thread, NULL, serve_one, own) == 0)
            (void)pthread_detach(thread);
    }
}

size_t answers_heard(void)
{
    (void)pthread_mutex_lock(&lock);
    size_t count = heard_count;
    (void)pthread_mutex_unlock(&lock);
    return count;
}

void answers_expect(size_t number, const char *words)
{
    assert_true(number < answers_heard());
    if (strstr(heard[number], words) == NULL)
        fail_msg("request %zu has no \"%s\": %s", number, words, heard[number]);
}

void answers_say(const char *const *answers)
{
    (void)pthread_mutex_lock(&lock);
    script = answers;
    heard_count = 0;
    (void)pthread_mutex_unlock(&lock);
}

uint16_t answers_port(void)
{
    return port;
}

bool answers_open(void)
{
    listening = kit_listen(AF_INET, &port);
    return pthread_create(&server, NULL, serve, NULL) == 0;
}

void answers_close(void)
{
    (void)shutdown(listening, SHUT_RDWR);
    (void)pthread_join(server, NULL);
    (void)close(listening);
}
