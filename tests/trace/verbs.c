/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs of stories. WHO is an actor, or `store`. Arguments of the form name=value or name set
 * options; times are in milliseconds.
 *
 *   ann asks db [shared] [slots=3] [ttl=30000] [nowait] [wait=5000] [priority=5] [cooldown=1000]
 *                [lock-delay=1000] [unbound] [look=5000] [timeout=10000] [as=pod] [id=x]
 *   ann lets go       stops waiting, releases or, after a loss, has stopped its work
 *   ann dies, ann starts anew, ann stands still 5000, ann clock=870 (thousandths)
 *   ann breaks db [now], ann clears db, ann looks db, ann renews db 1024, ann releases db 1024
 *   ann claims once:x [payload=9f] [keep=60000] [result=fine]    lets go when it is done
 *   ann abandons      releases a claim that is not done
 *   ann marks once:x [keep=60000], ann finishes once:x [result=fine] token=1024
 *   ann advances watermark:w [from=17] to=20, ann sets watermark:w to=20
 *   ann beats         a heartbeat, if it holds something: `store sessions heartbeats`, TTL 3000
 *   ann takes db,cache    several keys; ann gives back
 *   ann loses request | loses answer | loses notices | doubles request | doubles answer
 *   ann holds request 500 | holds answer 500 | holds notice 500    delays the next message
 *   store goes, store comes, store shows db
 */
#include "story.h"

#include "oracle.h"
#include "wire/record_codec.h"

#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 256, DEFAULT_TTL_MS = 30000, HEARTBEAT_TTL_MS = 3000 };

struct actor *story_actor(struct story *story, const char *name)
{
    struct world *world = &story->world;
    for (size_t i = 0; i < world->actor_count; i++)
        if (strcmp(world->actors[i].name, name) == 0)
            return &world->actors[i];
    if (world->actor_count == ACTORS_MAX) {
        (void)fprintf(stderr, "story: too many actors\n");
        exit(64);
    }
    return world_add_actor(world, name);
}

static size_t key_of(struct story *story, const char *name)
{
    struct world *world = &story->world;
    for (size_t i = 0; i < world->key_count; i++)
        if (strcmp(world->keys[i].key, name) == 0)
            return i;
    if (world->key_count == KEYS_MAX) {
        (void)fprintf(stderr, "story: too many keys\n");
        exit(64);
    }
    char *own = story->key_names[world->key_count];
    (void)snprintf(own, sizeof story->key_names[0], "%s", name);
    world->keys[world->key_count].key = own;
    return world->key_count++;
}

/* The number after "name=", or the default. */
static int64_t option(const char *line, const char *name, int64_t otherwise)
{
    char pattern[32];
    (void)snprintf(pattern, sizeof pattern, " %s=", name);
    const char *at = strstr(line, pattern);
    return at != NULL ? strtoll(at + strlen(pattern), NULL, 10) : otherwise;
}

void story_set_store(struct story *story, const char *text)
{
    struct world_rules *rules = &story->world.rules;
    rules->facts.judge = strstr(text, "no-clock") != NULL   ? JUDGE_OBSERVED
                         : strstr(text, "sessions") != NULL ? JUDGE_SESSION
                                                            : JUDGE_STORE_TIME;
    rules->facts.one_clock = strstr(text, "one-clock") != NULL;
    rules->facts.tests_grant = strstr(text, "tests-grant") != NULL;
    rules->watches = strstr(text, "watches") != NULL;
    rules->keeps_copies = strstr(text, "copies") != NULL;
    rules->facts.wakes_with_record = strstr(text, "tells") != NULL;
    rules->knows_sessions = rules->facts.judge == JUDGE_SESSION || strstr(text, "liveness") != NULL;
    rules->names_collide = strstr(text, "one-name") != NULL;
    rules->overlaps_allowed = strstr(text, "overlaps") != NULL;
    if (strstr(text, "heartbeats") != NULL) { /* and nothing else says which processes live */
        world_use_heartbeats(&story->world, HEARTBEAT_TTL_MS);
        rules->knows_sessions = false;
    }
    if (strstr(text, "late") != NULL)
        story->world.judge.late_ms = 700;
    rules->facts.takeover_ms = option(text, "takeover", 0);
    if (strstr(text, "whole-seconds") != NULL) {
        rules->tick_ms = 1000;
        rules->facts.margin_ms = 2000;
    }
}

static bool has(const char *line, const char *word)
{
    char pattern[32];
    (void)snprintf(pattern, sizeof pattern, " %s", word);
    const char *at = strstr(line, pattern);
    return at != NULL && (at[strlen(pattern)] == '\0' || at[strlen(pattern)] == ' ');
}

static void set_options(struct actor *actor, const char *line)
{
    struct lease_options *options = &actor->options;
    uint32_t slots = (uint32_t)option(line, "slots", 0);
    options->request = (struct request){
        .verb = VERB_ACQUIRE,
        .ttl_ms = option(line, "ttl", DEFAULT_TTL_MS),
        .mode = slots > 0             ? MODE_SLOT
                : has(line, "shared") ? MODE_SHARED
                                      : MODE_EXCLUSIVE,
        .limit = slots,
        .waits = !has(line, "nowait"),
        .priority = (int32_t)option(line, "priority", 0),
        .lock_delay_ms = option(line, "lock-delay", 0),
        .bound = !has(line, "unbound"),
        .now = has(line, "now"),
        .reason = "maintenance",
    };
    options->wait_ms = has(line, "nowait") ? 0 : option(line, "wait", WAIT_WITHOUT_LIMIT);
    options->cooldown_ms = option(line, "cooldown", 0);
    options->timeout_ms = option(line, "timeout", 10000);
    options->kill_grace_ms = 5000;
    actor->poll_ms = option(line, "look", 0);
    const char *as = strstr(line, " as=");
    (void)snprintf(actor->holder, sizeof actor->holder, "%.*s",
                   as != NULL ? (int)strcspn(as + 4, " ") : (int)strlen(actor->name),
                   as != NULL ? as + 4 : actor->name);
    const char *id = strstr(line, " id=");
    (void)snprintf(actor->repeats, sizeof actor->repeats, "%.*s",
                   id != NULL ? (int)strcspn(id + 4, " ") : 0, id != NULL ? id + 4 : "");
}

static void start(struct story *story, struct actor *actor, const char *key, const char *line,
                  enum verb verb)
{
    set_options(actor, line);
    story_set_args(story, actor, line);
    actor->options.request.verb = verb;
    actor->key = key_of(story, key);
    bool by_token = verb == VERB_RENEW || verb == VERB_RELEASE;
    actor->options.request.token = (uint64_t)option(line, "token", 0);
    if (by_token && actor->options.request.token == 0)
        actor->options.request.token = strtoull(strrchr(line, ' ') + 1, NULL, 10);
    actor_start(&story->world, actor);
}

static void act_on(struct story *story, struct group *group, struct multi_output output)
{
    struct actor *member = group->members[output.key];
    if (output.notify != NOTIFY_NONE) {
        char line[LINE_MAX_BYTES];
        (void)snprintf(line, sizeof line, "all keys: told %s",
                       output.notify == NOTIFY_HELD   ? "held"
                       : output.notify == NOTIFY_LOST ? "lost"
                                                      : outcome_name(output.outcome));
        world_say(&story->world, group->members[0]->name, line);
    }
    if (output.act == DO_START)
        actor_start(&story->world, member);
    else if (output.act == DO_CANCEL)
        actor_let_go(&story->world, member);
}

/* ann takes db,cache: the members are named ann-1, ann-2 in the order of the keys. */
static void take_several(struct story *story, const char *who, const char *keys, const char *line)
{
    const char *names[MULTI_MAX];
    static char list[LINE_MAX_BYTES * GROUPS_MAX]; /* the names are valid until the program ends */
    char *rest = list + story->group_count * LINE_MAX_BYTES;
    (void)snprintf(rest, LINE_MAX_BYTES, "%s", keys);
    size_t count = 0;
    struct group *group = &story->groups[story->group_count++];
    for (char *name = strtok_r(rest, ",", &rest); name != NULL; name = strtok_r(rest, ",", &rest))
        names[count++] = name;
    if (!multi_sort(names, count))
        exit(64);
    multi_init(&group->multi, count);
    for (size_t i = 0; i < count; i++) {
        char name[40];
        (void)snprintf(name, sizeof name, "%s-%zu", who, i + 1);
        group->members[i] = story_actor(story, name);
        set_options(group->members[i], line);
        group->members[i]->key = key_of(story, names[i]);
    }
    act_on(story, group, multi_start(&group->multi));
}

static struct group *group_of(struct story *story, const struct actor *actor, size_t *out_key)
{
    for (size_t i = 0; i < story->group_count; i++)
        for (size_t key = 0; key < story->groups[i].multi.count; key++)
            if (story->groups[i].members[key] == actor) {
                *out_key = key;
                return &story->groups[i];
            }
    return NULL;
}

void story_told(struct story *story, struct actor *actor, const struct lease_output *out)
{
    size_t key = 0;
    struct group *group = group_of(story, actor, &key);
    if (group != NULL)
        act_on(story, group, multi_notify(&group->multi, key, out->notify, out->outcome));
}

static void keep_bytes(void *caller, const struct store_reply *reply)
{
    struct world *world = caller;
    (void)snprintf(world->encoded, sizeof world->encoded, "%.*s",
                   reply->present ? (int)reply->length : 6,
                   reply->present ? reply->bytes : "absent");
}

static void do_store(struct story *story, const char *verb, const char *key)
{
    struct world *world = &story->world;
    if (strcmp(verb, "goes") == 0 || strcmp(verb, "comes") == 0) {
        world->store_down = strcmp(verb, "goes") == 0;
        return;
    }
    if (strcmp(verb, "raises") == 0) { /* its epoch, so many revisions behind */
        memory_raise_epoch(world->store, strtoull(key, NULL, 10));
        return;
    }
    struct store_request look = {.verb = VERB_STORE_READ, .key = key};
    memory_driver.submit(world->store, &look, keep_bytes, world);
    world_say(world, "store", world->encoded);
}

static bool do_next_faults(struct actor *actor, const char *verb, const char *what,
                           const char *line)
{
    struct next_faults *next_faults = &actor->next_faults;
    bool request = strcmp(what, "request") == 0, reply = strcmp(what, "answer") == 0;
    bool notice = strcmp(what, "notice") == 0;
    int64_t ms = strtoll(strrchr(line, ' ') + 1, NULL, 10);
    if (strcmp(verb, "loses") == 0 && strcmp(what, "notices") == 0)
        next_faults->lose_notices = true;
    else if (strcmp(verb, "loses") == 0)
        *(request ? &next_faults->lose_request : &next_faults->lose_answer) = true;
    else if (strcmp(verb, "doubles") == 0)
        *(request ? &next_faults->double_request : &next_faults->double_answer) = true;
    else if (strcmp(verb, "holds") == 0 && notice)
        next_faults->hold_notice_ms = ms;
    else if (strcmp(verb, "holds") == 0 && (request || reply))
        *(request ? &next_faults->hold_request_ms : &next_faults->hold_answer_ms) = ms;
    else
        return false;
    return true;
}

static bool do_life(struct story *story, struct actor *actor, const char *verb, const char *line)
{
    struct world *world = &story->world;
    if (strcmp(verb, "lets") == 0) {
        actor_let_go(world, actor);
    } else if (strcmp(verb, "abandons") == 0) {
        actor->options.cooldown_ms = 0;
        actor_let_go(world, actor);
    } else if (strcmp(verb, "gives") == 0) {
        size_t key = 0;
        char name[40];
        (void)snprintf(name, sizeof name, "%s-1", actor->name);
        struct group *group = group_of(story, story_actor(story, name), &key);
        act_on(story, group, multi_release(&group->multi));
    } else if (strcmp(verb, "dies") == 0) {
        actor_crash(world, actor);
    } else if (strcmp(verb, "starts") == 0) {
        actor_revive(world, actor);
    } else if (strcmp(verb, "stands") == 0) {
        int64_t until_ms = world->now_ms + strtoll(strrchr(line, ' ') + 1, NULL, 10);
        actor_pause(world, actor, until_ms);
        world_plan(world, actor, until_ms, /* what= */ -1, 0);
    } else if (strcmp(verb, "beats") == 0) {
        actor_beat(world, actor);
    } else if (strncmp(verb, "clock=", 6) == 0) {
        actor->rate = strtoll(verb + 6, NULL, 10);
    } else {
        return false;
    }
    return true;
}

void story_do(struct story *story, const char *line)
{
    static const struct {
        const char *word;
        enum verb verb;
    } verbs[] = {{"asks", VERB_ACQUIRE},     {"breaks", VERB_BREAK}, {"clears", VERB_CLEAR},
                 {"looks", VERB_QUERY},      {"renews", VERB_RENEW}, {"releases", VERB_RELEASE},
                 {"claims", VERB_ACQUIRE},   {"marks", VERB_MARK},   {"finishes", VERB_RELEASE},
                 {"advances", VERB_ADVANCE}, {"sets", VERB_SET}};
    char who[16], verb[32], key[64], said[LINE_MAX_BYTES];
    key[0] = '\0';
    if (sscanf(line, "%15s %31s %63s", who, verb, key) < 2)
        exit(64);
    (void)snprintf(said, sizeof said, "* %s", line);
    world_say(&story->world, "", said);
    if (strcmp(who, "store") == 0) {
        do_store(story, verb, key);
        return;
    }
    if (strcmp(verb, "takes") == 0) {
        take_several(story, who, key, line);
        return;
    }
    struct actor *actor = story_actor(story, who);
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (strcmp(verb, verbs[i].word) == 0) {
            start(story, actor, key, line, verbs[i].verb);
            return;
        }
    if (!do_life(story, actor, verb, line) && !do_next_faults(actor, verb, key, line)) {
        (void)fprintf(stderr, "story: unknown verb in: %s\n", line);
        exit(64);
    }
}
