/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold doctor, for a Redis server: whether it can be reached and lets us work, and which of
 * its settings weaken what a lock is worth there (docs/guarantees.md). Takes no lock.
 */
#include "face/cli/doctor.h"

#include "store/redis/survey.h"
#include "wire/duration.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SMALLEST_USER "docs/redis-store.md has the smallest user"

enum { PATIENCE_MS = 3000, OLDEST = 7, CLOCKS_APART_MS = 2000, VALUE = 64 };

static void look_at_version(struct doctor *doctor, const char *info)
{
    char version[VALUE] = "", own[VALUE] = "";
    bool valkey = redis_survey_value(info, "valkey_version", own, sizeof own);
    (void)redis_survey_value(info, "redis_version", version, sizeof version);
    if (strtol(version, NULL, 10) < OLDEST)
        doctor_say(doctor, FINDING_WARNING, "version", "use Redis 7 or Valkey 8",
                   "the server is Redis %s, which nobody has tried", version);
    else
        doctor_say(doctor, FINDING_OK, "version", NULL, "the server is %s %s",
                   valkey ? "Valkey" : "Redis", valkey ? own : version);
}

static void look_at_memory(struct doctor *doctor, const char *info)
{
    char most[VALUE] = "0", policy[VALUE] = "";
    (void)redis_survey_value(info, "maxmemory", most, sizeof most);
    (void)redis_survey_value(info, "maxmemory_policy", policy, sizeof policy);
    if (strcmp(policy, "noeviction") == 0)
        doctor_say(doctor, FINDING_OK, "memory", NULL, "nothing is evicted when memory is short");
    else
        doctor_say(doctor, FINDING_WARNING, "memory", "set maxmemory-policy to noeviction",
                   "maxmemory-policy is %s%s: locks are thrown away when memory is short, while "
                   "their holders work",
                   policy, strcmp(most, "0") == 0 ? ", without a limit yet" : "");
}

static void look_at_persistence(struct doctor *doctor, struct redis_survey *survey,
                                const char *info)
{
    char on[VALUE] = "", sync[VALUE] = "", words[LH_TEXT_SIZE];
    struct text why;
    (void)redis_survey_value(info, "aof_enabled", on, sizeof on);
    if (strcmp(on, "1") != 0) {
        doctor_say(
            doctor, FINDING_WARNING, "persistence",
            "set appendonly to yes and appendfsync to always",
            "appendonly is no: a crash of the server frees every lock, and forgets every id");
        return;
    }
    text_init(&why, words, sizeof words);
    const char *said = redis_survey_ask(survey, "CONFIG", "GET", "appendfsync", &why);
    const char *value = said != NULL ? strchr(said, '\n') : NULL;
    if (value != NULL)
        (void)snprintf(sync, sizeof sync, "%.*s", (int)strcspn(value + 1, "\n"), value + 1);
    if (value == NULL)
        doctor_say(doctor, FINDING_WARNING, "persistence", NULL,
                   "whether appendfsync is always cannot be asked: %s", words);
    else if (strcmp(sync, "always") == 0)
        doctor_say(doctor, FINDING_OK, "persistence", NULL,
                   "what is answered is on the disk before (appendfsync always)");
    else
        doctor_say(doctor, FINDING_WARNING, "persistence", "set appendfsync to always",
                   "appendfsync is %s: with the power, locks that were granted shortly before are "
                   "lost",
                   sync);
}

static void look_at_replication(struct doctor *doctor, const char *info)
{
    char role[VALUE] = "", count[VALUE] = "0";
    (void)redis_survey_value(info, "role", role, sizeof role);
    (void)redis_survey_value(info, "connected_slaves", count, sizeof count);
    if (strcmp(role, "slave") == 0)
        doctor_say(doctor, FINDING_PROBLEM, "replicas", "name the master, or its Sentinels",
                   "the server is a replica, which takes no locks");
    else if (strcmp(count, "0") != 0)
        doctor_say(doctor, FINDING_WARNING, "replicas",
                   "let what is guarded refuse old tokens (docs/fencing.md)",
                   "the server has %s replica%s: a failover can lose locks that were just granted",
                   count, strcmp(count, "1") == 0 ? "" : "s");
    else
        doctor_say(doctor, FINDING_OK, "replicas", NULL,
                   "the server has no replicas, so no failover can lose a lock");
}

static void look_at_time(struct doctor *doctor, struct redis_survey *survey)
{
    char words[LH_TEXT_SIZE], apart[DURATION_SHOWN];
    struct text why;
    struct timespec now = {0};
    text_init(&why, words, sizeof words);
    const char *said = redis_survey_ask(survey, "TIME", NULL, NULL, &why);
    if (said == NULL) {
        doctor_say(doctor, FINDING_PROBLEM, "rights", SMALLEST_USER, "%s", words);
        return;
    }
    (void)clock_gettime(CLOCK_REALTIME, &now);
    char *rest = NULL;
    int64_t theirs_ms = strtoll(said, &rest, 10) * 1000;
    theirs_ms += strtoll(rest, NULL, 10) / 1000;
    int64_t ahead_ms = theirs_ms - ((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000);
    (void)duration_show(ahead_ms < 0 ? -ahead_ms : ahead_ms, apart);
    if (ahead_ms > CLOCKS_APART_MS || ahead_ms < -CLOCKS_APART_MS)
        doctor_say(doctor, FINDING_WARNING, "clock", "let both follow the same time servers",
                   "the server's clock is %s %s ours: when it is put right by a step, leases end "
                   "too early or too late",
                   apart, ahead_ms > 0 ? "ahead of" : "behind");
    else
        doctor_say(doctor, FINDING_OK, "clock", NULL, "the server's clock is ours, to %s", apart);
}

void doctor_look_at_redis(struct doctor *doctor, const char *url)
{
    char words[LH_TEXT_SIZE];
    struct text why;
    text_init(&why, words, sizeof words);
    if (strstr(url, "sentinel=") != NULL) {
        doctor_look_at_rights(doctor, SMALLEST_USER);
        doctor_say(doctor, FINDING_WARNING, "replicas",
                   "let doctor look at the servers themselves, one after the other",
                   "behind Sentinel a failover can lose locks that were just granted");
        return;
    }
    struct redis_survey *survey = redis_survey_new(url, PATIENCE_MS, &why);
    if (survey == NULL) {
        doctor_say(doctor, FINDING_PROBLEM, "server", NULL, "%s", words);
        return;
    }
    doctor_look_at_rights(doctor, SMALLEST_USER);
    look_at_time(doctor, survey);
    text_clear(&why);
    const char *info = redis_survey_ask(survey, "INFO", NULL, NULL, &why);
    char *kept = info != NULL ? strdup(info) : NULL; /* further questions take its place */
    if (kept != NULL) {
        look_at_version(doctor, kept);
        look_at_memory(doctor, kept);
        look_at_persistence(doctor, survey, kept);
        look_at_replication(doctor, kept);
    } else {
        doctor_say(doctor, FINDING_WARNING, "settings",
                   "name a user that may, for doctor alone: +info +config|get",
                   "the server's settings cannot be asked: %s", words);
    }
    free(kept);
    redis_survey_free(&survey);
}
