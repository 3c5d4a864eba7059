/* SPDX-License-Identifier: Apache-2.0 */
/* See redis_kit.h. */
#include "redis_kit.h"

#include "process/host.h"
#include "store/translate.h"
#include "wire/record_codec.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct redis *redis;
int64_t timeout_ms;
struct record record;

/* ---- the server ---- */

struct fake_server server;

static void open_server(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    memset(&server, 0, sizeof server);
    server.listening = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server.listening, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(server.listening, CONNECTIONS_MAX), 0);
    assert_int_equal(getsockname(server.listening, (struct sockaddr *)&address, &length), 0);
    server.port = ntohs(address.sin_port);
}

void send_to(size_t connection, const char *words)
{
    ssize_t sent = send(server.connections[connection].file, words, strlen(words), MSG_NOSIGNAL);
    assert_int_equal(sent, strlen(words));
}

void hang_up(size_t connection)
{
    (void)close(server.connections[connection].file);
    server.connections[connection].file = -1;
}

static void obey(size_t connection, const char *bytes, size_t length)
{
    char command[COMMAND_MAX];
    struct resp_walk walk = {.bytes = bytes, .length = length};
    struct resp_item item;
    struct text text;
    text_init(&text, command, sizeof command);
    (void)resp_next(&walk, &item);
    while (resp_next(&walk, &item)) {
        text_add(&text, text.length > 0 ? " " : "");
        text_add_bytes(&text, item.text, item.length);
    }
    (void)strncat(server.said, command, sizeof server.said - strlen(server.said) - 1);
    (void)strncat(server.said, "\n", sizeof server.said - strlen(server.said) - 1);
    const char *reply = server.reply(connection, command);
    if (reply != NULL && server.connections[connection].file >= 0)
        send_to(connection, reply);
}

static void serve_connection(size_t index)
{
    struct connection *connection = &server.connections[index];
    ssize_t got = connection->file >= 0
                      ? recv(connection->file, connection->bytes + connection->length,
                             sizeof connection->bytes - connection->length, MSG_DONTWAIT)
                      : -1;
    size_t length = 0, used = 0;
    if (got <= 0)
        return;
    connection->length += (size_t)got;
    while (connection->file >= 0 && resp_feed(&connection->resp, connection->bytes + used,
                                              connection->length - used, &length) == RESP_WHOLE) {
        obey(index, connection->bytes + used, length);
        used += length;
    }
    memmove(connection->bytes, connection->bytes + used, connection->length - used);
    connection->length -= used;
}

static void turn(void)
{
    const struct timespec pause = {.tv_nsec = 100000};
    redis_driver.step(redis);
    int file = accept4(server.listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (file >= 0) {
        assert_true(server.connection_count < CONNECTIONS_MAX);
        server.connections[server.connection_count++] =
            (struct connection){.file = file, .resp = {.bulk_max = SAID_MAX, .items_max = 100}};
    }
    for (size_t i = 0; i < server.connection_count; i++)
        serve_connection(i);
    (void)nanosleep(&pause, NULL);
}

void turn_for(int64_t ms)
{
    for (int64_t end_ms = host_boot_ms() + ms; host_boot_ms() < end_ms;)
        turn();
}

bool until_said(const char *words)
{
    int64_t end_ms = host_boot_ms() + WAIT;
    while (strstr(server.said, words) == NULL && host_boot_ms() < end_ms)
        turn();
    return strstr(server.said, words) != NULL;
}

unsigned times_said(const char *words)
{
    unsigned count = 0;
    for (const char *at = server.said; (at = strstr(at, words)) != NULL; at++)
        count++;
    return count;
}

bool begins(const char *command, const char *word)
{
    return strncmp(command, word, strlen(word)) == 0;
}

/* Replies that no test need repeat. */
const char *usual(const char *command)
{
    if (begins(command, "HELLO"))
        return "%1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n";
    if (begins(command, "SUBSCRIBE leasehold:0:wake"))
        return ">3\r\n$9\r\nsubscribe\r\n$1\r\nw\r\n:1\r\n";
    if (begins(command, "SUBSCRIBE"))
        return ">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n";
    return NULL;
}

/* ---- the client ---- */

struct fake_client heard;

static void on_reply(void *caller, const struct store_reply *reply)
{
    (void)caller;
    heard.reply = *reply;
    heard.count++;
    (void)snprintf(heard.why, sizeof heard.why, "%s", reply->why != NULL ? reply->why : "");
    if (reply->present && reply->length > 0 && reply->length < sizeof heard.bytes)
        memcpy(heard.bytes, reply->bytes, reply->length);
}

void open_store(const char *options)
{
    char url[256], why[256];
    struct text text;
    struct store_callbacks site = {.session = 7, .timeout_ms = timeout_ms};
    (void)snprintf(url, sizeof url, "redis://:the-password@127.0.0.1:%u%s", (unsigned)server.port,
                   options);
    text_init(&text, why, sizeof why);
    assert_true(redis_driver.open(redis, url, &site, &text));
}

void close_store(void)
{
    redis_driver.close(redis);
    for (size_t i = 0; i < server.connection_count; i++)
        if (server.connections[i].file >= 0)
            hang_up(i);
    server.connection_count = 0;
    server.said[0] = '\0';
}

void submit_request(const struct store_request *request)
{
    redis_driver.submit(redis, request, on_reply, NULL);
}

void submit(enum store_verb verb, const char *key, uint64_t revision, const char *bytes)
{
    struct store_request request = {.verb = verb, .key = key, .bytes = bytes};
    static struct record written;
    struct codec_error error;
    request.length = bytes != NULL ? strlen(bytes) : 0;
    if (bytes != NULL && record_decode(bytes, request.length, &written, &error) == DECODE_OK)
        summarize_record(&written, /* session= */ 7, &request.summary);
    request.condition = (struct condition){.kind = IF_REVISION, .revision = revision};
    submit_request(&request);
}

void until_heard(unsigned count)
{
    for (int64_t end_ms = host_boot_ms() + WAIT; heard.count < count;) {
        assert_true(host_boot_ms() < end_ms);
        turn();
    }
}

const char *with_a_waiter(void)
{
    static char bytes[RECORD_MAX + 1];
    record_init(&record, "k");
    struct waiter *waiter = record_add_waiter(&record);
    (void)snprintf(waiter->holder, sizeof waiter->holder, "me");
    (void)snprintf(waiter->request, sizeof waiter->request, "r");
    waiter->session = 7;
    waiter->ttl_ms = 1000;
    waiter->ticket = record.next_ticket++;
    bytes[record_encode(&record, bytes, sizeof bytes)] = '\0';
    return bytes;
}

int set_up(void **state)
{
    (void)state;
    memset(&heard, 0, sizeof heard);
    timeout_ms = TIMEOUT;
    redis = malloc(redis_driver.state_size);
    open_server();
    return redis == NULL;
}

int take_down(void **state)
{
    (void)state;
    close_store();
    free(redis);
    (void)close(server.listening);
    return 0;
}
