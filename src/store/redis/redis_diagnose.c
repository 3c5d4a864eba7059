/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The diagnosis of a Redis server: whether it answers and permits what we need, and which of its
 * settings weaken a lock (docs/guarantees.md). Writes nothing.
 */
#include "store/redis/redis_internal.h"

#include "store/admin.h"
#include "store/redis/redis_probe.h"
#include "wire/duration.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SMALLEST_USER "docs/redis-store.md has the smallest user"

enum { PROBE_TIMEOUT_MS = 3000, TEXT_SIZE = 256, OLDEST = 7, CLOCKS_APART_MS = 2000, VALUE = 64 };

static void redis_check_version(const struct diagnosis *diagnosis, const char *info)
{
    char version[VALUE] = "", own[VALUE] = "";
    bool valkey = redis_probe_value(info, "valkey_version", own, sizeof own);
    (void)redis_probe_value(info, "redis_version", version, sizeof version);
    if (strtol(version, NULL, 10) < OLDEST)
        diagnosis_report(diagnosis, FINDING_WARNING, "version", "use Redis 7 or Valkey 8",
                         "the server is Redis %s, which is not tested", version);
    else
        diagnosis_report(diagnosis, FINDING_OK, "version", NULL, "the server is %s %s",
                         valkey ? "Valkey" : "Redis", valkey ? own : version);
}

static void redis_check_memory(const struct diagnosis *diagnosis, const char *info)
{
    char max[VALUE] = "0", policy[VALUE] = "";
    (void)redis_probe_value(info, "maxmemory", max, sizeof max);
    (void)redis_probe_value(info, "maxmemory_policy", policy, sizeof policy);
    if (strcmp(policy, "noeviction") == 0)
        diagnosis_report(diagnosis, FINDING_OK, "memory", NULL,
                         "nothing is evicted when memory is full");
    else
        diagnosis_report(diagnosis, FINDING_WARNING, "memory", "set maxmemory-policy to noeviction",
                         "maxmemory-policy is %s%s: locks are evicted when memory is full, while "
                         "their holders work",
                         policy, strcmp(max, "0") == 0 ? ", without a limit yet" : "");
}

static void redis_check_persistence(const struct diagnosis *diagnosis, struct redis_probe *probe,
                                    const char *info)
{
    char on[VALUE] = "", sync[VALUE] = "", message[TEXT_SIZE];
    struct text why;
    (void)redis_probe_value(info, "aof_enabled", on, sizeof on);
    if (strcmp(on, "1") != 0) {
        diagnosis_report(
            diagnosis, FINDING_WARNING, "persistence",
            "set appendonly to yes and appendfsync to always",
            "appendonly is no: a crash of the server frees every lock, and forgets every id");
        return;
    }
    text_init(&why, message, sizeof message);
    const char *reply = redis_probe_query(probe, "CONFIG", "GET", "appendfsync", &why);
    const char *value = reply != NULL ? strchr(reply, '\n') : NULL;
    if (value != NULL)
        (void)snprintf(sync, sizeof sync, "%.*s", (int)strcspn(value + 1, "\n"), value + 1);
    if (value == NULL)
        diagnosis_report(diagnosis, FINDING_WARNING, "persistence", NULL,
                         "whether appendfsync is always cannot be asked: %s", message);
    else if (strcmp(sync, "always") == 0)
        diagnosis_report(diagnosis, FINDING_OK, "persistence", NULL,
                         "what is answered is on the disk before (appendfsync always)");
    else
        diagnosis_report(
            diagnosis, FINDING_WARNING, "persistence", "set appendfsync to always",
            "appendfsync is %s: with the power, locks that were granted shortly before are "
            "lost",
            sync);
}

static void redis_check_replication(const struct diagnosis *diagnosis, const char *info)
{
    char role[VALUE] = "", count[VALUE] = "0";
    (void)redis_probe_value(info, "role", role, sizeof role);
    (void)redis_probe_value(info, "connected_slaves", count, sizeof count);
    if (strcmp(role, "slave") == 0)
        diagnosis_report(diagnosis, FINDING_PROBLEM, "replicas",
                         "name the master, or its Sentinels",
                         "the server is a replica, which takes no locks");
    else if (strcmp(count, "0") != 0)
        diagnosis_report(
            diagnosis, FINDING_WARNING, "replicas",
            "let what is guarded refuse old tokens (docs/fencing.md)",
            "the server has %s replica%s: a failover can lose locks that were just granted", count,
            strcmp(count, "1") == 0 ? "" : "s");
    else
        diagnosis_report(diagnosis, FINDING_OK, "replicas", NULL,
                         "the server has no replicas, so no failover can lose a lock");
}

static void redis_check_time(const struct diagnosis *diagnosis, struct redis_probe *probe)
{
    char message[TEXT_SIZE], apart[DURATION_SHOWN];
    struct text why;
    struct timespec now = {0};
    text_init(&why, message, sizeof message);
    const char *reply = redis_probe_query(probe, "TIME", NULL, NULL, &why);
    if (reply == NULL) {
        diagnosis_report(diagnosis, FINDING_PROBLEM, "rights", SMALLEST_USER, "%s", message);
        return;
    }
    (void)clock_gettime(CLOCK_REALTIME, &now);
    char *rest = NULL;
    int64_t theirs_ms = strtoll(reply, &rest, 10) * 1000;
    theirs_ms += strtoll(rest, NULL, 10) / 1000;
    int64_t ahead_ms = theirs_ms - ((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000);
    (void)duration_show(ahead_ms < 0 ? -ahead_ms : ahead_ms, apart);
    if (ahead_ms > CLOCKS_APART_MS || ahead_ms < -CLOCKS_APART_MS)
        diagnosis_report(
            diagnosis, FINDING_WARNING, "clock", "let both follow the same time servers",
            "the server's clock is %s %s ours: when it is put right by a step, leases end "
            "too early or too late",
            apart, ahead_ms > 0 ? "ahead of" : "behind");
    else
        diagnosis_report(diagnosis, FINDING_OK, "clock", NULL, "the server's clock is ours, to %s",
                         apart);
}

void redis_diagnose(const char *url, const struct diagnosis *diagnosis)
{
    char message[TEXT_SIZE];
    struct text why;
    text_init(&why, message, sizeof message);
    if (strstr(url, "sentinel=") != NULL) {
        diagnosis->check_read(diagnosis, url, SMALLEST_USER);
        diagnosis_report(diagnosis, FINDING_WARNING, "replicas",
                         "let doctor look at the servers themselves, one after the other",
                         "behind Sentinel a failover can lose locks that were just granted");
        return;
    }
    struct redis_probe *probe =
        redis_probe_new(url, diagnosis_timeout_ms(diagnosis, PROBE_TIMEOUT_MS), &why);
    if (probe == NULL) {
        diagnosis_report(diagnosis, FINDING_PROBLEM, "server", NULL, "%s", message);
        return;
    }
    diagnosis->check_read(diagnosis, url, SMALLEST_USER);
    redis_check_time(diagnosis, probe);
    text_clear(&why);
    const char *info = redis_probe_query(probe, "INFO", NULL, NULL, &why);
    char *kept = info != NULL ? strdup(info) : NULL; /* the next query overwrites it */
    if (kept != NULL) {
        redis_check_version(diagnosis, kept);
        redis_check_memory(diagnosis, kept);
        redis_check_persistence(diagnosis, probe, kept);
        redis_check_replication(diagnosis, kept);
    } else {
        diagnosis_report(diagnosis, FINDING_WARNING, "settings",
                         "name a user that may, for doctor alone: +info +config|get",
                         "the server's settings cannot be asked: %s", message);
    }
    free(kept);
    redis_probe_free(&probe);
}
