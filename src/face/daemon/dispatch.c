/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of verbs, and the one place that starts them: arguments, words, permission, order. A
 * verb without a row cannot be called, and no verb runs before may() allowed all its keys (D5).
 */
#include "face/daemon/daemon_internal.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/nearest.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define ONCE_KEYS      "once:"
#define WATERMARK_KEYS "watermark:"

#define ACQUIRE_WORDS                                                                    \
    (WORD_WAIT | WORD_ASYNC | WORD_SHARED | WORD_LIMIT | WORD_PRIORITY | WORD_COOLDOWN | \
     WORD_LOCKDELAY | WORD_META | WORD_ID | WORD_BIND | WORD_CACHED)
#define ACQUIRE_USAGE                                                                 \
    "[WAIT ms [ASYNC]] [SHARED] [LIMIT n] [PRIORITY n] [COOLDOWN ms] [LOCKDELAY ms] " \
    "[META json] [ID request] [BIND]"

enum { ANY_NUMBER = RESP_ARGS_MAX, COMMAND_LOGGED_MAX = 40 };

/* name, permission, keys, their prefix, positional arguments, words, alone, subscriber, function,
 * usage */
static const struct daemon_verb verbs[] = {
    {"LOCK.ACQUIRE", MAY_TAKE, KEYS_FIRST, NULL, 3, 3, ACQUIRE_WORDS, false, false, verb_acquire,
     "key holder ttl_ms " ACQUIRE_USAGE " [CACHED]"},
    {"LOCK.ACQUIRE_ALL", MAY_TAKE, KEYS_COUNTED, NULL, 4, ANY_NUMBER,
     ACQUIRE_WORDS & ~(unsigned)WORD_CACHED, true, false, verb_acquire_all,
     "n key... holder ttl_ms " ACQUIRE_USAGE},
    {"LOCK.CLAIM", MAY_TAKE, KEYS_CHOSEN, NULL, 3, 3,
     WORD_WAIT | WORD_ORDER | WORD_META | WORD_ID | WORD_BIND, false, false, verb_claim,
     "label holder ttl_ms [WAIT ms] [ORDER number|priority-label] [META json] [ID request] [BIND]"},
    {"LOCK.CANCEL", MAY_ALWAYS, KEYS_NONE, NULL, 1, 1, 0, false, false, verb_cancel, "id"},
    {"LOCK.RENEW", MAY_RENEW, KEYS_FIRST, NULL, 2, 3, WORD_BIND, false, false, verb_renew,
     "key token [ttl_ms] [BIND]"},
    {"LOCK.RELEASE", MAY_RENEW, KEYS_FIRST, NULL, 2, 2, WORD_COOLDOWN, false, false, verb_release,
     "key token [COOLDOWN ms]"},
    {"LOCK.STATUS", MAY_READ, KEYS_FIRST, NULL, 1, 1, WORD_RAW, false, false, verb_status,
     "key [RAW]"},
    {"LOCK.LIST", MAY_READ, KEYS_PREFIX, NULL, 0, 1, WORD_AFTER | WORD_COUNT | WORD_RAW, true,
     false, verb_list, "[prefix] [AFTER cursor] [COUNT n] [RAW]"},
    {"LOCK.HISTORY", MAY_READ, KEYS_FIRST, NULL, 1, 1, WORD_AFTER | WORD_COUNT | WORD_RAW, true,
     false, verb_history, "key [AFTER cursor] [COUNT n] [RAW]"},
    {"LOCK.BREAK", MAY_OPERATE, KEYS_FIRST, NULL, 2, 2, WORD_NOW, false, false, verb_break,
     "key reason [NOW]"},
    {"LOCK.CLEAR", MAY_OPERATE, KEYS_FIRST, NULL, 1, 1, 0, false, false, verb_clear, "key"},
    {"LOCK.WATCH", MAY_READ, KEYS_PREFIX, NULL, 0, 1, 0, true, true, verb_watch, "[prefix]"},
    {"LOCK.UNWATCH", MAY_ALWAYS, KEYS_NONE, NULL, 0, 1, 0, true, true, verb_unwatch, "[prefix]"},
    {"ONCE.BEGIN", MAY_TAKE, KEYS_FIRST, ONCE_KEYS, 3, 3, WORD_PAYLOAD | WORD_ID, false, false,
     verb_once_begin, "id holder ttl_ms [PAYLOAD hash] [ID request]"},
    {"ONCE.RENEW", MAY_RENEW, KEYS_FIRST, ONCE_KEYS, 2, 3, 0, false, false, verb_once_renew,
     "id token [ttl_ms]"},
    {"ONCE.FINISH", MAY_RENEW, KEYS_FIRST, ONCE_KEYS, 2, 2, WORD_KEEP | WORD_STATUS | WORD_RESULT,
     false, false, verb_once_finish, "id token [KEEP ms] [STATUS n] [RESULT text]"},
    {"ONCE.ABANDON", MAY_RENEW, KEYS_FIRST, ONCE_KEYS, 2, 2, 0, false, false, verb_once_abandon,
     "id token"},
    {"ONCE.STATUS", MAY_READ, KEYS_FIRST, ONCE_KEYS, 1, 1, 0, false, false, verb_once_status, "id"},
    {"ONCE.MARK", MAY_TAKE, KEYS_FIRST, ONCE_KEYS, 1, 1, WORD_KEEP | WORD_STATUS | WORD_RESULT,
     false, false, verb_once_mark, "id [KEEP ms] [STATUS n] [RESULT text]"},
    {"WATERMARK.GET", MAY_READ, KEYS_FIRST, WATERMARK_KEYS, 1, 1, 0, false, false,
     verb_watermark_get, "name"},
    {"WATERMARK.BEGIN", MAY_READ, KEYS_FIRST, WATERMARK_KEYS, 1, 1, WORD_OVERLAP, false, false,
     verb_watermark_begin, "name [OVERLAP ms]"},
    {"WATERMARK.ADVANCE", MAY_TAKE, KEYS_FIRST, WATERMARK_KEYS, 3, 3, WORD_ID, false, false,
     verb_watermark_advance, "name expected value [ID request]"},
    {"WATERMARK.SET", MAY_OPERATE, KEYS_FIRST, WATERMARK_KEYS, 3, 3, 0, false, false,
     verb_watermark_set, "name value reason"},
    {"HELLO", MAY_ALWAYS, KEYS_NONE, NULL, 0, 6, 0, true, false, verb_hello,
     "[2|3 [AUTH name secret] [SETNAME name]]"},
    {"AUTH", MAY_ALWAYS, KEYS_NONE, NULL, 1, 2, 0, true, false, verb_auth, "[name] secret"},
    {"PING", MAY_ALWAYS, KEYS_NONE, NULL, 0, 1, 0, false, true, verb_ping, "[text]"},
    {"ECHO", MAY_ALWAYS, KEYS_NONE, NULL, 1, 1, 0, false, false, verb_echo, "text"},
    {"CLIENT", MAY_ALWAYS, KEYS_NONE, NULL, 1, ANY_NUMBER, 0, false, false, verb_client,
     "ID|GETNAME|SETNAME name|SETINFO name value"},
    {"COMMAND", MAY_ALWAYS, KEYS_NONE, NULL, 0, ANY_NUMBER, 0, false, false, verb_command,
     "[COUNT|DOCS|LIST]"},
    {"INFO", MAY_ALWAYS, KEYS_NONE, NULL, 0, ANY_NUMBER, 0, false, false, verb_info, "[section]"},
    {"SUBSCRIBE", MAY_READ, KEYS_PREFIX, NULL, 1, ANY_NUMBER, 0, true, true, verb_subscribe,
     "prefix..."},
    {"UNSUBSCRIBE", MAY_ALWAYS, KEYS_NONE, NULL, 0, ANY_NUMBER, 0, true, true, verb_unsubscribe,
     "[prefix...]"},
    {"QUIT", MAY_ALWAYS, KEYS_NONE, NULL, 0, 0, 0, true, true, verb_quit, ""},
    {"RESET", MAY_ALWAYS, KEYS_NONE, NULL, 0, 0, 0, true, true, verb_reset, ""},
};

enum { VERB_COUNT = sizeof verbs / sizeof verbs[0] };

const struct daemon_verb *verb_at(size_t index)
{
    return index < VERB_COUNT ? &verbs[index] : NULL;
}

const struct daemon_verb *verb_find(const char *name)
{
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (strcasecmp(verbs[i].name, name) == 0)
            return &verbs[i];
    }
    return NULL;
}

/* ---- arguments ---- */

/* Copies the arguments and ends them with NUL. False if one contains a NUL itself. */
static bool dispatch_copy_arguments(struct daemon *daemon, const struct resp_command *command,
                                    struct daemon_args *out)
{
    char *at = daemon->arguments;
    out->count = command->count;
    out->has_positional = false;
    out->text[0] = out->text[1] = ""; /* the name, and the first argument even if it is missing */
    for (size_t i = 0; i < command->count; i++) {
        const struct resp_argument *argument = &command->args[i];
        if (memchr(argument->text, '\0', argument->length) != NULL)
            return false;
        memcpy(at, argument->text, argument->length);
        at[argument->length] = '\0';
        out->text[i] = at;
        at += argument->length + 1;
    }
    return true;
}

/* The number of positional arguments; later ones are words. SIZE_MAX: the count is wrong. */
static size_t dispatch_positional(const struct daemon_verb *verb, const struct daemon_args *args)
{
    size_t given = args->count - 1;
    if (verb->keys == KEYS_COUNTED) {
        int64_t keys = 0;
        if (given < 1 || !words_is_number(args->text[1], &keys) || keys < 1 || keys > LH_KEYS_MAX ||
            given < (size_t)keys + 3)
            return SIZE_MAX;
        return (size_t)keys + 3;
    }
    if (verb->words == 0)
        return given < verb->args_min || given > verb->args_max ? SIZE_MAX : given;
    size_t count = verb->args_min;
    while (count < verb->args_max && count < given && words_find(args->text[count + 1]) == 0)
        count++;
    return given < verb->args_min ? SIZE_MAX : count;
}

static void dispatch_suggest(const char *name, struct text *out)
{
    const char *names[VERB_COUNT];
    char upper[NEAREST_WORD_MAX + 1];
    for (size_t i = 0; i < VERB_COUNT; i++)
        names[i] = verbs[i].name;
    size_t length = strlen(name);
    for (size_t i = 0; i <= length && i < sizeof upper; i++)
        upper[i] = (char)(name[i] >= 'a' && name[i] <= 'z' ? name[i] - 'a' + 'A' : name[i]);
    upper[NEAREST_WORD_MAX] = '\0';
    const char *near = nearest_match(upper, names, VERB_COUNT);
    if (near != NULL)
        TEXT_JOIN(out, "; did you mean ", near, "?");
}

/* ---- permission ---- */

static const char *verb_key_in_store(const struct daemon_verb *verb, const char *key,
                                     char out[LH_KEY_SIZE])
{
    struct text text;
    text_init(&text, out, LH_KEY_SIZE);
    TEXT_JOIN(&text, verb->prefix, key);
    return out;
}

const char *verb_denied_key(const struct daemon_verb *verb, const struct daemon_args *args,
                            const struct may_identity *who, char out_key[LH_KEY_SIZE])
{
    size_t first = verb->keys == KEYS_COUNTED ? 2 : 1, count = 1;
    int64_t counted = 0;
    if (verb->keys == KEYS_NONE || verb->keys == KEYS_PREFIX || verb->keys == KEYS_CHOSEN)
        return NULL; /* what a list or a watch shows is filtered key by key */
    if (MAY_HOLE(DISPATCH) || (MAY_HOLE(HISTORY) && verb->run == verb_history))
        return NULL;
    if (verb->keys == KEYS_COUNTED && words_is_number(args->text[1], &counted))
        count = MAY_HOLE(SECOND_KEY) ? 1 : (size_t)counted;
    for (size_t i = first; i < first + count && i < args->count; i++) {
        const char *key = args->text[i];
        if (verb->prefix != NULL)
            key = verb_key_in_store(verb, key, out_key);
        if (!may(who, verb->may, key))
            return key;
    }
    return NULL;
}

/* With BIND the daemon renews and releases the grant for the connection: that needs the right. */
static const char *dispatch_denied_key(struct daemon_connection *connection,
                                       const struct daemon_verb *verb,
                                       const struct daemon_args *args,
                                       const struct daemon_words *words)
{
    char *out_key = connection->daemon->denied_key;
    const char *key = verb_denied_key(verb, args, connection->who, out_key);
    if (key != NULL || (words->given & WORD_BIND) == 0 || MAY_HOLE(BIND))
        return key;
    struct daemon_verb renews = *verb;
    renews.may = MAY_RENEW;
    return verb_denied_key(&renews, args, connection->who, out_key);
}

/* ---- order ---- */

/* The bucket of the command's key; -1: it has none. */
static int dispatch_bucket(const struct daemon_verb *verb, const struct daemon_args *args)
{
    if (verb->keys != KEYS_FIRST || verb->alone)
        return -1;
    ASSERT(args->text[1] != NULL); /* the number of arguments was checked */
    return (int)(hash_string(args->text[1]) % KEY_BUCKETS);
}

/* True if the command must wait for an earlier one of its connection. */
static bool dispatch_must_wait(const struct daemon_connection *connection,
                               const struct daemon_verb *verb, int bucket)
{
    if (verb->alone && connection->slot_count > 0)
        return true;
    return bucket >= 0 && connection->keys_in_flight[bucket] > 0;
}

/* ---- start ---- */

static bool dispatch_key_is_valid(const struct daemon_verb *verb, const struct daemon_args *args)
{
    size_t positional = args->positional;
    size_t first = verb->keys == KEYS_COUNTED ? 2 : 1;
    size_t end = verb->keys == KEYS_COUNTED  ? positional - 1
                 : verb->keys == KEYS_NONE   ? 1
                 : verb->keys == KEYS_CHOSEN ? 1
                 : verb->keys == KEYS_PREFIX ? first + positional
                                             : first + (positional > 0 ? 1 : 0);
    for (size_t i = first; i < end && i < args->count; i++) {
        size_t length = strlen(args->text[i]);
        if (length >= LH_KEY_SIZE || !text_is_clean(args->text[i], length))
            return false;
    }
    return true;
}

/* `why` is for the peer, and may have its bytes; `logged` is for the log. */
static void dispatch_refuse(struct daemon_connection *connection, enum daemon_refusal_class class,
                            const char *code, const struct text *why, const char *logged)
{
    struct daemon_slot *slot = connection_slot(connection);
    connection_refused(connection, class, logged);
    if (slot != NULL)
        slot_reply_error(slot, code, why->bytes);
    else
        connection_end_after_replies(connection);
}

static void dispatch_refuse_unknown(struct daemon_connection *connection, const char *name,
                                    struct text *why)
{
    char bytes[128];
    struct text logged;
    text_init(&logged, bytes, sizeof bytes);
    text_add(&logged, "unknown command ");
    text_add_clean(&logged, name, strnlen(name, COMMAND_LOGGED_MAX));
    text_add(why, "unknown command '");
    text_add_clean(why, name, strnlen(name, 64));
    text_add(why, "'");
    dispatch_suggest(name, why);
    dispatch_refuse(connection, REFUSED_COMMAND, "ERR", why, bytes);
}

static void dispatch_refuse_usage(struct daemon_connection *connection,
                                  const struct daemon_verb *verb, const struct text *why)
{
    char bytes[128];
    struct text logged;
    text_init(&logged, bytes, sizeof bytes);
    TEXT_JOIN(&logged, "wrong arguments of ", verb->name);
    dispatch_refuse(connection, REFUSED_COMMAND, "ERR", why, bytes);
}

/* False with a reason if the arguments are wrong. */
static bool dispatch_parse(const struct daemon_verb *verb, struct daemon_args *args, bool as_fields,
                           struct daemon_words *words, struct text *why)
{
    if (!args->has_positional)
        args->positional = dispatch_positional(verb, args);
    if (args->positional == SIZE_MAX) {
        TEXT_JOIN(why, "wrong number of arguments; usage: ", verb->name, " ", verb->usage);
        return false;
    }
    if (words_parse(args, args->positional + 1, verb->words, as_fields, words, why))
        return true;
    if (!as_fields)
        TEXT_JOIN(why, "; usage: ", verb->name, " ", verb->usage);
    return false;
}

static bool dispatch_start(struct daemon_connection *connection, const struct daemon_verb *verb,
                           int bucket, const struct daemon_args *args,
                           const struct daemon_words *words)
{
    struct daemon_slot *slot = connection_slot(connection);
    if (slot == NULL) {
        connection_end_after_replies(connection);
        return true;
    }
    slot->verb = verb;
    slot->bucket = bucket;
    if (bucket >= 0)
        connection->keys_in_flight[bucket]++;
    if (verb->alone || ((words->given & WORD_WAIT) != 0 && (words->given & WORD_ASYNC) == 0))
        connection->alone = slot;
    connection->daemon->counters.commands++;
    verb->run(slot, args, words);
    return true;
}

bool dispatch_args(struct daemon_connection *connection, struct daemon_args *args)
{
    struct daemon *daemon = connection->daemon;
    struct daemon_words *words = &daemon->words;
    struct text why;
    text_init(&why, daemon->refusal, sizeof daemon->refusal);
    const struct daemon_verb *verb = verb_find(args->text[0]);
    if (!auth_allows_verb(connection, verb)) {
        text_add(&why, "Authentication required.");
        dispatch_refuse(connection, REFUSED_NOT_AUTHENTICATED, "NOAUTH", &why, why.bytes);
        return true;
    }
    if (verb == NULL) {
        dispatch_refuse_unknown(connection, args->text[0], &why);
        return true;
    }
    if (connection->protocol < 3 && connection->watch_count > 0 && !verb->subscriber) {
        TEXT_JOIN(&why, verb->name,
                  " is not possible while watching with RESP2; use another connection or HELLO 3");
        dispatch_refuse(connection, REFUSED_COMMAND, "ERR", &why, why.bytes);
        return true;
    }
    if (!dispatch_parse(verb, args, connection->http != NULL, words, &why)) {
        dispatch_refuse_usage(connection, verb, &why);
        return true;
    }
    if (!dispatch_key_is_valid(verb, args)) {
        text_add(&why, "a key must be at most 512 bytes of UTF-8 without control characters");
        dispatch_refuse(connection, REFUSED_PROTOCOL, "ERR", &why, why.bytes);
        if (connection->http == NULL)
            connection_end_after_replies(connection);
        return true;
    }
    if (dispatch_denied_key(connection, verb, args, words) != NULL) {
        TEXT_JOIN(&why, connection->who->name, " may not use this key with ", verb->name);
        dispatch_refuse(connection, REFUSED_NOT_PERMITTED, "NOPERM", &why, why.bytes);
        return true;
    }
    int bucket = dispatch_bucket(verb, args);
    if (dispatch_must_wait(connection, verb, bucket))
        return false;
    return dispatch_start(connection, verb, bucket, args, words);
}

bool dispatch_command(struct daemon_connection *connection, const struct resp_command *command)
{
    struct daemon *daemon = connection->daemon;
    struct daemon_args *args = &daemon->args;
    if (!dispatch_copy_arguments(daemon, command, args)) {
        struct text why;
        text_init(&why, daemon->refusal, sizeof daemon->refusal);
        text_add(&why, "Protocol error: an argument contains a NUL byte");
        dispatch_refuse(connection, REFUSED_PROTOCOL, "ERR", &why, why.bytes);
        connection_end_after_replies(connection);
        return true;
    }
#ifdef LH_FUZZ_PLANT /* planted bug for the fuzzer: a command without a name gets no reply */
    if (args->text[0][0] == '\0')
        return true;
#endif
    return dispatch_args(connection, args);
}
