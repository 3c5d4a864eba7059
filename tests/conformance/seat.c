/* SPDX-License-Identifier: Apache-2.0 */
/* See seat.h. A seat's process opens its store itself, and ends with the suite. */
#include "seat.h"

#include "chair.h"
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

enum { SEAT_WITHIN_MS = 20000, REPLIES_MAX = 8 };

struct seat {
    uint64_t session;
    pid_t process; /* 0: none */
    int line;
    struct packet out;
    /* When it is in this process: what stands behind it, and what was not received yet. */
    struct chair chair;
    size_t reply_count;
    struct packet replies[REPLIES_MAX];
};

static struct {
    const struct store_driver *driver;
    const char *url;
    unsigned processes, count;
    struct seat seats[SEATS_MAX];
} table;

/* With two processes the suite is one of them: only seat 1 is elsewhere. */
static bool is_apart(const struct seat *seat)
{
    return table.processes > 2 || (table.processes == 2 && seat == &table.seats[1]);
}

static struct seat *seat_at(unsigned seat)
{
    return &table.seats[seat % table.count];
}

unsigned seats_count(void)
{
    return table.count;
}

bool seats_are_processes(void)
{
    return table.processes > 2;
}

uint64_t seat_session(unsigned seat)
{
    return seat_at(seat)->session;
}

/* In the child: an order, its outcome, until the suite hangs up. */
_Noreturn static void serve(int line)
{
    struct chair chair = {.driver = table.driver, .url = table.url};
    struct packet in = {0}, out = {0};
    while (packet_receive(&in, line, /* patience_ms= */ -1)) {
        chair_serve(&chair, &in, &out);
        if (!packet_send(&out, line))
            break;
    }
    chair_done(&chair);
    packet_done(&in);
    packet_done(&out);
    exit(EXIT_SUCCESS);
}

/* The lines of the others are not ours: while we hold one, its seat cannot see the suite go. */
static void forget_others(void)
{
    for (unsigned i = 0; i < table.count; i++) {
        if (table.seats[i].process != 0)
            (void)close(table.seats[i].line);
        packet_done(&table.seats[i].out);
    }
    suite_forget();
}

static void start_process(struct seat *seat)
{
    int lines[2];
    (void)fflush(stdout); /* or the child would say it again */
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
    seat->process = process;
    seat->line = lines[0];
}

/* Orders. */

static void order(struct seat *seat, enum chair_order what, uint64_t first, int64_t second)
{
    packet_clear(&seat->out);
    packet_put(&seat->out, what);
    packet_put(&seat->out, first);
    packet_put(&seat->out, (uint64_t)second);
}

static void put_through(struct seat *seat)
{
    seat->out.at = 0;
    if (is_apart(seat)) {
        EXPECT(seat->process != 0 && packet_send(&seat->out, seat->line));
        return;
    }
    ASSERT(seat->reply_count < REPLIES_MAX);
    chair_serve(&seat->chair, &seat->out, &seat->replies[seat->reply_count++]);
}

/* The next reply, in memory of the case. */
static struct packet hear(struct seat *seat)
{
    struct packet reply = {0};
    if (is_apart(seat)) {
        EXPECT(packet_receive(&reply, seat->line, SEAT_WITHIN_MS));
    } else {
        ASSERT(seat->reply_count > 0);
        reply = seat->replies[0];
        seat->reply_count--;
        memmove(seat->replies, seat->replies + 1, seat->reply_count * sizeof reply);
        seat->replies[seat->reply_count] = (struct packet){0};
    }
    struct packet kept = {.bytes = suite_keep(reply.bytes, reply.length), .length = reply.length};
    packet_done(&reply);
    return kept;
}

static struct tidings learn(struct seat *seat)
{
    struct packet in = hear(seat);
    const char *failure = packet_next_words(&in);
    if (failure != NULL)
        suite_fail(failure);
    struct tidings tidings = {.count = packet_next(&in)};
    struct tiding *list = suite_keep(NULL, tidings.count * sizeof *list);
    for (size_t i = 0; i < tidings.count; i++)
        packet_next_answer(&in, &list[i].of, &list[i].answer);
    tidings.list = list;
    return tidings;
}

static void send_requests(struct seat *seat, enum chair_order what,
                          const struct store_request *requests, size_t count)
{
    packet_clear(&seat->out);
    packet_put(&seat->out, what);
    packet_put(&seat->out, count);
    for (size_t i = 0; i < count; i++)
        packet_put_request(&seat->out, &requests[i]);
    put_through(seat);
}

void seat_send(unsigned seat, const struct store_request *requests, size_t count)
{
    send_requests(seat_at(seat), CHAIR_ASK, requests, count);
}

struct tidings seat_chain(unsigned seat, const struct store_request *requests, size_t count)
{
    send_requests(seat_at(seat), CHAIR_CHAIN, requests, count);
    return learn(seat_at(seat));
}

void seat_drop(unsigned seat, const struct store_request *requests, size_t count)
{
    send_requests(seat_at(seat), CHAIR_DROP, requests, count);
    (void)learn(seat_at(seat));
}

struct tidings seat_receive(unsigned seat)
{
    return learn(seat_at(seat));
}

static struct tidings obtain(unsigned number, enum chair_order what, uint64_t first, int64_t second)
{
    struct seat *seat = seat_at(number);
    order(seat, what, first, second);
    put_through(seat);
    return learn(seat);
}

struct tidings seat_changes(unsigned seat, size_t wanted, int64_t wait_ms)
{
    return obtain(seat, CHAIR_CHANGES, wanted, wait_ms);
}

struct tidings seat_notices(unsigned seat, size_t wanted, int64_t wait_ms)
{
    return obtain(seat, CHAIR_NOTICES, wanted, wait_ms);
}

void seat_close(unsigned seat)
{
    (void)obtain(seat, CHAIR_CLOSE, 0, 0);
}

void seat_open(unsigned seat)
{
    uint64_t session = suite_random() | 1;
    seat_at(seat)->session = session;
    (void)obtain(seat, CHAIR_OPEN, session, 0);
}

void seat_kill(unsigned seat)
{
    struct seat *killed = seat_at(seat);
    if (killed->process == 0)
        return;
    (void)kill(killed->process, SIGKILL);
    (void)waitpid(killed->process, NULL, 0);
    (void)close(killed->line);
    killed->process = 0;
}

void seat_replace(unsigned seat)
{
    start_process(seat_at(seat));
    seat_open(seat);
}

bool seats_have_heirs(void)
{
    return table.driver->liveness != NULL;
}

pid_t seat_heir(unsigned seat)
{
    struct tidings tidings = obtain(seat, CHAIR_HEIR, 0, 0);
    EXPECT(tidings.count == 1);
    return (pid_t)tidings.list[0].of;
}

/* Its parent is dead, so it has become ours. */
void heir_kill(pid_t heir)
{
    (void)kill(heir, SIGKILL);
    (void)waitpid(heir, NULL, 0);
}

void seats_open(const struct store_driver *driver, const char *url, unsigned processes)
{
    bool shared = (driver->capabilities & STORE_DURABLE) != 0;
    ASSERT(processes >= 1 && processes <= SEATS_MAX);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1); /* heirs outlive their seats */
    table.driver = driver;
    table.url = url;
    table.processes = processes;
    table.count = processes > 2 ? processes : shared ? SEATS_MIN : 1;
    for (unsigned i = 0; i < table.count; i++)
        table.seats[i].chair = (struct chair){.driver = driver, .url = url};
    for (unsigned i = 0; i < table.count; i++)
        if (is_apart(&table.seats[i]))
            seat_replace(i);
        else
            seat_open(i);
}

/* A process that is let go closes its store and shows what it leaked. */
static void end_process(struct seat *seat)
{
    int status = 0;
    if (seat->process == 0)
        return;
    (void)shutdown(seat->line, SHUT_WR);
    (void)waitpid(seat->process, &status, 0);
    (void)close(seat->line);
    seat->process = 0;
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
}

void seats_close(void)
{
    for (unsigned i = 0; i < table.count; i++) {
        struct seat *seat = &table.seats[i];
        end_process(seat);
        chair_done(&seat->chair);
        packet_done(&seat->out);
    }
}

void seats_renew(void)
{
    for (unsigned i = 0; i < table.count; i++) {
        struct seat *seat = &table.seats[i];
        seat_kill(i);
        chair_done(&seat->chair);
        while (seat->reply_count > 0)
            packet_done(&seat->replies[--seat->reply_count]);
    }
    seats_open(table.driver, table.url, table.processes);
}
