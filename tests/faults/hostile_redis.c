/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See hostile.h: a Redis server that turns hostile at its nth reply. It proxies a real one, a
 * server for each worker, so that everything before that reply is correct. It also acts as a
 * cluster node and as a Sentinel, by answering the commands that the real server does not know.
 */
#include "hostile_redis.h"

#include "base/text.h"
#include "store/redis/redis_internal.h"
#include "wire/resp.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UP_MS = 10000, SCRIPT_SIZE = 65536, BULK_MOST = 64 << 20 };

#define CLUSTERED "?protocol=3&cluster"
#define SENTINEL  "?sentinel=m"
#define FORGETS   "?protocol=3&forgets"

static const char *const modes[] = {"", "?scripts=no", "?protocol=2", FORGETS, CLUSTERED, SENTINEL};

static struct {
    struct wire *wire;
    pid_t pid;
    uint16_t port;
    int control;
    size_t verb;
    const char *mode;
    const struct variant *variant;
    unsigned nth, replies;
    bool always, hit;
    struct bytes last; /* the previous good reply */
} server;

/* ---- the real server ---- */

static uint16_t free_port(void)
{
    struct wire probe = {0};
    if (!wire_open(&probe))
        return 0;
    wire_close(&probe);
    return probe.port;
}

static void play_server(const char *folder)
{
    char port[16];
    int log = open("/dev/null", O_RDWR);
    (void)snprintf(port, sizeof port, "%u", server.port);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && chdir(folder) == 0 &&
        dup2(log, STDOUT_FILENO) >= 0)
        (void)execlp("redis-server", "redis-server", "--bind", "127.0.0.1", "--port", port,
                     "--save", "", "--appendonly", "no", "--databases", "128", NULL);
    _exit(127);
}

/* Sends a command with its arguments, and reads the whole reply. */
static bool command(const char *const *args, struct bytes *out)
{
    struct bytes said = {0};
    struct resp resp = {.bulk_max = BULK_MOST, .items_max = BULK_MOST};
    char head[RESP_HEAD_MAX], piece[65536];
    size_t count = 0, size = 0;
    while (args[count] != NULL)
        count++;
    bytes_add(&said, head, resp_head('*', count, head));
    for (size_t i = 0; i < count; i++) {
        bytes_add(&said, head, resp_head('$', strlen(args[i]), head));
        bytes_add_text(&said, args[i]);
        bytes_add_text(&said, "\r\n");
    }
    bool good = send(server.control, said.at, said.length, MSG_NOSIGNAL) == (ssize_t)said.length;
    bytes_free(&said);
    while (good &&
           (out->length == 0 || resp_feed(&resp, out->at, out->length, &size) == RESP_MORE)) {
        ssize_t got = recv(server.control, piece, sizeof piece, 0);
        good = got > 0;
        if (good)
            bytes_add(out, piece, (size_t)got);
    }
    good = good && out->at[0] != '-';
    if (!good)
        fprintf(stderr, "# %s: %s\n", args[0], out->at != NULL ? out->at : "no reply");
    bytes_free(out);
    return good;
}

static bool start(struct wire *wire, const char *folder, size_t number);

static void stop(void)
{
    (void)close(server.control);
    (void)kill(server.pid, SIGKILL);
    (void)waitpid(server.pid, NULL, 0);
    bytes_free(&server.last);
}

/* Restores the data after the setup of that verb; the program works in database 0. */
static void restore(size_t verb)
{
    static const char script[] =
        "redis.call('SELECT', ARGV[1]) local keys = redis.call('KEYS', '*')"
        " redis.call('SELECT', 0) redis.call('FLUSHDB') redis.call('SELECT', ARGV[1])"
        " for _, key in ipairs(keys) do redis.call('COPY', key, key, 'DB', 0) end return 1";
    char db[16];
    struct bytes reply = {0};
    (void)snprintf(db, sizeof db, "%zu", verb + 1);
    const char *const args[] = {"EVAL", script, "0", db, NULL};
    server.verb = verb;
    (void)command(args, &reply);
}

static void keep(size_t verb)
{
    (void)verb; /* it is in its own database already */
}

/* Loads or flushes the script, as the mode says. */
static void set_script(const char *mode)
{
    static char text[SCRIPT_SIZE];
    struct text script;
    struct bytes reply = {0};
    text_init(&script, text, sizeof text);
    redis_script(&script);
    const char *const forgets[] = {"SCRIPT", "FLUSH", NULL};
    const char *const loads[] = {"SCRIPT", "LOAD", text, NULL};
    (void)command(strcmp(mode, FORGETS) == 0 ? forgets : loads, &reply);
}

static void store_of(char out[STORE_SIZE], const char *mode, bool direct)
{
    const char *end = strchr(mode, '&');
    if (direct) {
        (void)snprintf(out, STORE_SIZE, "redis://127.0.0.1:%u/%zu", server.port, server.verb + 1);
        return;
    }
    server.mode = mode;
    set_script(mode);
    (void)snprintf(out, STORE_SIZE, "redis://127.0.0.1:%u%.*s", server.wire->port,
                   end != NULL ? (int)(end - mode) : (int)strlen(mode), mode);
}

static void arm(const struct variant *variant, unsigned nth, bool always)
{
    server.variant = variant;
    server.nth = nth;
    server.always = always;
    server.replies = 0;
    server.hit = false;
}

static unsigned replies(bool *out_hit)
{
    *out_hit = server.hit;
    return server.replies;
}

/* ---- changing replies ---- */

static size_t length_of(const struct variant *variant)
{
    return variant->length > 0     ? variant->length
           : variant->text != NULL ? strlen(variant->text)
                                   : 0;
}

/* Replaces the part of that number, including nested parts, with those bytes. */
static void change_item(const char *message, size_t length, int64_t number, const char *text,
                        size_t text_length, bool bulk, struct bytes *out)
{
    struct resp_walk walk = {.bytes = message, .length = length};
    struct resp_item item;
    char head[RESP_HEAD_MAX];
    size_t from = 0;
    for (int64_t i = 0; resp_next(&walk, &item); i++) {
        if (i == number) {
            resp_skip(&walk, &item);
            if (bulk)
                bytes_add(out, head, resp_head('$', text_length, head));
            bytes_add(out, text, text_length);
            if (bulk)
                bytes_add_text(out, "\r\n");
        } else {
            bytes_add(out, message + from, walk.at - from);
        }
        from = walk.at;
    }
}

static bool begins(const char *message, const char *with)
{
    return with == NULL || strncmp(message, with, strlen(with)) == 0;
}

static void change_texts(const char *message, size_t length, const char *text, const char *more,
                         struct bytes *out)
{
    struct resp_walk walk = {.bytes = message, .length = length};
    struct resp_item item;
    char head[RESP_HEAD_MAX];
    for (size_t from = 0; resp_next(&walk, &item); from = walk.at) {
        const char *found = item.kind == RESP_TEXT && message[from] == '$' && item.length > 0
                                ? memmem(item.text, item.length, text, strlen(text))
                                : NULL;
        if (found == NULL) {
            bytes_add(out, message + from, walk.at - from);
            continue;
        }
        size_t before = (size_t)(found - item.text), after = before + strlen(text);
        bytes_add(out, head, resp_head('$', item.length - strlen(text) + strlen(more), head));
        bytes_add(out, item.text, before);
        bytes_add_text(out, more);
        bytes_add(out, item.text + after, item.length - after);
        bytes_add_text(out, "\r\n");
    }
}

static void change_long(const struct variant *variant, const char *message, size_t length,
                        struct bytes *out)
{
    char head[RESP_HEAD_MAX];
    size_t each = length_of(variant), size = (size_t)variant->number;
    switch ((enum redis_action)variant->action) {
    case HOSTILE_LONG:
        bytes_add(out, head, resp_head('$', size / each * each, head));
        for (size_t i = 0; i < size / each; i++)
            bytes_add(out, variant->text, each);
        bytes_add_text(out, "\r\n");
        return;
    case HOSTILE_NEST:
        for (size_t i = 0; i < size; i++)
            bytes_add(out, variant->text, each);
        bytes_add(out, message, length);
        return;
    default: /* HOSTILE_BEFORE */
        for (size_t i = 0; i < (size > 0 ? size : 1); i++)
            bytes_add(out, variant->text, each);
        bytes_add(out, message, length);
        return;
    }
}

/* The bytes that replace the message. */
static void change(struct conn *conn, const struct variant *variant, const char *message,
                   size_t length, struct bytes *out)
{
    int64_t at = variant->number < 0 ? (int64_t)length + variant->number : variant->number;
    switch ((enum redis_action)variant->action) {
    case HOSTILE_SAY:
        bytes_add(out, variant->text, length_of(variant));
        break;
    case HOSTILE_BEFORE:
    case HOSTILE_LONG:
    case HOSTILE_NEST:
        change_long(variant, message, length, out);
        break;
    case HOSTILE_AFTER:
        bytes_add(out, message, length);
        bytes_add(out, variant->text, length_of(variant));
        break;
    case HOSTILE_CUT:
        bytes_add(out, message, at < 0 ? 0 : (size_t)at < length ? (size_t)at : length);
        break;
    case HOSTILE_DRIP:
        conn_drip(conn);
        if (variant->text != NULL)
            bytes_add(out, variant->text, length_of(variant));
        else
            bytes_add(out, message, length);
        break;
    case HOSTILE_ENDLESS:
        bytes_add(out, variant->text, length_of(variant));
        conn->endless = variant->more;
        conn->endless_length = strlen(variant->more);
        if (variant->number > 0)
            conn_drip(conn);
        break;
    case HOSTILE_ITEM:
    case HOSTILE_BULK:
        change_item(message, length, begins(message, variant->more) ? variant->number : -1,
                    variant->text, length_of(variant), variant->action == HOSTILE_BULK, out);
        break;
    case HOSTILE_SWAP:
        change_texts(message, length, variant->text, variant->more, out);
        break;
    case HOSTILE_DOUBLE:
        bytes_add(out, message, length);
        bytes_add(out, message, length);
        break;
    case HOSTILE_DROP:
        break;
    case HOSTILE_REPLAY:
        bytes_add(out, server.last.at, server.last.length);
        break;
    case HOSTILE_FLIP:
        bytes_add(out, message, length);
        out->at[at >= 0 && (size_t)at < length ? (size_t)at : length - 1] ^= 0x15;
        break;
    }
}

/* A cluster of one node, and its Sentinel, as far as the driver queries them. */
static bool play_others(const char *message, size_t length, struct bytes *out)
{
    char text[256], port[16];
    int digits = snprintf(port, sizeof port, "%u", server.wire->port);
    bool map = memmem(message, length, "cluster support disabled", 24) != NULL;
    bool guide = memmem(message, length, "unknown command 'SENTINEL'", 26) != NULL;
    if (message[0] == '-' && map)
        (void)snprintf(text, sizeof text,
                       "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%s\r\n", port);
    else if (message[0] == '-' && guide)
        (void)snprintf(text, sizeof text, "*2\r\n$9\r\n127.0.0.1\r\n$%d\r\n%s\r\n", digits, port);
    else if (strcmp(server.mode, CLUSTERED) == 0 && message[0] == '%')
        return change_texts(message, length, "standalone", "cluster", out), true;
    else
        return false;
    bytes_add_text(out, text);
    return true;
}

static void send_reply(struct conn *conn, const char *message, size_t length)
{
    struct bytes played = {0}, changed = {0};
    const struct variant *variant = server.variant;
    if (play_others(message, length, &played) && played.at != NULL) {
        message = played.at;
        length = played.length;
    }
    server.replies++;
    bool now = variant != NULL &&
               (server.always ? server.replies >= server.nth : server.replies == server.nth);
    if (!now) {
        bytes_add(&conn->out, message, length);
    } else {
        change(conn, variant, message, length, &changed);
        server.hit = server.hit || changed.length != length || variant->ending != END_NOT ||
                     conn->endless != NULL || conn->drips_at_ms != 0 || changed.at == NULL ||
                     memcmp(changed.at, message, length) != 0;
        bytes_add(&conn->out, changed.at, changed.length);
        conn->ending = variant->ending;
        conn->deaf = variant->ending != END_NOT || conn->endless != NULL;
    }
    bytes_take(&server.last, server.last.length);
    bytes_add(&server.last, message, length);
    bytes_free(&changed);
    bytes_free(&played);
}

/* ---- connections ---- */

static bool opened(struct conn *conn)
{
    conn->up = wire_connect(server.port);
    return conn->up >= 0;
}

static void came(struct conn *conn)
{
    struct resp resp = {.bulk_max = BULK_MOST, .items_max = BULK_MOST};
    size_t size = 0;
    if (conn->in.length > 0 &&
        send(conn->up, conn->in.at, conn->in.length, MSG_NOSIGNAL) == (ssize_t)conn->in.length)
        bytes_take(&conn->in, conn->in.length);
    while (!conn->deaf && conn->up_in.length > 0 &&
           resp_feed(&resp, conn->up_in.at, conn->up_in.length, &size) == RESP_WHOLE) {
        send_reply(conn, conn->up_in.at, size);
        bytes_take(&conn->up_in, size);
    }
}

static bool start(struct wire *wire, const char *folder, size_t number)
{
    struct bytes reply = {0};
    const char *const ping[] = {"PING", NULL};
    (void)number;
    wire->opened = opened;
    wire->came = came;
    server.wire = wire;
    server.control = -1;
    server.mode = "";
    server.port = free_port();
    server.pid = fork();
    if (server.pid == 0)
        play_server(folder);
    for (int64_t end_ms = wire_now_ms() + UP_MS; server.control < 0 && wire_now_ms() < end_ms;) {
        (void)poll(NULL, 0, /* timeout= */ 10);
        server.control = wire_connect(server.port);
    }
    return server.control >= 0 && command(ping, &reply);
}

int main(int argc, char **argv)
{
    const struct suite suite = {.name = "hostile_redis",
                                .store = ON_REDIS,
                                .variants = redis_variants,
                                .variant_count = redis_variant_count,
                                .modes = modes,
                                .mode_count = sizeof modes / sizeof modes[0],
                                .start = start,
                                .stop = stop,
                                .store_of = store_of,
                                .keep = keep,
                                .restore = restore,
                                .arm = arm,
                                .replies = replies};
    return hostile_main(&suite, argc, argv);
}
