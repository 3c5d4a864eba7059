/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold doctor, for a Kubernetes cluster: whether its API server answers, who we are to it and
 * until when, what we may do there, whether the namespace exists, and what was left behind. Takes
 * no lock; what it asks the server to create is a dry run.
 */
#include "face/cli/doctor.h"

#include "io/kube_ask.h"
#include "store/k8s/survey.h"
#include "wire/duration.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROLE           "bind the Role of dist/kubernetes (or /usr/share/leasehold/kubernetes)"
#define EVENTS_ROLE    "kubectl apply -k dist/kubernetes/events, or leave ?events=on away"
#define WORKLOADS_ROLE "put the kind into the Role of dist/kubernetes/workloads, and apply that"

enum { PATIENCE_MS = 5000, OLDEST_MINOR = 14, SLOW_MS = 1000, LEFT_MANY = 1000, SOON_S = 300 };

static int64_t wall_s(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec;
}

/* ---- who we are ---- */

static void look_at_identity(struct doctor *doctor, const struct k8s_identity *identity)
{
    char left[DURATION_SHOWN];
    const char *how = identity->plugin        ? "a credential plugin"
                      : identity->token_file  ? "a token in a file"
                      : identity->token       ? "a token in the kubeconfig"
                      : identity->certificate ? "a client certificate"
                                              : "nothing";
    int64_t left_s = identity->token_ends_s - wall_s();
    bool known = identity->token_ends_s >= 0;
    if (strcmp(how, "nothing") == 0)
        doctor_say(doctor, FINDING_WARNING, "identity",
                   "give the kubeconfig's user a token, a certificate or a plugin",
                   "we say nothing about who we are");
    else if (known && left_s <= 0)
        doctor_say(doctor, FINDING_PROBLEM, "identity", "get a new one", "%s has ended", how);
    else if (known && !identity->token_file && left_s < SOON_S)
        doctor_say(doctor, FINDING_WARNING, "identity",
                   "use a tokenFile or a plugin, which are asked anew", "%s ends in %s", how,
                   duration_show(left_s * 1000, left));
    else
        doctor_say(doctor, FINDING_OK, "identity", NULL, "we are known by %s%s%s", how,
                   known ? ", which ends in " : "",
                   known ? duration_show(left_s * 1000, left) : "");
    doctor_say(doctor, FINDING_OK, "cluster", NULL, "the API server is %s, the namespace %s",
               identity->server, identity->namespace);
}

/* ---- the server ---- */

static void look_at_time(struct doctor *doctor, int64_t date_s)
{
    char shown[DURATION_SHOWN];
    int64_t ahead_s = date_s - wall_s();
    const char *apart = duration_show((ahead_s < 0 ? -ahead_s : ahead_s) * 1000, shown);
    if (date_s < 0)
        doctor_say(doctor, FINDING_WARNING, "clock",
                   "see that nothing between here and the API server takes the Date header away",
                   "the API server tells no time: a dead holder's lock is free only when we have "
                   "seen it unchanged for its whole length");
    else
        doctor_say(doctor, FINDING_OK, "clock", NULL,
                   "the API server's clock is %s %s ours; leases are judged by its clock alone",
                   apart, ahead_s < 0 ? "behind" : "ahead of");
}

static void look_at_version(struct doctor *doctor, const struct k8s_reply *reply)
{
    const char *version = kube_words(reply->json, "gitVersion");
    long major = strtol(kube_words(reply->json, "major"), NULL, 10);
    long minor = strtol(kube_words(reply->json, "minor"), NULL, 10);
    if (reply->status != 200)
        doctor_say(doctor, FINDING_WARNING, "version", NULL, "the version cannot be asked: %s",
                   reply->why);
    else if (major == 1 && minor < OLDEST_MINOR)
        doctor_say(doctor, FINDING_PROBLEM, "version", "use 1.14 or newer",
                   "the API server is %s, which has no Leases as we write them", version);
    else
        doctor_say(doctor, FINDING_OK, "version", NULL, "the API server is %s", version);
}

/* False when there is nobody to be asked further. */
static bool look_at_server(struct doctor *doctor, struct k8s_survey *survey)
{
    struct k8s_reply first, second;
    char took[DURATION_SHOWN];
    k8s_survey_ask(survey, "GET", "/version", NULL, &first);
    k8s_reply_done(&first);
    bool refused = first.status == 401;
    if (first.status == 0 || refused) {
        doctor_say(doctor, FINDING_PROBLEM, refused ? "identity" : "server",
                   refused ? "look at the kubeconfig's user, or the token's file" : NULL, "%s",
                   first.why);
        return false;
    }
    /* The second one has a connection already: that is what a lock costs. */
    k8s_survey_ask(survey, "GET", "/version", NULL, &second);
    (void)duration_show(second.took_ms, took);
    if (second.took_ms > SLOW_MS)
        doctor_say(doctor, FINDING_WARNING, "server", "look at its load, and at the way to it",
                   "the API server answers in %s: give locks a TTL of several times that", took);
    else
        doctor_say(doctor, FINDING_OK, "server", NULL, "the API server answers in %s", took);
    look_at_version(doctor, &second);
    look_at_time(doctor, second.date_s);
    k8s_reply_done(&second);
    return true;
}

/* ---- rights ---- */

enum may { MAY, MAY_NOT, MAY_UNKNOWN };

static enum may ask_whether(struct k8s_survey *survey, const struct k8s_identity *identity,
                            const char *group, const char *resource, const char *verb, char *why,
                            size_t size)
{
    struct k8s_reply reply;
    json_t *body =
        json_pack("{s:s, s:s, s:{s:{s:s, s:s, s:s, s:s}}}", "apiVersion", "authorization.k8s.io/v1",
                  "kind", "SelfSubjectAccessReview", "spec", "resourceAttributes", "namespace",
                  identity->namespace, "group", group, "resource", resource, "verb", verb);
    k8s_survey_ask(survey, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body,
                   &reply);
    const json_t *allowed = json_object_get(json_object_get(reply.json, "status"), "allowed");
    enum may may = reply.status != 201 ? MAY_UNKNOWN : json_is_true(allowed) ? MAY : MAY_NOT;
    (void)snprintf(why, size, "%s", reply.why);
    k8s_reply_done(&reply);
    return may;
}

/* All verbs at once: one line. True when nothing that was asked is missing. */
static bool look_at_verbs(struct doctor *doctor, struct k8s_survey *survey,
                          const struct k8s_identity *identity, const char *group,
                          const char *resource, const char *const *verbs, const char *remedy)
{
    char words[LH_TEXT_SIZE], all[LH_TEXT_SIZE], why[512] = "";
    struct text missing, asked;
    enum may may = MAY;
    text_init(&missing, words, sizeof words);
    text_init(&asked, all, sizeof all);
    for (size_t i = 0; verbs[i] != NULL && may != MAY_UNKNOWN; i++) {
        may = ask_whether(survey, identity, group, resource, verbs[i], why, sizeof why);
        text_add(&asked, i > 0 ? ", " : "");
        text_add(&asked, verbs[i]);
        if (may == MAY_NOT) {
            text_add(&missing, missing.length > 0 ? ", " : "");
            text_add(&missing, verbs[i]);
        }
    }
    if (may == MAY_UNKNOWN)
        doctor_say(doctor, FINDING_WARNING, "rights", NULL,
                   "what we may do with %s cannot be asked: %s", resource, why);
    else if (missing.length > 0)
        doctor_say(doctor, FINDING_PROBLEM, "rights", remedy, "we may not %s %s in %s", words,
                   resource, identity->namespace);
    else
        doctor_say(doctor, FINDING_OK, "rights", NULL, "we may %s %s", all, resource);
    return may != MAY_UNKNOWN && missing.length == 0;
}

static void look_at_objects(struct doctor *doctor, struct k8s_survey *survey, const char *kind)
{
    static const struct end_rules usual = {0};
    struct k8s_collection found;
    k8s_survey_collect_kind(survey, kind, &usual, /* rate= */ 0, &found);
    if (found.why[0] != '\0')
        doctor_say(doctor, FINDING_WARNING, "leftovers", NULL,
                   "%s that were left behind cannot be counted: %s", kind, found.why);
    else if (found.left > 0)
        doctor_say(doctor, FINDING_WARNING, "leftovers",
                   "remove them with leasehold collect --kind, or let dist/kubernetes/collector",
                   "%s that nobody needs any more: %u (%s)", kind, found.left, found.names);
    else
        doctor_say(doctor, FINDING_OK, "leftovers", NULL, "%s that nobody needs any more: 0", kind);
}

/* What `leasehold k8s-run` needs for objects of a kind, named as kubectl does: "jobs.batch". */
static void look_at_kind(struct doctor *doctor, struct k8s_survey *survey,
                         const struct k8s_identity *identity, const char *kind)
{
    static const char *const verbs[] = {"get", "list", "watch", "create", "delete", NULL};
    char resource[LH_TEXT_SIZE];
    size_t length = strcspn(kind, ".");
    (void)snprintf(resource, sizeof resource, "%.*s", (int)length, kind);
    if (look_at_verbs(doctor, survey, identity, kind[length] == '.' ? kind + length + 1 : "",
                      resource, verbs, WORKLOADS_ROLE))
        look_at_objects(doctor, survey, kind);
}

/* A creation that the server only tries: it also says whether the namespace is there. */
static void look_at_namespace(struct doctor *doctor, struct k8s_survey *survey,
                              const struct k8s_identity *identity)
{
    char place[256];
    struct k8s_reply reply;
    (void)snprintf(place, sizeof place,
                   "/apis/coordination.k8s.io/v1/namespaces/%s/leases?dryRun=All",
                   identity->namespace);
    json_t *body = json_pack("{s:s, s:s, s:{s:s}}", "apiVersion", "coordination.k8s.io/v1", "kind",
                             "Lease", "metadata", "generateName", "leasehold-doctor-");
    k8s_survey_ask(survey, "POST", place, body, &reply);
    if (reply.status == 201)
        doctor_say(doctor, FINDING_OK, "namespace", NULL, "the namespace takes Leases");
    else if (reply.status == 404)
        doctor_say(doctor, FINDING_PROBLEM, "namespace",
                   "make it with kubectl create namespace, or name another one in the URL",
                   "there is no namespace %s", identity->namespace);
    else
        doctor_say(doctor, FINDING_PROBLEM, "namespace", NULL, "it takes no Lease: %s", reply.why);
    k8s_reply_done(&reply);
}

static void look_at_leftovers(struct doctor *doctor, struct k8s_survey *survey)
{
    struct k8s_collection collection;
    k8s_survey_collect(survey, /* rate= */ 0, &collection);
    if (collection.why[0] != '\0')
        doctor_say(doctor, FINDING_WARNING, "leftovers", NULL,
                   "what was left behind cannot be counted: %s", collection.why);
    else
        doctor_say(doctor, collection.left > LEFT_MANY ? FINDING_WARNING : FINDING_OK, "leftovers",
                   collection.left > LEFT_MANY ? "remove them with leasehold collect" : NULL,
                   "Leases that nobody needs any more: %u", collection.left);
}

void doctor_tell_events(const struct visit *visit)
{
    char words[LH_TEXT_SIZE], why[512] = "";
    struct text text;
    struct k8s_identity identity;
    int64_t patience_ms = visit->settings.store_timeout_ms;
    if (patience_ms <= 0 || patience_ms > PATIENCE_MS)
        patience_ms = PATIENCE_MS;
    text_init(&text, words, sizeof words);
    struct k8s_survey *survey = k8s_survey_new(visit->url, patience_ms, &text);
    if (survey == NULL)
        return; /* the store itself says what is wrong */
    k8s_survey_identity(survey, &identity);
    if (identity.events &&
        ask_whether(survey, &identity, "", "events", "create", why, sizeof why) == MAY_NOT)
        say_detail(visit, "no Events are written: we may not create events in %s; " EVENTS_ROLE,
                   identity.namespace);
    k8s_survey_free(&survey);
}

void doctor_look_at_k8s(struct doctor *doctor, const char *url)
{
    static const char *const lease_verbs[] = {"get",    "list",   "watch", "create",
                                              "update", "delete", NULL};
    static const char *const event_verbs[] = {"create", NULL};
    char words[LH_TEXT_SIZE];
    struct text why;
    struct k8s_identity identity;
    text_init(&why, words, sizeof words);
    struct k8s_survey *survey = k8s_survey_new(url, PATIENCE_MS, &why);
    if (survey == NULL) {
        doctor_say(doctor, FINDING_PROBLEM, "cluster",
                   "name a kubeconfig with KUBECONFIG, or run in a pod", "%s", words);
        return;
    }
    k8s_survey_identity(survey, &identity);
    look_at_identity(doctor, &identity);
    if (look_at_server(doctor, survey)) {
        bool good = look_at_verbs(doctor, survey, &identity, "coordination.k8s.io", "leases",
                                  lease_verbs, ROLE);
        if (identity.events)
            (void)look_at_verbs(doctor, survey, &identity, "", "events", event_verbs, EVENTS_ROLE);
        if (doctor->visit->settings.kind != NULL)
            look_at_kind(doctor, survey, &identity, doctor->visit->settings.kind);
        if (good) {
            look_at_namespace(doctor, survey, &identity);
            look_at_leftovers(doctor, survey);
        }
    }
    k8s_survey_free(&survey);
}
