/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fault proxy: proxy --to PORT [--seed N] [--control PATH]. It listens on a free port of the
 * loopback, prints "port N", and forwards everything to PORT. Commands come as lines on stdin, and
 * from clients of the control socket; each is answered by "ok …" or "what? …" once it is in force,
 * and the effects of a fault are printed on stdout. It ends with its stdin.
 *
 *   pass              no faults; data that were held are forwarded
 *   delay LEAST MOST  every piece, both ways, by that many milliseconds
 *   cut               all connections, now
 *   cut WAY N         the first connection that carried N bytes more that way (up or down)
 *   hold WAY          nothing arrives until `pass`
 *   drop WAY          data sent from now on are discarded
 *   refuse | accept   new connections
 *   counts
 */
#include "proxy.h"

#include "process/host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    CONNECTIONS = 256,
    CONTROLS = 8,
    LINE = 128,
    DELAY_MOST_MS = 60000,
    FILES = 2 * CONNECTIONS + CONTROLS + 3
};

struct connection {
    int files[2]; /* the client's, the server's; −1: free */
    struct flow flows[PROXY_WAYS];
};

/* A source of commands. */
struct control {
    int in, out; /* −1: free */
    char line[LINE];
    size_t length;
};

static struct {
    int listening, control_listening;
    uint16_t to;
    bool refuses, over;
    struct proxy_faults faults;
    struct proxy_counts counts;
    struct connection connections[CONNECTIONS];
    struct control controls[CONTROLS + 1]; /* the first is stdin */
} proxy = {.listening = -1, .control_listening = -1};

static void fail(const char *what)
{
    (void)fprintf(stderr, "proxy: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- connections ---- */

static void close_hard(int file)
{
    struct linger linger = {.l_onoff = 1};
    (void)setsockopt(file, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    (void)close(file);
}

static void close_connection(struct connection *connection, bool reset)
{
    for (int i = 0; i < 2; i++) {
        if (reset)
            close_hard(connection->files[i]);
        else
            (void)close(connection->files[i]);
        connection->files[i] = -1;
        flow_done(&connection->flows[i]);
    }
}

static void cut(struct connection *connection)
{
    proxy.counts.cuts++;
    close_connection(connection, /* reset= */ true);
}

static struct connection *free_connection(void)
{
    for (size_t i = 0; i < CONNECTIONS; i++)
        if (proxy.connections[i].files[0] < 0)
            return &proxy.connections[i];
    return NULL;
}

/* −1 when the server does not listen. */
static int connect_server(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons(proxy.to)};
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (server < 0)
        return -1;
    if (connect(server, (struct sockaddr *)&address, sizeof address) == 0 &&
        fcntl(server, F_SETFL, O_NONBLOCK) == 0)
        return server;
    (void)close(server);
    return -1;
}

static void accept_client(void)
{
    struct connection *connection = free_connection();
    int client = accept4(proxy.listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0)
        return;
    int server = connection == NULL || proxy.refuses ? -1 : connect_server();
    if (server < 0) {
        close_hard(client);
        proxy.counts.refused++;
        return;
    }
    connection->files[0] = client;
    connection->files[1] = server;
    flow_init(&connection->flows[PROXY_UP], PROXY_UP, client, server);
    flow_init(&connection->flows[PROXY_DOWN], PROXY_DOWN, server, client);
    proxy.counts.connections++;
}

static void carry(struct connection *connection, const struct pollfd *polled, int64_t now_ms)
{
    bool fine = true;
    for (int way = 0; way < PROXY_WAYS && fine; way++) {
        struct flow *flow = &connection->flows[way];
        if ((polled[way].revents & (POLLIN | POLLHUP | POLLERR)) != 0 && flow_reads(flow))
            fine = flow_read(flow, &proxy.faults, &proxy.counts, now_ms);
        fine = fine && flow_write(flow, &proxy.faults, &proxy.counts, now_ms);
        if (fine && flow_is_over(flow) && !flow->shut) {
            flow->shut = true;
            (void)shutdown(flow->to, SHUT_WR);
        }
    }
    if (!fine)
        cut(connection);
    else if (flow_is_over(&connection->flows[PROXY_UP]) &&
             flow_is_over(&connection->flows[PROXY_DOWN]))
        close_connection(connection, /* reset= */ false);
}

/* ---- commands ---- */

static void cut_all(void)
{
    for (size_t i = 0; i < CONNECTIONS; i++)
        if (proxy.connections[i].files[0] >= 0)
            cut(&proxy.connections[i]);
}

static void clear_faults(void)
{
    struct random random = proxy.faults.random;
    proxy.faults = (struct proxy_faults){.random = random,
                                         .cut_at = {PROXY_NO_CUT, PROXY_NO_CUT},
                                         .generation = proxy.faults.generation + 1};
}

static size_t count_open(void)
{
    size_t count = 0;
    for (size_t i = 0; i < CONNECTIONS; i++)
        count += proxy.connections[i].files[0] >= 0 ? 1 : 0;
    return count;
}

static size_t count_held(int way)
{
    size_t count = 0;
    for (size_t i = 0; i < CONNECTIONS; i++)
        if (proxy.connections[i].files[0] >= 0)
            count += proxy.connections[i].flows[way].waiting;
    return count;
}

static void show_counts(char *words, size_t size)
{
    const struct proxy_counts *counts = &proxy.counts;
    (void)snprintf(words, size,
                   "connections=%llu open=%zu refused=%llu cuts=%llu up=%llu down=%llu "
                   "dropped_up=%llu dropped_down=%llu held_up=%zu held_down=%zu delayed=%llu",
                   (unsigned long long)counts->connections, count_open(),
                   (unsigned long long)counts->refused, (unsigned long long)counts->cuts,
                   (unsigned long long)counts->passed[PROXY_UP],
                   (unsigned long long)counts->passed[PROXY_DOWN],
                   (unsigned long long)counts->dropped[PROXY_UP],
                   (unsigned long long)counts->dropped[PROXY_DOWN], count_held(PROXY_UP),
                   count_held(PROXY_DOWN), (unsigned long long)counts->delayed);
}

static int way_of(const char *word)
{
    return strcmp(word, "up") == 0 ? PROXY_UP : strcmp(word, "down") == 0 ? PROXY_DOWN : -1;
}

static bool is_number(const char *word)
{
    return word[0] != '\0' && strspn(word, "0123456789") == strlen(word);
}

/* False when it is no command. */
static bool obey(const char *line)
{
    char copy[LINE], *rest = NULL;
    const char *words[4] = {"", "", "", ""};
    size_t count = 0;
    (void)snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok_r(copy, " ", &rest); word != NULL && count < 4;
         word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    struct proxy_faults *faults = &proxy.faults;
    const char *verb = words[0];
    int way = way_of(words[1]);
    uint64_t first = strtoull(words[1], NULL, 10), second = strtoull(words[2], NULL, 10);
    if (strcmp(verb, "pass") == 0 && count == 1) {
        clear_faults();
    } else if (strcmp(verb, "delay") == 0 && count == 3 && is_number(words[1]) &&
               is_number(words[2]) && first <= second && second <= DELAY_MOST_MS) {
        faults->delay_least_ms = (int64_t)first;
        faults->delay_most_ms = (int64_t)second;
    } else if (strcmp(verb, "cut") == 0 && count == 1) {
        cut_all();
    } else if (strcmp(verb, "cut") == 0 && count == 3 && way >= 0 && is_number(words[2])) {
        faults->cut_at[way] = second;
        faults->generation++;
    } else if (strcmp(verb, "hold") == 0 && count == 2 && way >= 0) {
        faults->holds[way] = true;
    } else if (strcmp(verb, "drop") == 0 && count == 2 && way >= 0) {
        faults->drops[way] = true;
    } else if ((strcmp(verb, "refuse") == 0 || strcmp(verb, "accept") == 0) && count == 1) {
        proxy.refuses = verb[0] == 'r';
    } else {
        return strcmp(verb, "counts") == 0 && count == 1;
    }
    return true;
}

static void reply(const struct control *control, const char *line)
{
    char words[512], counts[400] = "";
    bool obeyed = obey(line);
    show_counts(counts, sizeof counts);
    bool asked = strcmp(line, "counts") == 0;
    int length =
        snprintf(words, sizeof words, "%s %s\n", obeyed ? "ok" : "what?", asked ? counts : line);
    (void)fflush(stdout); /* earlier effects are printed first */
    for (int at = 0; at < length;) {
        ssize_t written = write(control->out, words + at, (size_t)(length - at));
        if (written <= 0)
            return;
        at += (int)written;
    }
}

static void end_control(struct control *control)
{
    proxy.over |= control == &proxy.controls[0];
    if (control != &proxy.controls[0])
        (void)close(control->in);
    control->in = control->out = -1;
    control->length = 0;
}

static void listen_to(struct control *control)
{
    ssize_t got = read(control->in, control->line + control->length, LINE - 1 - control->length);
    if (got <= 0) {
        end_control(control);
        return;
    }
    control->length += (size_t)got;
    control->line[control->length] = '\0';
    for (char *end; (end = strchr(control->line, '\n')) != NULL;) {
        *end = '\0';
        reply(control, control->line);
        control->length -= (size_t)(end + 1 - control->line);
        memmove(control->line, end + 1, control->length + 1);
    }
    if (control->length == LINE - 1)
        end_control(control);
}

static void accept_control(void)
{
    int file = accept4(proxy.control_listening, NULL, NULL, SOCK_CLOEXEC);
    for (size_t i = 1; i <= CONTROLS && file >= 0; i++) {
        if (proxy.controls[i].in < 0) {
            proxy.controls[i].in = proxy.controls[i].out = file;
            return;
        }
    }
    if (file >= 0)
        (void)close(file);
}

/* ---- the loop ---- */

static int64_t wait_for(const struct flow *flow, struct pollfd *polled, int64_t now_ms)
{
    int64_t due_ms = flow_due_ms(flow, &proxy.faults);
    polled[flow->way].fd = flow->from;
    if (flow_reads(flow))
        polled[flow->way].events |= POLLIN;
    if (due_ms <= now_ms)
        polled[1 - flow->way].events |= POLLOUT;
    return due_ms <= now_ms ? INT64_MAX : due_ms;
}

/* Collects the descriptors; returns the timeout in milliseconds, or −1. */
static int prepare(struct pollfd *polled, struct pollfd *others)
{
    int64_t now_ms = host_boot_ms(), due_ms = INT64_MAX;
    for (size_t i = 0; i < FILES; i++)
        polled[i] = (struct pollfd){.fd = -1};
    for (size_t i = 0; i < CONNECTIONS; i++) {
        for (int way = 0; way < PROXY_WAYS && proxy.connections[i].files[0] >= 0; way++) {
            int64_t at_ms = wait_for(&proxy.connections[i].flows[way], polled + 2 * i, now_ms);
            due_ms = at_ms < due_ms ? at_ms : due_ms;
        }
    }
    /* poll() would report a closed socket again and again. */
    for (size_t i = 0; i < (size_t)2 * CONNECTIONS; i++)
        polled[i].fd = polled[i].events != 0 ? polled[i].fd : -1;
    for (size_t i = 0; i <= CONTROLS; i++)
        others[i] = (struct pollfd){.fd = proxy.controls[i].in, .events = POLLIN};
    others[CONTROLS + 1] = (struct pollfd){.fd = proxy.listening, .events = POLLIN};
    others[CONTROLS + 2] = (struct pollfd){.fd = proxy.control_listening, .events = POLLIN};
    return due_ms == INT64_MAX ? -1 : (int)(due_ms - now_ms);
}

static void turn(void)
{
    struct pollfd polled[FILES], *others = polled + (size_t)2 * CONNECTIONS;
    int wait_ms = prepare(polled, others);
    if (poll(polled, FILES, wait_ms) < 0)
        return;
    for (size_t i = 0; i <= CONTROLS; i++)
        if (others[i].revents != 0 && proxy.controls[i].in >= 0)
            listen_to(&proxy.controls[i]);
    for (size_t i = 0; i < CONNECTIONS; i++)
        if (proxy.connections[i].files[0] >= 0)
            carry(&proxy.connections[i], polled + 2 * i, host_boot_ms());
    if (others[CONTROLS + 1].revents != 0)
        accept_client();
    if (others[CONTROLS + 2].revents != 0)
        accept_control();
    (void)fflush(stdout);
}

static void listen_for_clients(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    proxy.listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(proxy.listening, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(proxy.listening, 128) != 0 ||
        getsockname(proxy.listening, (struct sockaddr *)&address, &length) != 0)
        fail("cannot listen");
    printf("port %u\n", (unsigned)ntohs(address.sin_port));
    (void)fflush(stdout);
}

static void listen_for_commands(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    proxy.control_listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(proxy.control_listening, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(proxy.control_listening, CONTROLS) != 0)
        fail(path);
}

int main(int count, char **words)
{
    const char *control = NULL;
    char counts[400];
    for (int i = 1; i + 1 < count; i += 2) {
        if (strcmp(words[i], "--to") == 0)
            proxy.to = (uint16_t)strtoul(words[i + 1], NULL, 10);
        else if (strcmp(words[i], "--seed") == 0)
            proxy.faults.random.state = strtoull(words[i + 1], NULL, 10);
        else if (strcmp(words[i], "--control") == 0)
            control = words[i + 1];
    }
    if (proxy.to == 0) {
        (void)fprintf(stderr, "usage: proxy --to PORT [--seed N] [--control PATH]\n");
        return 64;
    }
    clear_faults();
    for (size_t i = 0; i < CONNECTIONS; i++)
        proxy.connections[i].files[0] = proxy.connections[i].files[1] = -1;
    for (size_t i = 0; i <= CONTROLS; i++)
        proxy.controls[i].in = proxy.controls[i].out = -1;
    proxy.controls[0].in = STDIN_FILENO;
    proxy.controls[0].out = STDOUT_FILENO;
    if (control != NULL)
        listen_for_commands(control);
    listen_for_clients();
    while (!proxy.over)
        turn();
    show_counts(counts, sizeof counts);
    printf("end %s\n", counts);
    for (size_t i = 0; i < CONNECTIONS; i++)
        if (proxy.connections[i].files[0] >= 0)
            close_connection(&proxy.connections[i], /* reset= */ false);
    if (control != NULL)
        (void)unlink(control);
    return 0;
}
