/* SPDX-License-Identifier: Apache-2.0 */
/* See redis_connection.h. Must not interpret the commands of others, only its own handshake. */
#include "store/redis/redis_connection.h"

#include "base/check.h"
#include "process/host.h"

#include <stdlib.h>
#include <string.h>

enum {
    BULK_MAX = 1024 * 1024,
    ITEMS_MAX = 64 * 1024,
    RECEIVE_MAX = 4 * 1024 * 1024,
    SEND_MAX = 64 * 1024 * 1024,
    BACKOFF_MIN_MS = 50,
    BACKOFF_MAX_MS = 5000,
    BACKOFF_REFUSED_MS = 250, /* at most: a refusal is cheap, and calls wait for the next */
    ERROR_SHOWN = 160,
    SHORT_ARG = 128,
};

enum { STEP_HELLO, STEP_AUTH, STEP_SELECT, STEP_ROLE, STEP_DONE };

/* ---- errors ---- */

/* The beginning of the error reply, its result, and its meaning with what to do. */
static const struct {
    const char *word;
    enum reply_status result;
    const char *means;
} errors[] = {
    {"NOPERM", REPLY_DENIED, "the user lacks a permission; extend its ACL"},
    {"WRONGPASS", REPLY_DENIED, "user or password are wrong"},
    {"NOAUTH", REPLY_DENIED, "it requires a password, and the URL or its file has none"},
    {"ERR The user executing the script", REPLY_DENIED,
     "the user lacks a permission; extend its ACL"},
    {"LOADING", REPLY_TROUBLE, "it is still loading its data"},
    {"READONLY", REPLY_TROUBLE, "it is a replica, which refuses writes; use the master"},
    {"MASTERDOWN", REPLY_TROUBLE, "it is a replica that has lost its master"},
    {"NOREPLICAS", REPLY_TROUBLE, "too few replicas are connected (min-replicas-to-write)"},
    {"OOM", REPLY_TROUBLE, "its memory is full (maxmemory); nothing was written"},
    {"MISCONF", REPLY_TROUBLE, "it cannot write to its disk and refuses all writes"},
    {"CLUSTERDOWN", REPLY_TROUBLE, "the cluster is down: not all slots are served"},
    {"TRYAGAIN", REPLY_TROUBLE, "the slot is being moved; try again"},
    {"MOVED", REPLY_TROUBLE, "the slot is on another node now"},
    {"ASK", REPLY_TROUBLE, "the slot is being moved to another node"},
    {"CROSSSLOT", REPLY_TROUBLE, "the names are not in one slot; connect without a proxy"},
    {"BUSY", REPLY_TROUBLE, "it is busy with a script that does not end"},
    {"NOSCRIPT", REPLY_TROUBLE, "it does not keep our script; try ?scripts=no"},
    {"WRONGTYPE", REPLY_TROUBLE, "a key of leasehold has a value of another program"},
};

const struct conn_error conn_no_memory = {.result = REPLY_TROUBLE, .why = "out of memory"};

static void conn_begin_why(struct redis_conn *conn, struct text *text)
{
    text_init(text, conn->why, sizeof conn->why);
    text_add(text, conn->host.name);
    text_add(text, ":");
    text_add_u64(text, conn->host.port);
    text_add(text, ": ");
}

struct conn_error conn_explain(struct redis_conn *conn, const struct resp_item *item)
{
    struct text text;
    struct conn_error error = {.result = REPLY_TROUBLE, .why = conn->why};
    /* The error for an unknown command repeats its arguments: with AUTH, a password. */
    const char *args = memmem(item->text, item->length, ", with args", sizeof ", with args" - 1);
    size_t length_shown = args != NULL ? (size_t)(args - item->text) : item->length;
    size_t shown = length_shown < ERROR_SHOWN ? length_shown : ERROR_SHOWN;
    conn_begin_why(conn, &text);
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        size_t length = strlen(errors[i].word);
        bool is_it = resp_begins(item, errors[i].word) &&
                     (item->length == length || item->text[length] == ' ');
        if (!is_it)
            continue;
        error.result = errors[i].result;
        text_add(&text, errors[i].means);
        text_add(&text, ": ");
        break;
    }
    text_add_clean(&text, item->text, shown);
    /* An older Redis puts its own text before the error of a script. */
    error.of_record = memmem(item->text, item->length, "WRONGTYPE", sizeof "WRONGTYPE" - 1) != NULL;
    return error;
}

/* ---- commands ---- */

void conn_begin(struct redis_conn *conn, struct conn_call *call, size_t args)
{
    char head[RESP_HEAD_MAX];
    stream_write(conn->stream, head, resp_head('*', args, head));
    if (call->pending++ == 0)
        list_append(&conn->calls, &call->node);
    ASSERT(conn->calls.last == &call->node); /* replies come in the order of the commands */
}

/* Short arguments, which are most, are written in one piece. */
void conn_arg_bytes(struct redis_conn *conn, const char *bytes, size_t length)
{
    char word[RESP_HEAD_MAX + SHORT_ARG + 2];
    size_t used = resp_head('$', length, word);
    if (length > SHORT_ARG) {
        stream_write(conn->stream, word, used);
        stream_write(conn->stream, bytes, length);
        used = 0;
    } else if (length > 0) {
        memcpy(word + used, bytes, length);
        used += length;
    }
    word[used++] = '\r';
    word[used++] = '\n';
    stream_write(conn->stream, word, used);
}

static void ignore_reply(struct conn_call *call, const struct resp_item *item,
                         struct resp_walk *walk, const struct conn_error *error)
{
    (void)item, (void)walk, (void)error; /* a failure recurs in the next command */
    free(call);
}

bool conn_begin_noreply(struct redis_conn *conn, size_t args)
{
    struct conn_call *call = calloc(1, sizeof *call);
    if (call == NULL)
        return false;
    call->reply = ignore_reply;
    conn_begin(conn, call, args);
    return true;
}

void conn_arg(struct redis_conn *conn, const char *word)
{
    conn_arg_bytes(conn, word, strlen(word));
}

bool conn_send(struct redis_conn *conn, struct conn_call *call, const char *const *words)
{
    size_t count = 0;
    while (words[count] != NULL)
        count++;
    if (call == NULL && !conn_begin_noreply(conn, count))
        return false;
    if (call != NULL)
        conn_begin(conn, call, count);
    for (size_t i = 0; i < count; i++)
        conn_arg(conn, words[i]);
    return true;
}

void conn_arg_raw(struct redis_conn *conn, const char *args)
{
    stream_write(conn->stream, args, strlen(args));
}

void conn_arg_int(struct redis_conn *conn, int64_t number)
{
    char digits[24];
    struct text text;
    text_init(&text, digits, sizeof digits);
    text_add_i64(&text, number);
    conn_arg_bytes(conn, digits, text.length);
}

/* The call that the next reply belongs to. */
static struct conn_call *conn_take_call(struct redis_conn *conn)
{
    struct conn_call *call = LIST_ENTRY(conn->calls.first, struct conn_call, node);
    if (call != NULL && --call->pending == 0)
        list_remove(&conn->calls, &call->node);
    return call;
}

bool conn_confirm(struct redis_conn *conn)
{
    struct resp_item pushed = {.kind = RESP_PUSH};
    struct conn_call *call = LIST_ENTRY(conn->calls.first, struct conn_call, node);
    if (call == NULL || !call->subscribes)
        return false;
    (void)conn_take_call(conn);
    call->reply(call, &pushed, NULL, NULL);
    return true;
}

/* ---- connecting and disconnecting ---- */

static void conn_report_loss(struct redis_conn *conn, const struct conn_error *error)
{
    struct list calls = list_take_all(&conn->calls); /* a callback may begin calls on the next */
    for (struct list_node *node; (node = list_pop(&calls)) != NULL;) {
        struct conn_call *call = LIST_ENTRY(node, struct conn_call, node);
        call->pending = 0;
        call->reply(call, NULL, NULL, error);
    }
    conn->callbacks.lost(conn->callbacks.owner, error);
}

/* The reason is in conn->why. */
static void conn_lose(struct redis_conn *conn, enum reply_status result)
{
    struct conn_error error = {.result = result, .refused = conn->refused, .why = conn->why};
    int64_t pause_ms = backoff_pause_ms(&conn->backoff);
    if (conn->refused && pause_ms > BACKOFF_REFUSED_MS)
        pause_ms = BACKOFF_REFUSED_MS;
    stream_free(&conn->stream);
    conn->refused = false;
    conn->waits_auth = conn->reauth = false;
    conn->state = CONN_IDLE;
    conn->wanted = false;
    conn->retry_at_ms = host_boot_ms() + pause_ms;
    poller_call_at(conn->poller, &conn->retry, POLLER_NEVER);
    conn_report_loss(conn, &error);
}

void conn_abort(struct redis_conn *conn, enum reply_status result, const char *why)
{
    struct text text;
    conn_begin_why(conn, &text);
    text_add(&text, why);
    conn_lose(conn, result);
}

static void on_stream_ended(void *owner, enum stream_end end, const char *why)
{
    struct redis_conn *conn = owner;
    struct text text;
    text_init(&text, conn->why, sizeof conn->why); /* the stream's message names the host */
    text_add(&text, why);
    conn->refused = end == STREAM_REFUSED;
    conn_lose(conn, REPLY_TROUBLE);
}

static size_t on_stream_bytes(void *owner, const char *bytes, size_t length)
{
    struct redis_conn *conn = owner;
    size_t used = 0, size = 0;
    const struct stream *stream = conn->stream; /* a reply may close it, and open another */
    while (conn->stream == stream) {
        enum resp_result result = resp_feed(&conn->resp, bytes + used, length - used, &size);
        if (result == RESP_MORE)
            break;
        struct resp_walk walk = {.bytes = bytes + used, .length = size};
        struct resp_item item = {0};
        if (result == RESP_BROKEN) {
            conn_abort(conn, REPLY_TROUBLE, conn->resp.wrong);
            return length;
        }
        used += size;
        (void)resp_next(&walk, &item);
        bool listens = conn->listens && conn->state == CONN_READY && item.kind == RESP_LIST;
        if (item.kind == RESP_PUSH || listens) {
            if (conn->callbacks.pushed == NULL ||
                conn->callbacks.pushed(conn->callbacks.owner, &walk, item.count))
                continue;
            conn_abort(conn, REPLY_TROUBLE, "it sent a malformed push message");
            return length;
        }
        struct conn_call *call = conn_take_call(conn);
        if (call == NULL) {
            conn_abort(conn, REPLY_TROUBLE, "it sent a reply without a request");
            return length;
        }
        call->reply(call, &item, &walk, NULL);
    }
    return used;
}

/* ---- handshake ---- */

/* One of several independent servers: each would grant the same lock. */
static bool is_unclustered(const struct redis_conn *conn)
{
    const struct redis_url *url = conn->url;
    return url->host_count > 1 && url->sentinel[0] == '\0' && conn->protocol == 3 &&
           !conn->clustered;
}

/* False if there are none now: the handshake waits for them, or the connection was closed. */
static bool conn_credentials(struct redis_conn *conn, const char **out_user,
                             const char **out_password)
{
    char message[256];
    struct text why;
    *out_user = *out_password = "";
    if (conn->credentials == NULL)
        return true;
    text_init(&why, message, sizeof message);
    switch (credentials_now(conn->credentials, out_user, out_password, &why)) {
    case CREDENTIALS_OK:
        return true;
    case CREDENTIALS_PENDING:
        conn->waits_auth = true;
        return false;
    case CREDENTIALS_WRONG:
        conn_abort(conn, REPLY_DENIED, message);
        return false;
    case CREDENTIALS_TROUBLE:
        conn->lacks_auth = true;
        conn_abort(conn, REPLY_TROUBLE, message);
        return false;
    }
    return false;
}

static void conn_handshake(struct redis_conn *conn)
{
    const char *user, *password;
    if (!conn_credentials(conn, &user, &password))
        return;
    bool auth = password[0] != '\0';
    if (conn->step == STEP_HELLO && conn->protocol == 2)
        conn->step = STEP_AUTH;
    if (conn->step == STEP_AUTH && (!auth || conn->protocol == 3))
        conn->step = STEP_SELECT;
    if (conn->step == STEP_SELECT && (conn->url->db == 0 || conn->credentials == NULL))
        conn->step = STEP_ROLE;
    if (conn->step == STEP_ROLE && conn->callbacks.locate == NULL)
        conn->step = STEP_DONE;
    switch (conn->step) {
    case STEP_HELLO:
        (void)CONN_SEND(conn, &conn->handshake, "HELLO", "3", auth ? "AUTH" : NULL, user, password);
        return;
    case STEP_AUTH:
        (void)CONN_SEND(conn, &conn->handshake, "AUTH", user, password);
        return;
    case STEP_SELECT:
        conn_begin(conn, &conn->handshake, 2);
        conn_arg(conn, "SELECT");
        conn_arg_int(conn, conn->url->db);
        return;
    case STEP_ROLE:
        (void)CONN_SEND(conn, &conn->handshake, "ROLE");
        return;
    default:
        if (is_unclustered(conn)) {
            conn_abort(conn, REPLY_DENIED,
                       "it is not a cluster node; several hosts need a cluster, or Sentinels with "
                       "?sentinel=NAME");
            return;
        }
        conn->state = CONN_READY;
        backoff_reset(&conn->backoff);
        conn->callbacks.ready(conn->callbacks.owner);
    }
}

/* The connection closed for lack of credentials: new ones end its pause. */
static void conn_retry_with_credentials(struct redis_conn *conn)
{
    char message[256];
    const char *user, *password;
    struct text why;
    text_init(&why, message, sizeof message);
    if (credentials_now(conn->credentials, &user, &password, &why) != CREDENTIALS_OK)
        return;
    conn->lacks_auth = false;
    backoff_reset(&conn->backoff);
    conn->retry_at_ms = host_boot_ms();
    if (conn->wanted)
        poller_call_at(conn->poller, &conn->retry, conn->retry_at_ms);
}

/* New credentials: a connection that waits for them authenticates, an open one does so again. */
static void on_credentials_changed(struct credentials_user *as_user)
{
    struct redis_conn *conn =
        (struct redis_conn *)(void *)((char *)as_user - offsetof(struct redis_conn, user));
    const char *user, *password;
    if (conn->waits_auth) {
        conn->waits_auth = false;
        conn_handshake(conn);
    } else if (conn->state == CONN_IDLE && conn->lacks_auth) {
        conn_retry_with_credentials(conn);
    } else if (conn->state == CONN_READY && conn->listens) {
        conn_abort(conn, REPLY_TROUBLE, "new credentials need a new RESP2 connection");
    } else if (conn->state == CONN_READY && !conn->reauth &&
               conn_credentials(conn, &user, &password)) {
        conn->reauth = true;
        (void)CONN_SEND(conn, &conn->handshake, "AUTH", user, password);
    }
}

static bool says_clustered(struct resp_walk *walk, size_t count)
{
    struct resp_item name, value;
    for (; count >= 2 && resp_next(walk, &name) && resp_next(walk, &value); count -= 2) {
        if (resp_is(&name, "mode"))
            return resp_is(&value, "cluster");
        resp_skip(walk, &value);
    }
    return false;
}

static void on_handshake_reply(struct conn_call *call, const struct resp_item *item,
                               struct resp_walk *walk, const struct conn_error *error)
{
    struct redis_conn *conn =
        (struct redis_conn *)(void *)((char *)call - offsetof(struct redis_conn, handshake));
    if (error != NULL)
        return; /* the loss is reported separately */
    if (conn->reauth && item->kind != RESP_ERROR) {
        conn->reauth = false;
        return;
    }
    if (conn->step == STEP_HELLO && item->kind == RESP_MAP)
        conn->clustered = says_clustered(walk, item->count);
    struct resp_item role;
    if (conn->step == STEP_ROLE && item->kind == RESP_LIST &&
        !(resp_next(walk, &role) && resp_is(&role, "master"))) {
        conn_abort(conn, REPLY_TROUBLE, "it is now a replica");
        return;
    }
    if (item->kind != RESP_ERROR) {
        conn->step++;
        conn_handshake(conn);
        return;
    }
    struct conn_error refusal = conn_explain(conn, item);
    bool unknown = refusal.result == REPLY_TROUBLE && conn->step == STEP_HELLO && !conn->reauth &&
                   conn->url->protocol != 3 &&
                   (resp_begins(item, "ERR") || resp_begins(item, "NOPROTO"));
    if (unknown) { /* an older Redis */
        conn->protocol = 2;
        conn_handshake(conn);
        return;
    }
    if (refusal.result == REPLY_DENIED && conn->credentials != NULL)
        credentials_refused(conn->credentials);
    conn_lose(conn, refusal.result);
}

static void on_stream_opened(void *owner)
{
    struct redis_conn *conn = owner;
    conn->step = STEP_HELLO;
    conn_handshake(conn);
}

static void conn_open_stream(struct redis_conn *conn)
{
    const struct redis_url *url = conn->url;
    struct stream_target target = {
        .host = conn->host.name,
        .port = conn->host.port,
        .tls = {.on = url->tls,
                .ca_file = url->ca[0] != '\0' ? url->ca : NULL,
                .cert_file = url->cert[0] != '\0' ? url->cert : NULL,
                .key_file = url->tls_key[0] != '\0' ? url->tls_key : NULL,
                .name = url->tls_name[0] != '\0' ? url->tls_name : NULL},
        .timeout_ms = conn->timeout_ms};
    struct stream_callbacks callbacks = {.opened = on_stream_opened,
                                         .bytes = on_stream_bytes,
                                         .ended = on_stream_ended,
                                         .owner = conn,
                                         .in_max = RECEIVE_MAX,
                                         .out_max = SEND_MAX};
    conn->protocol = conn->listens || url->protocol == 2 ? 2 : 3;
    conn->resp = (struct resp){.bulk_max = BULK_MAX, .items_max = ITEMS_MAX};
    conn->stream = stream_new(conn->poller, &target, &callbacks);
    if (conn->stream == NULL)
        conn_abort(conn, REPLY_TROUBLE, "out of memory");
}

static void conn_start(void *owner)
{
    struct redis_conn *conn = owner;
    ASSERT(conn->state == CONN_IDLE && conn->stream == NULL);
    conn->state = CONN_OPENING;
    conn->lacks_auth = false;
    if (conn->callbacks.locate != NULL)
        conn->callbacks.locate(conn->callbacks.owner);
    else
        conn_open_stream(conn);
}

void conn_open_at(struct redis_conn *conn, const char *host, size_t length, uint16_t port)
{
    struct text name;
    ASSERT(conn->state == CONN_OPENING && conn->stream == NULL);
    text_init(&name, conn->host.name, sizeof conn->host.name);
    text_add_bytes(&name, host, length);
    conn->host.port = port;
    conn_open_stream(conn);
}

void conn_open(struct redis_conn *conn)
{
    if (conn->state != CONN_IDLE || conn->wanted)
        return;
    conn->wanted = true;
    if (conn->retry_at_ms <= host_boot_ms())
        conn_start(conn);
    else
        poller_call_at(conn->poller, &conn->retry, conn->retry_at_ms);
}

void conn_init(struct redis_conn *conn, struct poller *poller, const struct redis_url *url,
               struct credentials *credentials, const struct conn_callbacks *callbacks,
               uint64_t seed)
{
    *conn = (struct redis_conn){.poller = poller,
                                .url = url,
                                .credentials = credentials,
                                .callbacks = *callbacks,
                                .host = url->hosts[0],
                                .handshake = {.reply = on_handshake_reply},
                                .retry = {.at_ms = POLLER_NEVER, .due = conn_start, .owner = conn},
                                .retry_at_ms = INT64_MIN};
    conn->user.changed = on_credentials_changed;
    if (credentials != NULL)
        list_prepend(&credentials->users, &conn->user.node);
    backoff_init(&conn->backoff, seed, BACKOFF_MIN_MS, BACKOFF_MAX_MS);
}

void conn_done(struct redis_conn *conn)
{
    if (conn->credentials != NULL)
        list_remove(&conn->credentials->users, &conn->user.node);
    poller_call_at(conn->poller, &conn->retry, POLLER_NEVER);
    stream_free(&conn->stream);
    for (struct list_node *node; (node = list_pop(&conn->calls)) != NULL;) {
        struct conn_call *call = LIST_ENTRY(node, struct conn_call, node);
        if (call->reply == ignore_reply)
            free(call);
    }
}
