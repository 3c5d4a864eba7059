/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The diagnosis of a Kubernetes cluster: whether its API server answers, our identity and its end,
 * our permissions, whether the namespace exists, and how many leftovers there are. Takes no lock;
 * the one creation that it requests is a dry run.
 */
#include "process/host.h"
#include "store/k8s/k8s_internal.h"
#include "wire/duration.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROLE           "bind the Role of dist/kubernetes (or /usr/share/leasehold/kubernetes)"
#define EVENTS_ROLE    "kubectl apply -k dist/kubernetes/events, or leave ?events=on away"
#define WORKLOADS_ROLE "put the kind into the Role of dist/kubernetes/workloads, and apply that"

enum {
    DIAGNOSE_TIMEOUT_MS = 5000,
    TEXT_SIZE = 256,
    TOKEN_PART = 4096,
    OLDEST_MINOR = 14,
    SLOW_MS = 1000,
    LEFT_MANY = 1000,
    SOON_S = 300
};

/* ---- identity ---- */

/* The expiry of a token that contains one, in seconds since 1970; −1: unknown. */
static int64_t k8s_token_ends_s(struct k8s *k8s)
{
    const char *bearer = NULL;
    char text[TEXT_SIZE], claims[TOKEN_PART];
    struct text why;
    text_init(&why, text, sizeof text);
    if (k8s->kube.config.plugin != NULL || !kube_login_ready(k8s->kube.login) ||
        !kube_login_bearer(k8s->kube.login, &bearer, &why) || bearer == NULL)
        return -1;
    /* "header.claims.signature", or a token of another kind. */
    const char *at = strchr(bearer, '.');
    size_t length = at != NULL && strlen(at) < sizeof claims ? kube_decode64(at + 1, claims) : 0;
    json_t *json = json_loadb(claims, length, JSON_ALLOW_NUL, NULL);
    const json_t *end = json_object_get(json, "exp");
    int64_t end_s = json_is_integer(end) ? json_integer_value(end) : -1;
    json_decref(json);
    explicit_bzero(claims, sizeof claims);
    return end_s;
}

static void k8s_check_identity(const struct diagnosis *diagnosis, struct k8s *k8s)
{
    char left[DURATION_SHOWN];
    const struct kube_config *config = &k8s->kube.config;
    const char *how = config->plugin != NULL          ? "a credential plugin"
                      : config->token_file != NULL    ? "a token in a file"
                      : config->token != NULL         ? "a token in the kubeconfig"
                      : config->tls.cert_file != NULL ? "a client certificate"
                                                      : NULL;
    int64_t ends_s = k8s_token_ends_s(k8s), left_s = ends_s - host_wall_ms() / 1000;
    bool known = ends_s >= 0;
    if (how == NULL)
        diagnosis_report(diagnosis, FINDING_WARNING, "identity",
                         "give the kubeconfig's user a token, a certificate or a plugin",
                         "we say nothing about who we are");
    else if (known && left_s <= 0)
        diagnosis_report(diagnosis, FINDING_PROBLEM, "identity", "get a new one", "%s has ended",
                         how);
    else if (known && config->token_file == NULL && left_s < SOON_S)
        diagnosis_report(diagnosis, FINDING_WARNING, "identity",
                         "use a tokenFile or a plugin, which are asked anew", "%s ends in %s", how,
                         duration_show(left_s * 1000, left));
    else
        diagnosis_report(diagnosis, FINDING_OK, "identity", NULL, "we are known by %s%s%s", how,
                         known ? ", which ends in " : "",
                         known ? duration_show(left_s * 1000, left) : "");
    diagnosis_report(diagnosis, FINDING_OK, "cluster", NULL,
                     "the API server is %s, the namespace %s", config->server, config->namespace);
}

/* ---- the server ---- */

static void k8s_check_time(const struct diagnosis *diagnosis, int64_t now_ms)
{
    char shown[DURATION_SHOWN];
    int64_t ahead_s = now_ms != TIME_UNKNOWN ? now_ms / 1000 - host_wall_ms() / 1000 : 0;
    const char *apart = duration_show((ahead_s < 0 ? -ahead_s : ahead_s) * 1000, shown);
    if (now_ms == TIME_UNKNOWN)
        diagnosis_report(
            diagnosis, FINDING_WARNING, "clock",
            "see that nothing between here and the API server takes the Date header away",
            "the API server tells no time: a dead holder's lock is free only when we have "
            "seen it unchanged for its whole length");
    else
        diagnosis_report(
            diagnosis, FINDING_OK, "clock", NULL,
            "the API server's clock is %s %s ours; leases are judged by its clock alone", apart,
            ahead_s < 0 ? "behind" : "ahead of");
}

static void k8s_check_version(const struct diagnosis *diagnosis, const struct json_result *reply)
{
    const char *version = kube_string(reply->json, "gitVersion");
    long major = strtol(kube_string(reply->json, "major"), NULL, 10);
    long minor = strtol(kube_string(reply->json, "minor"), NULL, 10);
    if (reply->status != 200)
        diagnosis_report(diagnosis, FINDING_WARNING, "version", NULL,
                         "the version cannot be asked: %s", reply->why);
    else if (major == 1 && minor < OLDEST_MINOR)
        diagnosis_report(diagnosis, FINDING_PROBLEM, "version", "use 1.14 or newer",
                         "the API server is %s, which has no Leases as we write them", version);
    else
        diagnosis_report(diagnosis, FINDING_OK, "version", NULL, "the API server is %s", version);
}

/* False when no server answers, or it refuses us. */
static bool k8s_check_server(const struct diagnosis *diagnosis, struct k8s *k8s)
{
    struct json_result first, second;
    char took[DURATION_SHOWN];
    kube_call(&k8s->kube, "GET", "/version", NULL, &first);
    json_result_done(&first);
    bool refused = first.status == 401;
    if (first.status == 0 || refused) {
        diagnosis_report(diagnosis, FINDING_PROBLEM, refused ? "identity" : "server",
                         refused ? "look at the kubeconfig's user, or the token's file" : NULL,
                         "%s", first.why);
        return false;
    }
    /* The second request reuses the connection, as a lock does. */
    int64_t began_ms = host_boot_ms();
    kube_call(&k8s->kube, "GET", "/version", NULL, &second);
    int64_t took_ms = host_boot_ms() - began_ms;
    (void)duration_show(took_ms, took);
    if (took_ms > SLOW_MS)
        diagnosis_report(
            diagnosis, FINDING_WARNING, "server", "look at its load, and at the way to it",
            "the API server answers in %s: give locks a TTL of several times that", took);
    else
        diagnosis_report(diagnosis, FINDING_OK, "server", NULL, "the API server answers in %s",
                         took);
    k8s_check_version(diagnosis, &second);
    k8s_check_time(diagnosis, second.now_ms);
    json_result_done(&second);
    return true;
}

/* ---- rights ---- */

enum permission { PERMITTED, FORBIDDEN, PERMISSION_UNKNOWN };

/* `reply` has the reason if it is unknown. */
static enum permission k8s_check_access(struct k8s *k8s, const char *group, const char *resource,
                                        const char *verb, struct json_result *reply)
{
    json_t *body =
        json_pack("{s:s, s:s, s:{s:{s:s, s:s, s:s, s:s}}}", "apiVersion", "authorization.k8s.io/v1",
                  "kind", "SelfSubjectAccessReview", "spec", "resourceAttributes", "namespace",
                  k8s->kube.config.namespace, "group", group, "resource", resource, "verb", verb);
    kube_call(&k8s->kube, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body,
              reply);
    bool allowed = json_is_true(json_object_get(json_object_get(reply->json, "status"), "allowed"));
    json_result_done(reply);
    return reply->status != 201 ? PERMISSION_UNKNOWN : allowed ? PERMITTED : FORBIDDEN;
}

/* One finding for all verbs. True when all are permitted. */
static bool k8s_check_verbs(const struct diagnosis *diagnosis, struct k8s *k8s, const char *group,
                            const char *resource, const char *const *verbs, const char *remedy)
{
    char message[TEXT_SIZE], all[TEXT_SIZE];
    struct json_result reply = {0};
    struct text missing, asked;
    enum permission permission = PERMITTED;
    text_init(&missing, message, sizeof message);
    text_init(&asked, all, sizeof all);
    for (size_t i = 0; verbs[i] != NULL && permission != PERMISSION_UNKNOWN; i++) {
        permission = k8s_check_access(k8s, group, resource, verbs[i], &reply);
        TEXT_JOIN(&asked, i > 0 ? ", " : "", verbs[i]);
        if (permission == FORBIDDEN)
            TEXT_JOIN(&missing, missing.length > 0 ? ", " : "", verbs[i]);
    }
    if (permission == PERMISSION_UNKNOWN)
        diagnosis_report(diagnosis, FINDING_WARNING, "rights", NULL,
                         "what we may do with %s cannot be asked: %s", resource, reply.why);
    else if (missing.length > 0)
        diagnosis_report(diagnosis, FINDING_PROBLEM, "rights", remedy, "we may not %s %s in %s",
                         message, resource, k8s->kube.config.namespace);
    else
        diagnosis_report(diagnosis, FINDING_OK, "rights", NULL, "we may %s %s", all, resource);
    return permission != PERMISSION_UNKNOWN && missing.length == 0;
}

/* More than `many` are worth a warning. */
static void k8s_report_leftovers(const struct diagnosis *diagnosis, const char *what, unsigned many,
                                 const struct collection *found, const char *remedy)
{
    bool named = found->names[0] != '\0', warns = found->left > many;
    if (found->why[0] != '\0')
        diagnosis_report(diagnosis, FINDING_WARNING, "leftovers", NULL,
                         "%s that were left behind cannot be counted: %s", what, found->why);
    else
        diagnosis_report(diagnosis, warns ? FINDING_WARNING : FINDING_OK, "leftovers",
                         warns ? remedy : NULL, "%s no longer needed: %u%s%s%s", what, found->left,
                         named ? " (" : "", found->names, named ? ")" : "");
}

/* Permissions and leftovers of workload objects of a kind, named as in kubectl: "jobs.batch". */
static void k8s_check_kind(const struct diagnosis *diagnosis, struct k8s *k8s, const char *kind)
{
    static const char *const verbs[] = {"get", "list", "watch", "create", "delete", NULL};
    char resource[TEXT_SIZE];
    size_t length = strcspn(kind, ".");
    (void)snprintf(resource, sizeof resource, "%.*s", (int)length, kind);
    if (k8s_check_verbs(diagnosis, k8s, kind[length] == '.' ? kind + length + 1 : "", resource,
                        verbs, WORKLOADS_ROLE)) {
        struct collect_options options = {.kind = kind};
        struct collection found;
        diagnosis->collect_objects(&k8s->kube, &options, &found);
        k8s_report_leftovers(
            diagnosis, kind, /* many= */ 0, &found,
            "remove them with leasehold collect --kind, or let dist/kubernetes/collector");
    }
}

/* A dry run of a creation also shows whether the namespace exists. */
static void k8s_check_namespace(const struct diagnosis *diagnosis, struct k8s *k8s)
{
    char path[LEASES_PATH + 16];
    struct json_result reply;
    (void)snprintf(path, sizeof path, "%s?dryRun=All", k8s->leases);
    json_t *body = json_pack("{s:s, s:s, s:{s:s}}", "apiVersion", "coordination.k8s.io/v1", "kind",
                             "Lease", "metadata", "generateName", "leasehold-doctor-");
    kube_call(&k8s->kube, "POST", path, body, &reply);
    if (reply.status == 201)
        diagnosis_report(diagnosis, FINDING_OK, "namespace", NULL, "the namespace takes Leases");
    else if (reply.status == 404)
        diagnosis_report(diagnosis, FINDING_PROBLEM, "namespace",
                         "make it with kubectl create namespace, or name another one in the URL",
                         "there is no namespace %s", k8s->kube.config.namespace);
    else
        diagnosis_report(diagnosis, FINDING_PROBLEM, "namespace", NULL, "it takes no Lease: %s",
                         reply.why);
    json_result_done(&reply);
}

/* ---- all of it ---- */

static void k8s_check_events(const struct diagnosis *diagnosis, struct k8s *k8s)
{
    struct json_result reply;
    if (k8s->url.events && k8s_check_access(k8s, "", "events", "create", &reply) == FORBIDDEN)
        diagnosis_report(diagnosis, FINDING_WARNING, "events", EVENTS_ROLE,
                         "no Events are written: we may not create events in %s",
                         k8s->kube.config.namespace);
}

static void k8s_check_all(const struct diagnosis *diagnosis, struct k8s *k8s)
{
    static const char *const lease_verbs[] = {"get",    "list",   "watch", "create",
                                              "update", "delete", NULL};
    static const char *const event_verbs[] = {"create", NULL};
    struct collection left;
    k8s_check_identity(diagnosis, k8s);
    if (!k8s_check_server(diagnosis, k8s))
        return;
    bool good = k8s_check_verbs(diagnosis, k8s, "coordination.k8s.io", "leases", lease_verbs, ROLE);
    if (k8s->url.events)
        (void)k8s_check_verbs(diagnosis, k8s, "", "events", event_verbs, EVENTS_ROLE);
    if (diagnosis->kind != NULL)
        k8s_check_kind(diagnosis, k8s, diagnosis->kind);
    if (good) {
        k8s_check_namespace(diagnosis, k8s);
        collector_run(&k8s->collector, /* rate= */ 0, &left);
        k8s_report_leftovers(diagnosis, "Leases", LEFT_MANY, &left,
                             "remove them with leasehold collect");
    }
}

void k8s_diagnose(const char *url, const struct diagnosis *diagnosis)
{
    char message[TEXT_SIZE];
    struct text why;
    text_init(&why, message, sizeof message);
    struct k8s *k8s =
        k8s_admin_open(url, diagnosis_timeout_ms(diagnosis, DIAGNOSE_TIMEOUT_MS), &why);
    if (k8s == NULL) {
        const char *usage = strstr(message, "usage: "); /* for open(): here it is a finding */
        if (!diagnosis->events_only) /* a client reports it when it opens the store */
            diagnosis_report(diagnosis, FINDING_PROBLEM, "cluster",
                             usage != NULL ? NULL
                                           : "name a kubeconfig with KUBECONFIG, or run in a pod",
                             "%s", usage != NULL ? usage + strlen("usage: ") : message);
        return;
    }
    if (diagnosis->events_only)
        k8s_check_events(diagnosis, k8s);
    else
        k8s_check_all(diagnosis, k8s);
    k8s_admin_close(k8s);
}
