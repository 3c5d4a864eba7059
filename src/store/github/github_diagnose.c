/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The diagnosis of a repository: whether it exists and permits what we need, the server's limit,
 * and how many workers fit into the writes of an hour. Writes nothing. Blocks.
 */
#include "process/host.h"
#include "store/admin.h"
#include "store/github/github_internal.h"

#include <stdio.h>
#include <time.h>

enum { DIAGNOSE_MS = 10000 };

#define TOKEN_REMEDY                                                                  \
    "give the token Contents: write, and Issues: write to show locks on issues; see " \
    "docs/github-store.md"

static void diagnose_ask(struct github_api *api, const struct diagnosis *diagnosis,
                         const char *path, struct github_result *out)
{
    struct github_call call = {.method = "GET",
                               .path = path,
                               .kind = GITHUB_READ,
                               .give_up_at_ms =
                                   host_boot_ms() + diagnosis_timeout_ms(diagnosis, DIAGNOSE_MS)};
    github_api_call(api, &call, out);
}

/* True if locks can work there. */
static bool diagnose_repository(struct github_api *api, const struct github_url *url,
                                const struct diagnosis *diagnosis)
{
    char path[GITHUB_PATH + GITHUB_OWNER_MAX];
    struct github_result result;
    (void)snprintf(path, sizeof path, "/repos/%s/%s", url->owner, url->repo);
    diagnose_ask(api, diagnosis, path, &result);
    const char *refusal = github_repository_refusal(result.status, result.json);
    bool ok = result.status == 200 && refusal == NULL;
    if (ok)
        diagnosis_report(diagnosis, FINDING_OK, "repository", NULL, "%s/%s can be written",
                         url->owner, url->repo);
    else
        diagnosis_report(diagnosis, FINDING_PROBLEM, "repository", TOKEN_REMEDY, "%s",
                         refusal != NULL ? refusal : result.why);
    github_result_done(&result);
    return ok;
}

static void diagnose_limit(struct github_api *api, const struct diagnosis *diagnosis)
{
    struct github_usage usage;
    char clock[16] = "an unknown time";
    struct tm parts;
    github_api_usage(api, &usage);
    time_t reset = (time_t)usage.reset_s;
    if (usage.limit < 0) {
        diagnosis_report(diagnosis, FINDING_OK, "limit", NULL, "the server states no limit");
        return;
    }
    if (usage.reset_s >= 0 && gmtime_r(&reset, &parts) != NULL)
        (void)strftime(clock, sizeof clock, "%H:%M:%S UTC", &parts);
    bool low = usage.left * 10 < usage.limit;
    diagnosis_report(diagnosis, low ? FINDING_WARNING : FINDING_OK, "limit",
                     low ? "use fewer workers, a longer ?poll=, or a token of its own" : NULL,
                     "%lld of %lld requests are left until %s", (long long)usage.left,
                     (long long)usage.limit, clock);
}

static void diagnose_workers(struct github_api *api, const struct github_url *url,
                             const struct diagnosis *diagnosis)
{
    struct github_result result;
    diagnose_ask(api, diagnosis, "git/matching-refs/" GITHUB_WORKER_REFS, &result);
    size_t count = json_array_size(result.json);
    uint64_t each = 2 * (uint64_t)3600000 / (uint64_t)url->heartbeat_ms;
    uint64_t fit = url->writes / (each > 0 ? each : 1);
    bool full = count >= fit;
    if (result.status == 200)
        diagnosis_report(diagnosis, full ? FINDING_WARNING : FINDING_OK, "workers",
                         full ? "use a longer ?stale= with all workers, or fewer of them" : NULL,
                         "%zu have a ref; %llu fit, with %llu writes an hour each", count,
                         (unsigned long long)fit, (unsigned long long)each);
    else
        diagnosis_report(diagnosis, FINDING_PROBLEM, "workers", TOKEN_REMEDY, "%s", result.why);
    github_result_done(&result);
}

void github_diagnose(const char *url, const struct diagnosis *diagnosis)
{
    char message[GITHUB_WHY];
    struct text why;
    struct github_url parsed;
    struct github_api *api;
    if (diagnosis->events_only) /* what people see may be missing */
        return;
    text_init(&why, message, sizeof message);
    if (!github_url_parse(url, github_api_is_loopback(), &parsed, &why) ||
        !github_api_open(&api, &parsed, diagnosis_timeout_ms(diagnosis, DIAGNOSE_MS), &why)) {
        diagnosis_report(diagnosis, FINDING_PROBLEM, "url", NULL, "%s", message);
        return;
    }
    if (diagnose_repository(api, &parsed, diagnosis)) {
        diagnose_workers(api, &parsed, diagnosis);
        diagnose_limit(api, diagnosis);
    }
    github_api_close(&api);
}
