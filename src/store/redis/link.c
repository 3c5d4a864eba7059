/* SPDX-License-Identifier: Apache-2.0 */
/* See link.h. */
#include "store/redis/link.h"

#include "base/check.h"
#include "io/host.h"

#include <stdlib.h>
#include <string.h>

enum {
    BULK_MAX = 1024 * 1024,
    ITEMS_MAX = 64 * 1024,
    KEEPS_MAX = 4 * 1024 * 1024,
    OWES_MAX = 64 * 1024 * 1024,
    FIRST_PAUSE_MS = 50,
    LONGEST_PAUSE_MS = 5000,
    REFUSED_PAUSE_MS = 250, /* at most: a refusal costs nobody much, and calls wait for the next */
    ERROR_SHOWN = 160,
    SHORT_WORD = 128,
};

enum { SIGN_HELLO, SIGN_AUTH, SIGN_SELECT, SIGN_ROLE, SIGN_DONE };

/* ---- words ---- */

/* What the answer begins with, what it means, and what to do. */
static const struct {
    const char *word;
    enum answer result;
    const char *means;
} errors[] = {
    {"NOPERM", ANSWER_DENIED, "the user may not do that; its ACL needs more"},
    {"WRONGPASS", ANSWER_DENIED, "user or password are wrong"},
    {"NOAUTH", ANSWER_DENIED, "it wants a password, and there is none in the URL or its file"},
    {"ERR The user executing the script", ANSWER_DENIED,
     "the user may not do that; its ACL needs more"},
    {"LOADING", ANSWER_TROUBLE, "it is still loading its data"},
    {"READONLY", ANSWER_TROUBLE, "it is a replica, which takes no writes; use the master"},
    {"MASTERDOWN", ANSWER_TROUBLE, "it is a replica that has lost its master"},
    {"NOREPLICAS", ANSWER_TROUBLE, "too few of its replicas are there (min-replicas-to-write)"},
    {"OOM", ANSWER_TROUBLE, "its memory is full (maxmemory); nothing was written"},
    {"MISCONF", ANSWER_TROUBLE, "it cannot write its disk and refuses all writes"},
    {"CLUSTERDOWN", ANSWER_TROUBLE, "the cluster is down: not all slots are served"},
    {"TRYAGAIN", ANSWER_TROUBLE, "the slot is just being moved; try again"},
    {"MOVED", ANSWER_TROUBLE, "the slot is at another node now"},
    {"ASK", ANSWER_TROUBLE, "the slot is on its way to another node"},
    {"CROSSSLOT", ANSWER_TROUBLE, "the names are not in one slot; is a proxy in between?"},
    {"BUSY", ANSWER_TROUBLE, "it is busy with somebody's endless script"},
    {"NOSCRIPT", ANSWER_TROUBLE, "it forgot our script at once; try ?scripts=no"},
    {"WRONGTYPE", ANSWER_TROUBLE, "one of our own names holds something that is not ours"},
};

static void begin_why(struct link *link, struct text *text)
{
    text_init(text, link->why, sizeof link->why);
    text_add(text, link->host.name);
    text_add(text, ":");
    text_add_u64(text, link->host.port);
    text_add(text, ": ");
}

struct link_error link_explain(struct link *link, const struct resp_item *item)
{
    struct text text;
    struct link_error error = {.result = ANSWER_TROUBLE, .why = link->why};
    /* Who does not know a command repeats its words: with AUTH, a password. */
    const char *words = memmem(item->text, item->length, ", with args", sizeof ", with args" - 1);
    size_t length_shown = words != NULL ? (size_t)(words - item->text) : item->length;
    size_t shown = length_shown < ERROR_SHOWN ? length_shown : ERROR_SHOWN;
    begin_why(link, &text);
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
    /* An older Redis puts what its script met behind words of its own. */
    error.of_record = memmem(item->text, item->length, "WRONGTYPE", sizeof "WRONGTYPE" - 1) != NULL;
    return error;
}

/* ---- commands ---- */

void link_begin(struct link *link, struct link_call *call, size_t words)
{
    char head[RESP_HEAD_MAX];
    stream_write(link->stream, head, resp_head('*', words, head));
    call->next = NULL;
    *link->last = call;
    link->last = &call->next;
}

/* Short ones, which are most, in one piece. */
void link_word(struct link *link, const char *bytes, size_t length)
{
    char word[RESP_HEAD_MAX + SHORT_WORD + 2];
    size_t used = resp_head('$', length, word);
    if (length > SHORT_WORD) {
        stream_write(link->stream, word, used);
        stream_write(link->stream, bytes, length);
        used = 0;
    } else if (length > 0) {
        memcpy(word + used, bytes, length);
        used += length;
    }
    word[used++] = '\r';
    word[used++] = '\n';
    stream_write(link->stream, word, used);
}

static void forget_reply(struct link_call *call, const struct resp_item *item,
                         struct resp_walk *walk, const struct link_error *error)
{
    (void)item, (void)walk, (void)error; /* what did not work, the next command says */
    free(call);
}

bool link_begin_unheard(struct link *link, size_t words)
{
    struct link_call *call = calloc(1, sizeof *call);
    if (call == NULL)
        return false;
    call->reply = forget_reply;
    link_begin(link, call, words);
    return true;
}

void link_say(struct link *link, const char *word)
{
    link_word(link, word, strlen(word));
}

void link_made(struct link *link, const char *words)
{
    stream_write(link->stream, words, strlen(words));
}

void link_number(struct link *link, int64_t number)
{
    char digits[24];
    struct text text;
    text_init(&text, digits, sizeof digits);
    text_add_i64(&text, number);
    link_word(link, digits, text.length);
}

static struct link_call *take_call(struct link *link)
{
    struct link_call *call = link->first;
    if (call == NULL)
        return NULL;
    link->first = call->next;
    if (link->first == NULL)
        link->last = &link->first;
    return call;
}

bool link_confirm(struct link *link)
{
    struct resp_item pushed = {.kind = RESP_PUSH};
    if (link->first == NULL || !link->first->subscribes)
        return false;
    struct link_call *call = take_call(link);
    call->reply(call, &pushed, NULL, NULL);
    return true;
}

/* ---- coming and going ---- */

static void tell_lost(struct link *link, const struct link_error *error)
{
    struct link_call *call = link->first;
    link->first = NULL;
    link->last = &link->first;
    while (call != NULL) { /* a reply may begin other calls, on the next connection */
        struct link_call *next = call->next;
        call->reply(call, NULL, NULL, error);
        call = next;
    }
    link->site.lost(link->site.owner, error);
}

/* `why` stands in link->why. */
static void lose(struct link *link, enum answer result)
{
    struct link_error error = {.result = result, .refused = link->refused, .why = link->why};
    int64_t pause_ms = backoff_pause_ms(&link->backoff);
    if (link->refused && pause_ms > REFUSED_PAUSE_MS)
        pause_ms = REFUSED_PAUSE_MS;
    stream_free(&link->stream);
    link->refused = false;
    link->halts = link->signs = false;
    link->state = LINK_RESTING;
    link->wanted = false;
    link->rests_until_ms = host_boot_ms() + pause_ms;
    net_call_at(link->net, &link->again, NET_NEVER);
    tell_lost(link, &error);
}

void link_cut(struct link *link, enum answer result, const char *why)
{
    struct text text;
    begin_why(link, &text);
    text_add(&text, why);
    lose(link, result);
}

static void on_ended(void *owner, enum stream_end end, const char *why)
{
    struct link *link = owner;
    struct text text;
    text_init(&text, link->why, sizeof link->why); /* the stream says whereto */
    text_add(&text, why);
    link->refused = end == STREAM_REFUSED;
    lose(link, ANSWER_TROUBLE);
}

static size_t on_bytes(void *owner, const char *bytes, size_t length)
{
    struct link *link = owner;
    size_t used = 0, size = 0;
    const struct stream *stream = link->stream; /* a reply may end it, and open another one */
    link->last_word_ms = host_boot_ms();
    while (link->stream == stream) {
        enum resp_result result = resp_feed(&link->resp, bytes + used, length - used, &size);
        if (result == RESP_MORE)
            break;
        struct resp_walk walk = {.bytes = bytes + used, .length = size};
        struct resp_item item = {0};
        if (result == RESP_BROKEN) {
            link_cut(link, ANSWER_TROUBLE, link->resp.wrong);
            return length;
        }
        used += size;
        (void)resp_next(&walk, &item);
        bool listens = link->listens && link->state == LINK_READY && item.kind == RESP_LIST;
        if (item.kind == RESP_PUSH || listens) {
            if (link->site.pushed(link->site.owner, &walk, item.count))
                continue;
            link_cut(link, ANSWER_TROUBLE, "what it pushed makes no sense");
            return length;
        }
        struct link_call *call = take_call(link);
        if (call == NULL) {
            link_cut(link, ANSWER_TROUBLE, "it replied to nothing that was asked");
            return length;
        }
        call->reply(call, &item, &walk, NULL);
    }
    return used;
}

/* ---- signing on ---- */

/* One of several servers that know nothing of each other: each would grant the same lock. */
static bool is_alone(const struct link *link)
{
    const struct redis_url *url = link->url;
    return url->host_count > 1 && url->sentinel[0] == '\0' && link->protocol == 3 &&
           !link->clustered;
}

/* False: not now; it halts until there are some, or was cut. */
static bool find_credentials(struct link *link, const char **out_user, const char **out_password)
{
    char words[256];
    struct text why;
    *out_user = *out_password = "";
    if (link->credentials == NULL)
        return true;
    text_init(&why, words, sizeof words);
    switch (credentials_now(link->credentials, host_boot_ms(), out_user, out_password, &why)) {
    case CREDENTIALS_HERE:
        return true;
    case CREDENTIALS_LATER:
        link->halts = true;
        return false;
    case CREDENTIALS_WRONG:
        link_cut(link, ANSWER_DENIED, words);
        return false;
    case CREDENTIALS_TROUBLE:
        link_cut(link, ANSWER_TROUBLE, words);
        return false;
    }
    return false;
}

static void sign_on(struct link *link)
{
    const char *user, *password;
    if (!find_credentials(link, &user, &password))
        return;
    bool auth = password[0] != '\0';
    if (link->step == SIGN_HELLO && link->protocol == 2)
        link->step = SIGN_AUTH;
    if (link->step == SIGN_AUTH && (!auth || link->protocol == 3))
        link->step = SIGN_SELECT;
    if (link->step == SIGN_SELECT && (link->url->db == 0 || link->credentials == NULL))
        link->step = SIGN_ROLE;
    if (link->step == SIGN_ROLE && link->site.locate == NULL)
        link->step = SIGN_DONE;
    switch (link->step) {
    case SIGN_HELLO:
        link_begin(link, &link->signing, auth ? 5 : 2);
        link_say(link, "HELLO");
        link_say(link, "3");
        if (auth)
            link_say(link, "AUTH");
        break;
    case SIGN_AUTH:
        link_begin(link, &link->signing, 3);
        link_say(link, "AUTH");
        break;
    case SIGN_SELECT:
        link_begin(link, &link->signing, 2);
        link_say(link, "SELECT");
        link_number(link, link->url->db);
        return;
    case SIGN_ROLE:
        link_begin(link, &link->signing, 1);
        link_say(link, "ROLE");
        return;
    default:
        if (is_alone(link)) {
            link_cut(link, ANSWER_DENIED,
                     "it is no node of a cluster; several hosts are for one, or for Sentinels with "
                     "?sentinel=NAME");
            return;
        }
        link->state = LINK_READY;
        backoff_reset(&link->backoff);
        link->site.ready(link->site.owner);
        return;
    }
    if (auth) {
        link_say(link, user);
        link_say(link, password);
    }
}

/* There are other credentials: whoever waited for them signs on, whoever is there does so again. */
static void on_changed(struct credentials_user *as_user)
{
    struct link *link = (struct link *)(void *)((char *)as_user - offsetof(struct link, user));
    const char *user, *password;
    if (link->halts) {
        link->halts = false;
        sign_on(link);
    } else if (link->state == LINK_READY && link->listens) {
        link_cut(link, ANSWER_TROUBLE, "it must sign on again, and RESP2 has no way to");
    } else if (link->state == LINK_READY && !link->signs &&
               find_credentials(link, &user, &password)) {
        link->signs = true;
        link_begin(link, &link->signing, 3);
        link_say(link, "AUTH");
        link_say(link, user);
        link_say(link, password);
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

static bool is_master(struct resp_walk *walk)
{
    struct resp_item role;
    return resp_next(walk, &role) && resp_is(&role, "master");
}

static void on_signed(struct link_call *call, const struct resp_item *item, struct resp_walk *walk,
                      const struct link_error *error)
{
    struct link *link = (struct link *)(void *)((char *)call - offsetof(struct link, signing));
    if (error != NULL)
        return; /* the loss is told apart */
    if (link->signs && item->kind != RESP_ERROR) {
        link->signs = false;
        return;
    }
    if (link->step == SIGN_HELLO && item->kind == RESP_MAP)
        link->clustered = says_clustered(walk, item->count);
    if (link->step == SIGN_ROLE && item->kind == RESP_LIST && !is_master(walk)) {
        link_cut(link, ANSWER_TROUBLE, "it is a replica by now");
        return;
    }
    if (item->kind != RESP_ERROR) {
        link->step++;
        sign_on(link);
        return;
    }
    struct link_error refusal = link_explain(link, item);
    bool unknown = refusal.result == ANSWER_TROUBLE && link->step == SIGN_HELLO && !link->signs &&
                   link->url->protocol != 3 &&
                   (resp_begins(item, "ERR") || resp_begins(item, "NOPROTO"));
    if (unknown) { /* an older Redis */
        link->protocol = 2;
        sign_on(link);
        return;
    }
    if (refusal.result == ANSWER_DENIED && link->credentials != NULL)
        credentials_refused(link->credentials);
    lose(link, refusal.result);
}

static void on_opened(void *owner)
{
    struct link *link = owner;
    link->step = SIGN_HELLO;
    sign_on(link);
}

static void open_stream(struct link *link)
{
    const struct redis_url *url = link->url;
    struct stream_target target = {
        .host = link->host.name,
        .port = link->host.port,
        .tls = {.on = url->tls,
                .ca_file = url->ca[0] != '\0' ? url->ca : NULL,
                .cert_file = url->cert[0] != '\0' ? url->cert : NULL,
                .key_file = url->tls_key[0] != '\0' ? url->tls_key : NULL,
                .name = url->tls_name[0] != '\0' ? url->tls_name : NULL},
        .patience_ms = link->patience_ms};
    struct stream_site site = {.opened = on_opened,
                               .bytes = on_bytes,
                               .ended = on_ended,
                               .owner = link,
                               .keeps = KEEPS_MAX,
                               .owes = OWES_MAX};
    link->protocol = link->listens || url->protocol == 2 ? 2 : 3;
    link->resp = (struct resp){.bulk_max = BULK_MAX, .items_max = ITEMS_MAX};
    link->last_word_ms = host_boot_ms();
    link->stream = stream_new(link->net, &target, &site);
    if (link->stream == NULL)
        link_cut(link, ANSWER_TROUBLE, "memory is short");
}

static void open_link(void *owner)
{
    struct link *link = owner;
    ASSERT(link->state == LINK_RESTING && link->stream == NULL);
    link->state = LINK_OPENING;
    if (link->site.locate != NULL)
        link->site.locate(link->site.owner);
    else
        open_stream(link);
}

void link_open_at(struct link *link, const char *host, size_t length, uint16_t port)
{
    struct text name;
    ASSERT(link->state == LINK_OPENING && link->stream == NULL);
    text_init(&name, link->host.name, sizeof link->host.name);
    text_add_bytes(&name, host, length);
    link->host.port = port;
    open_stream(link);
}

void link_want(struct link *link)
{
    if (link->state != LINK_RESTING || link->wanted)
        return;
    link->wanted = true;
    if (link->rests_until_ms <= host_boot_ms())
        open_link(link);
    else
        net_call_at(link->net, &link->again, link->rests_until_ms);
}

void link_init(struct link *link, struct net *net, const struct redis_url *url,
               struct credentials *credentials, const struct link_site *site, uint64_t seed)
{
    *link = (struct link){.net = net,
                          .url = url,
                          .credentials = credentials,
                          .site = *site,
                          .host = url->hosts[0],
                          .signing = {.reply = on_signed},
                          .again = {.at_ms = NET_NEVER, .due = open_link, .owner = link},
                          .rests_until_ms = INT64_MIN};
    link->last = &link->first;
    link->user.changed = on_changed;
    if (credentials != NULL)
        credentials_join(credentials, &link->user);
    backoff_init(&link->backoff, seed, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
}

void link_done(struct link *link)
{
    if (link->credentials != NULL)
        credentials_leave(link->credentials, &link->user);
    net_call_at(link->net, &link->again, NET_NEVER);
    stream_free(&link->stream);
    for (struct link_call *call; (call = take_call(link)) != NULL;)
        if (call->reply == forget_reply)
            free(call);
}
