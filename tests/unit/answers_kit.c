/* SPDX-License-Identifier: Apache-2.0 */
/* See answers_kit.h. */
#include "answers_kit.h"

#include "http_kit.h"

#include <jansson.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { HEARD_MAX = 64 };

static uint16_t port;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char heard[HEARD_MAX][HTTP_REQUEST_SIZE];
static size_t heard_count;
static const char *const *script;
static http_kit_answer *other; /* replaces the script */

static bool say_one(int file, const char *text)
{
    char head[256];
    bool stalls = strncmp(text, "stall", 5) == 0;
    bool watch = stalls || strncmp(text, "watch", 5) == 0;
    const char *body = 1 + (watch ? strchr(text, '\n') : strrchr(text, '\n'));
    int length = snprintf(head, sizeof head, "HTTP/1.1 %.*s\r\nDate: %s\r\n",
                          watch ? 6 : (int)(body - text - 1), watch ? "200 OK" : text,
                          "Thu, 01 Jan 2026 00:00:00 GMT");
    if (!watch)
        length += snprintf(head + length, sizeof head - (size_t)length, "Content-Length: %zu\r\n",
                           strlen(body));
    (void)snprintf(head + length, sizeof head - (size_t)length, "\r\n");
    http_kit_say(file, head);
    http_kit_say(file, body);
    if (stalls)
        http_kit_be_silent(file);
    return !watch;
}

/* "echo REVISION\nCHANGE": an API server that stores the object, with a webhook's change. */
static bool say_echo(int file, const char *text, const char *request)
{
    char head[256], revision[24];
    const char *sent = strstr(request, "\r\n\r\n"), *change = strchr(text, '\n') + 1;
    json_t *object = json_loads(sent != NULL ? sent + 4 : "", 0, NULL);
    json_t *changes = json_loads(change, 0, NULL);
    json_t *metadata = json_object_get(object, "metadata");
    (void)snprintf(revision, sizeof revision, "%lu", strtoul(text + 5, NULL, 10));
    (void)json_object_set_new(metadata, "uid", json_string("u"));
    (void)json_object_set_new(metadata, "resourceVersion", json_string(revision));
    (void)json_object_update_recursive(object, changes);
    char *body = json_dumps(object, JSON_COMPACT);
    (void)snprintf(head, sizeof head,
                   "HTTP/1.1 201 Created\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n"
                   "Content-Length: %zu\r\n\r\n",
                   body != NULL ? strlen(body) : 0);
    http_kit_say(file, head);
    http_kit_say(file, body != NULL ? body : "");
    free(body);
    json_decref(changes);
    json_decref(object);
    return true;
}

static bool reply(int file, const char *request)
{
    (void)pthread_mutex_lock(&lock);
    http_kit_answer *own = other;
    const char *text = own == NULL ? *script : NULL;
    if (text != NULL)
        script++;
    if (heard_count < HEARD_MAX)
        (void)snprintf(heard[heard_count++], sizeof heard[0], "%s", request);
    (void)pthread_mutex_unlock(&lock);
    if (own != NULL)
        return own(file, request);
    if (text == NULL)
        http_kit_be_silent(file);
    if (text != NULL && strncmp(text, "echo ", 5) == 0)
        return say_echo(file, text, request);
    return text != NULL && *text != '\0' && say_one(file, text);
}

size_t answers_heard(void)
{
    (void)pthread_mutex_lock(&lock);
    size_t count = heard_count;
    (void)pthread_mutex_unlock(&lock);
    return count;
}

const char *answers_request(size_t number)
{
    assert_true(number < answers_heard());
    return heard[number];
}

void answers_expect(size_t number, const char *text)
{
    if (strstr(answers_request(number), text) == NULL)
        fail_msg("request %zu has no \"%s\": %s", number, text, heard[number]);
}

void answers_say(const char *const *answers)
{
    (void)pthread_mutex_lock(&lock);
    script = answers;
    other = NULL;
    heard_count = 0;
    (void)pthread_mutex_unlock(&lock);
}

void answers_say_by(http_kit_answer *answers)
{
    (void)pthread_mutex_lock(&lock);
    other = answers;
    (void)pthread_mutex_unlock(&lock);
}

uint16_t answers_port(void)
{
    return port;
}

bool answers_open(void)
{
    port = http_kit_start(reply);
    return port != 0;
}

void answers_close(void)
{
    http_kit_stop();
}
