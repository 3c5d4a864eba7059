/* SPDX-License-Identifier: Apache-2.0 */
/* See entra_token.h. One request at a time; a failed one is retried with backoff. */
#include "http/entra_token.h"

#include "net/backoff.h"
#include "net/credential.h"
#include "http/entra_sign.h"
#include "process/host.h"
#include "http/http.h"
#include "wire/url_redact.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    RESPONSE_MAX = 32 * 1024,
    FORM_MAX = 3 * SECRET_MAX + 1024, /* an escaped byte takes three */
    URL_MAX = 1024,
    TIMEOUT_MS = 10000,
    FIRST_PAUSE_MS = 1000,
    LONGEST_PAUSE_MS = 60000,
    REFUSED_PAUSE_MS = 1000,
};

static const char resource[] = "https://redis.azure.com";

enum entra_from { FROM_MACHINE, FROM_APP, FROM_WORKLOAD, FROM_SECRET, FROM_CERTIFICATE, FROM_CLI };

struct entra {
    struct poller *poller;
    struct entra_callbacks callbacks;
    struct http *http;
    struct http_request *request; /* NULL: none is in flight */
    struct poller_timer refresh;
    struct backoff backoff;
    enum entra_from credential;
    struct credential_helper cli; /* az, of FROM_CLI */
    struct credential proof;      /* an assertion or a secret */
    struct entra_certificate certificate;
    struct entra_identity identity;
    char endpoint[ENTRA_ASKED_MAX], shown[ENTRA_ASKED_MAX];
    int64_t good_until_ms; /* 0: no token yet */
    struct entra_token token;
    char why[320];
};

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static bool is_https(const char *url)
{
    static const char scheme[] = "https://";
    return strncmp(url, scheme, sizeof scheme - 1) == 0;
}

/* ---- requests ---- */

static void entra_request(void *owner);

static void entra_schedule(struct entra *entra, int64_t pause_ms)
{
    poller_call_at(entra->poller, &entra->refresh, host_boot_ms() + pause_ms);
}

static void entra_fail(struct entra *entra, const char *what, const char *more)
{
    struct text text;
    text_init(&text, entra->why, sizeof entra->why);
    TEXT_JOIN(&text, "no token of Entra ID: ", what, more[0] != '\0' ? ": " : "", more);
    entra_schedule(entra, backoff_pause_ms(&entra->backoff));
    if (host_boot_ms() >= entra->good_until_ms)
        entra->callbacks.changed(entra->callbacks.owner);
}

static void entra_fail_status(struct entra *entra, const struct http_response *response)
{
    char what[ENTRA_ASKED_MAX], more[256];
    struct text text;
    text_init(&text, what, sizeof what);
    TEXT_JOIN(&text, entra->shown, " answered ");
    text_add_u64(&text, (uint64_t)response->status);
    text_init(&text, more, sizeof more);
    entra_read_error(response->body, response->body_length, &text);
    entra_fail(entra, what, more);
    if (response->retry_after_ms > 0)
        entra_schedule(entra, response->retry_after_ms);
}

static void entra_set_token(struct entra *entra, const char *body, size_t length)
{
    if (!entra_read_token(body, length, host_wall_ms() / 1000, &entra->token)) {
        entra_fail(entra, entra->shown, "its answer has no token");
        return;
    }
    int64_t lives_ms = entra->token.lives_s * 1000;
    entra->good_until_ms = host_boot_ms() + lives_ms;
    backoff_reset(&entra->backoff);
    entra_schedule(entra, lives_ms / 2 + (int64_t)random_below(&entra->backoff.random,
                                                               (uint64_t)lives_ms / 4 + 1));
    entra->callbacks.changed(entra->callbacks.owner);
}

static void entra_on_response(void *owner, const struct http_response *response)
{
    struct entra *entra = owner;
    entra->request = NULL;
    if (response->status == 0)
        entra_fail(entra, entra->shown, response->why);
    else if (response->status != 200)
        entra_fail_status(entra, response);
    else
        entra_set_token(entra, response->body, response->body_length);
}

static void entra_on_cli_output(void *owner, const char *output, size_t length, const char *failure)
{
    struct entra *entra = owner;
    char what[64];
    struct text text;
    if (output != NULL) {
        entra_set_token(entra, output, length);
        return;
    }
    text_init(&text, what, sizeof what);
    TEXT_JOIN(&text, "az ", failure, "; is 'az login' done?");
    entra_fail(entra, what, "");
}

static void entra_start(struct entra *entra, const char *method, const char *url,
                        const char *const *headers, const char *form)
{
    struct http_options options = {.method = method,
                                   .url = url,
                                   .headers = headers,
                                   .body = form,
                                   .body_length = form != NULL ? strlen(form) : 0,
                                   .tls = {.on = is_https(url)},
                                   .timeout_ms = TIMEOUT_MS,
                                   .most = RESPONSE_MAX};
    struct http_callbacks callbacks = {.done = entra_on_response, .owner = entra};
    entra->request = http_start(entra->http, &options, &callbacks);
    if (entra->request == NULL)
        entra_fail(entra, "out of memory", "");
}

static void request_managed(struct entra *entra)
{
    static const char *const headers[] = {"Metadata: true", NULL};
    char url[URL_MAX];
    struct text text;
    text_init(&text, url, sizeof url);
    entra_managed_url(&entra->identity, &text);
    entra_start(entra, "GET", url, headers, NULL);
}

static void request_app(struct entra *entra)
{
    char url[URL_MAX], header[1024];
    const char *const headers[] = {header, NULL};
    const char *key = environment("IDENTITY_HEADER");
    struct text text;
    text_init(&text, header, sizeof header);
    TEXT_JOIN(&text, "X-IDENTITY-HEADER: ", key != NULL ? key : "");
    if (text.cut || !text_is_clean(header, text.length)) {
        entra_fail(entra, "IDENTITY_HEADER is too long or no header", "");
        return;
    }
    text_init(&text, url, sizeof url);
    entra_app_url(&entra->identity, &text);
    entra_start(entra, "GET", url, headers, NULL);
    explicit_bzero(header, sizeof header);
}

/* Sets the credential of this request: the assertion or the secret of the identity. `made` is the
 * buffer of an assertion. False, with the reason. */
static bool find_proof(struct entra *entra, const char *url, char *made, size_t size,
                       struct text *why)
{
    struct entra_identity *identity = &entra->identity;
    struct text text;
    identity->assertion = identity->secret = NULL;
    if (entra->credential == FROM_CERTIFICATE) {
        text_init(&text, made, size);
        identity->assertion = made;
        return entra_sign(&entra->certificate, url, identity->client_id, &text, why);
    }
    bool secret = entra->credential == FROM_SECRET;
    return credential_now(&entra->proof, secret ? &identity->secret : &identity->assertion, why);
}

static void request_with_form(struct entra *entra)
{
    static const char *const headers[] = {"Content-Type: application/x-www-form-urlencoded", NULL};
    enum { MADE_MAX = 8 * 1024 };
    char url[URL_MAX], reason[256], made[MADE_MAX];
    struct text text, why;
    text_init(&why, reason, sizeof reason);
    text_init(&text, url, sizeof url);
    entra_workload_url(&entra->identity, &text);
    char *form = malloc(FORM_MAX);
    bool proven = form != NULL && find_proof(entra, url, made, sizeof made, &why);
    if (proven) {
        text_init(&text, form, FORM_MAX);
        entra_workload_form(&entra->identity, &text);
        entra_start(entra, "POST", url, headers, form);
        explicit_bzero(form, FORM_MAX);
        explicit_bzero(made, sizeof made);
    } else {
        entra_fail(entra, form != NULL ? reason : "out of memory", "");
    }
    free(form);
}

static void request_cli(struct entra *entra)
{
    const char *tenant = entra->identity.tenant_id;
    const char *const argv[] = {
        "az",   "account",    "get-access-token", "--output",
        "json", "--resource", resource,           tenant != NULL ? "--tenant" : NULL,
        tenant, NULL};
    int error = entra->cli.child == 0 ? credential_helper_start(&entra->cli, argv, environ) : 0;
    if (error == ENOENT)
        entra_fail(entra, "there is no az in PATH; install the Azure CLI", "");
    else if (error != 0)
        entra_fail(entra, "az cannot be started", strerror(error));
}

static void entra_request(void *owner)
{
    struct entra *entra = owner;
    if (entra->request != NULL)
        return;
    switch (entra->credential) {
    case FROM_MACHINE:
        request_managed(entra);
        return;
    case FROM_APP:
        request_app(entra);
        return;
    case FROM_CLI:
        request_cli(entra);
        return;
    default:
        request_with_form(entra);
        return;
    }
}

/* ---- identity ---- */

/* Replies contain tokens: only a server on this machine may be used without TLS. */
static bool is_safe(const char *endpoint)
{
    static const char http[] = "http://";
    if (is_https(endpoint))
        return true;
    if (strncmp(endpoint, http, sizeof http - 1) != 0)
        return false;
    const char *host = endpoint + sizeof http - 1;
    size_t length = strcspn(host, ":/?#");
    bool local = (length == 9 && strncmp(host, "127.0.0.1", length) == 0) ||
                 (length == 9 && strncmp(host, "localhost", length) == 0);
    bool linked = strncmp(host, "169.254.", 8) == 0 && strspn(host, "0123456789.") == length;
    return local || linked;
}

/* Stores the endpoint without trailing slashes; false if it is not safe. */
static bool set_endpoint(struct entra *entra, const char *endpoint, struct text *why)
{
    struct text text;
    text_init(&text, entra->endpoint, sizeof entra->endpoint);
    text_add(&text, endpoint);
    while (text.length > 0 && text.bytes[text.length - 1] == '/')
        text.bytes[--text.length] = '\0';
    entra->identity.endpoint = entra->endpoint;
    /* The JSON of an assertion contains it unescaped. */
    bool safe = !text.cut && is_safe(entra->endpoint) &&
                strpbrk(entra->endpoint, "\"\\@") == NULL && text_is_clean(text.bytes, text.length);
    text_init(&text, entra->shown, sizeof entra->shown);
    url_redact(entra->endpoint, &text);
    if (!safe)
        text_add(why, "tokens of Entra ID are requested by https:// only, or on this machine");
    return safe;
}

/* A form requires a tenant id and a client id. */
static bool begin_form(struct entra *entra, enum entra_from credential, const char *because,
                       const char *path, struct text *why)
{
    const struct entra_identity *identity = &entra->identity;
    const char *authority = environment("AZURE_AUTHORITY_HOST");
    entra->credential = credential;
    if (identity->tenant_id == NULL || identity->client_id == NULL) {
        text_add(why, because);
        text_add(why, " is set; AZURE_TENANT_ID and AZURE_CLIENT_ID (or client-id in the URL) "
                      "must be, too");
        return false;
    }
    struct credential_source proof = {.file = path, .variable = "AZURE_CLIENT_SECRET"};
    if (!credential_init(&entra->proof, /* poller= */ NULL, &proof)) {
        text_add(why, "out of memory");
        return false;
    }
    return set_endpoint(entra, authority != NULL ? authority : "https://login.microsoftonline.com",
                        why);
}

static bool begin_managed(struct entra *entra, struct text *why)
{
    const char *endpoint = environment("IDENTITY_ENDPOINT");
    if (endpoint != NULL && environment("IDENTITY_HEADER") != NULL) {
        entra->credential = FROM_APP;
        return set_endpoint(entra, endpoint, why);
    }
    entra->credential = FROM_MACHINE;
    endpoint = environment("AZURE_POD_IDENTITY_AUTHORITY_HOST");
    return set_endpoint(entra, endpoint != NULL ? endpoint : "http://169.254.169.254", why);
}

static bool read_environment(struct entra *entra, const struct entra_choice *choice,
                             struct text *why)
{
    static const char secret[] = "AZURE_CLIENT_SECRET", secret_file[] = "AZURE_CLIENT_SECRET_FILE";
    static const char certificate[] = "AZURE_CLIENT_CERTIFICATE_PATH";
    static const char federated[] = "AZURE_FEDERATED_TOKEN_FILE";
    struct entra_identity *identity = &entra->identity;
    identity->client_id =
        choice->client_id != NULL ? choice->client_id : environment("AZURE_CLIENT_ID");
    identity->tenant_id = environment("AZURE_TENANT_ID");
    if ((identity->client_id != NULL && !entra_is_id(identity->client_id)) ||
        (identity->tenant_id != NULL && !entra_is_id(identity->tenant_id))) {
        text_add(why, "the client id or AZURE_TENANT_ID is no id: letters, digits, dots, hyphens");
        return false;
    }
    if (choice->cli) {
        entra->credential = FROM_CLI;
        text_copy(entra->shown, sizeof entra->shown, "az account get-access-token");
        return true;
    }
    if (environment(secret_file) != NULL)
        return begin_form(entra, FROM_SECRET, secret_file, environment(secret_file), why);
    if (environment(secret) != NULL)
        return begin_form(entra, FROM_SECRET, secret, NULL, why);
    if (environment(certificate) != NULL) {
        entra->certificate = (struct entra_certificate){
            .path = environment(certificate),
            .password = environment("AZURE_CLIENT_CERTIFICATE_PASSWORD")};
        return begin_form(entra, FROM_CERTIFICATE, certificate, NULL, why);
    }
    if (environment(federated) != NULL)
        return begin_form(entra, FROM_WORKLOAD, federated, environment(federated), why);
    return begin_managed(entra, why);
}

struct entra *entra_new(struct poller *poller, const struct entra_callbacks *callbacks,
                        const struct entra_choice *choice, struct text *why)
{
    struct entra *entra = calloc(1, sizeof *entra);
    if (entra == NULL) {
        text_add(why, "out of memory");
        return NULL;
    }
    entra->poller = poller;
    entra->callbacks = *callbacks;
    credential_helper_init(&entra->cli, poller, entra_on_cli_output, entra);
    entra->refresh =
        (struct poller_timer){.at_ms = POLLER_NEVER, .due = entra_request, .owner = entra};
    backoff_init(&entra->backoff, (uint64_t)host_boot_ms(), FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
    if (!read_environment(entra, choice, why)) {
        entra_free(&entra);
        return NULL;
    }
    entra->http = http_new(poller);
    if (entra->http == NULL) {
        text_add(why, "out of memory");
        entra_free(&entra);
        return NULL;
    }
    entra_schedule(entra, /* pause_ms= */ 0);
    return entra;
}

void entra_free(struct entra **entra)
{
    if (*entra == NULL)
        return;
    poller_call_at((*entra)->poller, &(*entra)->refresh, POLLER_NEVER);
    http_free(&(*entra)->http);
    credential_helper_done(&(*entra)->cli);
    credential_done(&(*entra)->proof);
    explicit_bzero(*entra, sizeof **entra);
    free(*entra);
    *entra = NULL;
}

const struct entra_token *entra_now(const struct entra *entra, struct text *why)
{
    if (entra->good_until_ms > 0 && host_boot_ms() < entra->good_until_ms)
        return &entra->token;
    text_add(why, entra->why);
    return NULL;
}

void entra_refused(struct entra *entra)
{
    if (entra->request == NULL)
        entra_schedule(entra, REFUSED_PAUSE_MS);
}
