/* SPDX-License-Identifier: Apache-2.0 */
/* See client.h. A client's process opens its store itself, and ends with the suite. */
#include "client.h"

#include "endpoint.h"
#include "suite.h"

#include "base/check.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CLIENT_TIMEOUT_MS = 20000, REPLIES_MAX = 8 };

struct client {
    uint64_t session;
    pid_t process; /* 0: none */
    int line;
    struct packet out;
    /* In this process: its endpoint, and the replies that were not received yet. */
    struct endpoint endpoint;
    size_t reply_count;
    struct packet replies[REPLIES_MAX];
};

static struct {
    const struct store_driver *driver;
    const char *url;
    unsigned processes, count;
    struct client clients[CLIENTS_MAX];
} table;

/* With two processes the suite is one of them: only client 1 is in a child. */
static bool is_separate(const struct client *client)
{
    return table.processes > 2 || (table.processes == 2 && client == &table.clients[1]);
}

static struct client *client_at(unsigned client)
{
    return &table.clients[client % table.count];
}

unsigned clients_count(void)
{
    return table.count;
}

bool clients_are_processes(void)
{
    return table.processes > 2;
}

bool clients_can_be_killed(void)
{
    bool outside = (table.driver->capabilities & STORE_DURABLE) != 0;
    return clients_are_processes() || (!outside && table.count > 1);
}

uint64_t client_session(unsigned client)
{
    return client_at(client)->session;
}

/* In the child: executes orders until the suite closes the socket. */
_Noreturn static void serve(int line)
{
    struct endpoint endpoint = {.driver = table.driver, .url = table.url};
    struct packet in = {0}, out = {0};
    while (packet_receive(&in, line, /* timeout_ms= */ -1)) {
        endpoint_serve(&endpoint, &in, &out);
        if (!packet_send(&out, line))
            break;
    }
    endpoint_done(&endpoint);
    packet_done(&in);
    packet_done(&out);
    exit(EXIT_SUCCESS);
}

/* Closes the sockets of the other clients: a copy would hide the end of the suite from them. */
static void forget_others(void)
{
    for (unsigned i = 0; i < table.count; i++) {
        if (table.clients[i].process != 0)
            (void)close(table.clients[i].line);
        packet_done(&table.clients[i].out);
    }
    suite_forget();
}

static void start_process(struct client *client)
{
    int lines[2];
    (void)fflush(stdout); /* or the child would print it again */
    int error = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, lines);
    ASSERT(error == 0);
    pid_t suite = getpid(), process = fork();
    ASSERT(process >= 0);
    if (process == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != suite)
            _exit(EXIT_FAILURE);
        (void)close(lines[0]);
        forget_others();
        serve(lines[1]);
    }
    (void)close(lines[1]);
    client->process = process;
    client->line = lines[0];
}

/* Orders. */

static void put_order(struct client *client, enum endpoint_order what, uint64_t first,
                      int64_t second)
{
    packet_clear(&client->out);
    packet_put(&client->out, what);
    packet_put(&client->out, first);
    packet_put(&client->out, (uint64_t)second);
}

static void send_order(struct client *client)
{
    client->out.at = 0;
    if (is_separate(client)) {
        EXPECT(client->process != 0 && packet_send(&client->out, client->line));
        return;
    }
    ASSERT(client->reply_count < REPLIES_MAX);
    endpoint_serve(&client->endpoint, &client->out, &client->replies[client->reply_count++]);
}

/* The next reply, in memory of the case. */
static struct packet next_reply(struct client *client)
{
    struct packet reply = {0};
    if (is_separate(client)) {
        EXPECT(packet_receive(&reply, client->line, CLIENT_TIMEOUT_MS));
    } else {
        ASSERT(client->reply_count > 0);
        reply = client->replies[0];
        client->reply_count--;
        memmove(client->replies, client->replies + 1, client->reply_count * sizeof reply);
        client->replies[client->reply_count] = (struct packet){0};
    }
    struct packet kept = {.bytes = suite_keep(reply.bytes, reply.length), .length = reply.length};
    packet_done(&reply);
    return kept;
}

static struct client_replies receive_replies(struct client *client)
{
    struct packet in = next_reply(client);
    const char *failure = packet_next_text(&in);
    if (failure != NULL)
        suite_fail(failure);
    struct client_replies client_replies = {.count = packet_next(&in)};
    struct client_reply *list = suite_keep(NULL, client_replies.count * sizeof *list);
    for (size_t i = 0; i < client_replies.count; i++)
        packet_next_answer(&in, &list[i].of, &list[i].reply);
    client_replies.list = list;
    return client_replies;
}

static void send_requests(struct client *client, enum endpoint_order what,
                          const struct store_request *requests, size_t count)
{
    packet_clear(&client->out);
    packet_put(&client->out, what);
    packet_put(&client->out, count);
    for (size_t i = 0; i < count; i++)
        packet_put_request(&client->out, &requests[i]);
    send_order(client);
}

void client_send(unsigned client, const struct store_request *requests, size_t count)
{
    send_requests(client_at(client), ENDPOINT_SUBMIT, requests, count);
}

struct client_replies client_chain(unsigned client, const struct store_request *requests,
                                   size_t count)
{
    send_requests(client_at(client), ENDPOINT_CHAIN, requests, count);
    return receive_replies(client_at(client));
}

void client_drop(unsigned client, const struct store_request *requests, size_t count)
{
    send_requests(client_at(client), ENDPOINT_DROP, requests, count);
    (void)receive_replies(client_at(client));
}

struct client_replies client_receive(unsigned client)
{
    return receive_replies(client_at(client));
}

static struct client_replies execute(unsigned number, enum endpoint_order what, uint64_t first,
                                     int64_t second)
{
    struct client *client = client_at(number);
    put_order(client, what, first, second);
    send_order(client);
    return receive_replies(client);
}

struct client_replies client_changes(unsigned client, size_t wanted, int64_t wait_ms)
{
    return execute(client, ENDPOINT_CHANGES, wanted, wait_ms);
}

struct client_replies client_notices(unsigned client, size_t wanted, int64_t wait_ms)
{
    return execute(client, ENDPOINT_NOTICES, wanted, wait_ms);
}

void client_close(unsigned client)
{
    (void)execute(client, ENDPOINT_CLOSE, 0, 0);
}

void client_open(unsigned client)
{
    uint64_t session = suite_random() | 1;
    client_at(client)->session = session;
    (void)execute(client, ENDPOINT_OPEN, session, 0);
}

void client_kill(unsigned client)
{
    struct client *killed = client_at(client);
    if (!is_separate(killed))
        endpoint_done(&killed->endpoint);
    if (killed->process == 0)
        return;
    (void)kill(killed->process, SIGKILL);
    (void)waitpid(killed->process, NULL, 0);
    (void)close(killed->line);
    killed->process = 0;
}

void client_replace(unsigned client)
{
    if (is_separate(client_at(client)))
        start_process(client_at(client));
    client_open(client);
}

bool clients_have_inheritors(void)
{
    return table.driver->liveness != NULL;
}

pid_t client_inheritor(unsigned client)
{
    struct client_replies client_replies = execute(client, ENDPOINT_INHERITOR, 0, 0);
    EXPECT(client_replies.count == 1);
    return (pid_t)client_replies.list[0].of;
}

/* Its parent is dead, so this process has adopted it. */
void inheritor_kill(pid_t inheritor)
{
    (void)kill(inheritor, SIGKILL);
    (void)waitpid(inheritor, NULL, 0);
}

void clients_open(const struct store_driver *driver, const char *url, unsigned processes)
{
    bool shared = (driver->capabilities & (STORE_DURABLE | STORE_SESSIONS)) != 0;
    ASSERT(processes >= 1 && processes <= CLIENTS_MAX);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1); /* inheritors outlive their clients */
    table.driver = driver;
    table.url = url;
    table.processes = processes;
    table.count = processes > 2 ? processes : shared ? CLIENTS_MIN : 1;
    for (unsigned i = 0; i < table.count; i++)
        table.clients[i].endpoint = (struct endpoint){.driver = driver, .url = url};
    for (unsigned i = 0; i < table.count; i++)
        client_replace(i);
}

/* A process that ends normally closes its store and reports its leaks. */
static void end_process(struct client *client)
{
    int status = 0;
    if (client->process == 0)
        return;
    (void)shutdown(client->line, SHUT_WR);
    (void)waitpid(client->process, &status, 0);
    (void)close(client->line);
    client->process = 0;
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
}

void clients_close(void)
{
    for (unsigned i = 0; i < table.count; i++) {
        struct client *client = &table.clients[i];
        end_process(client);
        endpoint_done(&client->endpoint);
        packet_done(&client->out);
    }
}

void clients_restart(void)
{
    for (unsigned i = 0; i < table.count; i++) {
        struct client *client = &table.clients[i];
        client_kill(i);
        endpoint_done(&client->endpoint);
        while (client->reply_count > 0)
            packet_done(&client->replies[--client->reply_count]);
    }
    clients_open(table.driver, table.url, table.processes);
}
