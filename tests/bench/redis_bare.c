/* SPDX-License-Identifier: Apache-2.0 */
/* See redis_bare.h. */
#include "redis_bare.h"

#include "redis_peer.h"
#include "rounds.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COMMAND_MOST = 768, ANSWER = 4 };

static const char good[] = ":1\r\n";

/* KEYS: the lock, the record, the count. ARGV: the values to write or to compare. */
static const struct {
    const char *take, *give;
} scripts[] = {
    [BARE_TOKEN] = {"redis.call('INCR',KEYS[3])"
                    "if redis.call('SET',KEYS[1],ARGV[1],'NX','PX',30000) then return 1 end "
                    "return 0",
                    "if redis.call('GET',KEYS[1])==ARGV[1] then "
                    "return redis.call('DEL',KEYS[1]) end return 0"},
    [BARE_OURS] = {"local c=redis.call c('TIME')"
                   "if c('GET',KEYS[1]) or c('GET',KEYS[2]) then return 0 end "
                   "c('INCR',KEYS[3]) c('PUBLISH','bare',KEYS[2])"
                   "c('SET',KEYS[1],ARGV[1]..ARGV[2],'PX',30000) return 1",
                   "local c=redis.call c('TIME')"
                   "if string.sub(c('GET',KEYS[1]),1,32)~=ARGV[1] then return 0 end "
                   "c('PUBLISH','bare',KEYS[2]) c('DEL',KEYS[1]) return 1"},
};

/* Pipelined commands for all keys. */
struct pipeline {
    size_t length;
    char *bytes;
};

struct redis_bare {
    int file;
    size_t together;
    struct pipeline take, give;
};

static void send_all(int file, const char *bytes, size_t length)
{
    for (size_t at = 0; at < length;) {
        ssize_t sent = write(file, bytes + at, length - at);
        if (sent <= 0)
            rounds_fail("redis", strerror(errno));
        at += (size_t)sent;
    }
}

static void load(int file, const char *script, char *out_sha)
{
    char text[1024], reply[64] = "";
    int length = snprintf(text, sizeof text, "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%zu\r\n%s\r\n",
                          strlen(script), script);
    send_all(file, text, (size_t)length);
    if (read(file, reply, sizeof reply - 1) <= 0 || reply[0] != '$')
        rounds_fail("redis answered", reply);
    memcpy(out_sha, reply + strlen("$40\r\n"), REDIS_SHA);
    out_sha[REDIS_SHA] = '\0';
}

/* As long as ours: a key of 32 letters, and the record of one plain grant. */
static void fill(struct pipeline *pipeline, const char *sha, size_t together, size_t values)
{
    char record[223];
    memset(record, 'r', sizeof record - 1);
    record[sizeof record - 1] = '\0';
    pipeline->bytes = rounds_memory(together * COMMAND_MOST);
    for (size_t i = 0; i < together; i++) {
        char *at = pipeline->bytes + pipeline->length;
        int length = snprintf(at, COMMAND_MOST,
                              "*%zu\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n3\r\n"
                              "$37\r\nlock:bare%028zu\r\n$48\r\nbare:{ABCD}:lock:bare%027zu\r\n"
                              "$11\r\nbare:{ABCD}\r\n$32\r\n%032zu\r\n",
                              6 + values, sha, i, i, i);
        if (values > 1)
            length += snprintf(at + length, COMMAND_MOST - (size_t)length, "$%zu\r\n%s\r\n",
                               strlen(record), record);
        pipeline->length += (size_t)length;
    }
}

struct redis_bare *redis_bare_open(const char *server, enum redis_bare_kind kind, size_t together)
{
    char sha[REDIS_SHA + 1];
    struct redis_bare *bare = rounds_memory(sizeof *bare);
    bare->file = redis_peer_connect(server);
    bare->together = together;
    load(bare->file, scripts[kind].take, sha);
    fill(&bare->take, sha, together, /* values= */ kind == BARE_OURS ? 2 : 1);
    load(bare->file, scripts[kind].give, sha);
    fill(&bare->give, sha, together, /* values= */ 1);
    return bare;
}

void redis_bare_close(struct redis_bare **bare)
{
    (void)close((*bare)->file);
    free((*bare)->take.bytes);
    free((*bare)->give.bytes);
    free(*bare);
    *bare = NULL;
}

static void ask(const struct redis_bare *bare, const struct pipeline *pipeline)
{
    char answers[4096];
    send_all(bare->file, pipeline->bytes, pipeline->length);
    for (size_t got = 0; got < bare->together * ANSWER;) {
        ssize_t length = read(bare->file, answers, sizeof answers);
        if (length <= 0)
            rounds_fail("redis", "no answer");
        for (ssize_t i = 0; i < length; i++, got++)
            if (answers[i] != good[got % ANSWER])
                rounds_fail("redis", "a bare script went wrong");
    }
}

double redis_bare_pair_us(struct redis_bare *bare, size_t pairs)
{
    size_t done = 0;
    double from = rounds_seconds();
    for (; done < pairs; done += bare->together) {
        ask(bare, &bare->take);
        ask(bare, &bare->give);
    }
    return (rounds_seconds() - from) * 1e6 / (double)done;
}
