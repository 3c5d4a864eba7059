/* SPDX-License-Identifier: Apache-2.0 */
/* See github_login.h. The App's key is read for each request, so that a new one takes effect. */
#include "http/github_login.h"

#include "base/hash.h"
#include "http/github_api.h"
#include "http/jwt_sign.h"
#include "net/credential.h"
#include "process/host.h"
#include "wire/base64url.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    JWT_MAX = 2048,
    KEY_FILE_MAX = 64 * 1024,
    JWT_BEFORE_S = 60, /* our clock may be ahead of the server's */
    JWT_LIVES_S = 480, /* the server allows 600 in all */
    TIMEOUT_MS = 10000,
    REPLY_MAX = 256 * 1024,
    RENEW_BEFORE_MS = 5 * 60000,
    RETRY_FIRST_MS = 1000,
    RETRY_MAX_MS = 60000,
};

struct github_login {
    struct github_url url;
    struct credential token; /* without an App */
    const char *server;
    void (*changed)(void *owner);
    void *owner;
    /* With an App: */
    struct json_api *api;
    struct json_request request;
    struct backoff backoff;
    char jwt[JWT_MAX];
    char *value; /* of the installation */
    int64_t renew_at_ms, good_until_ms;
    int64_t retry_at_ms; /* after an error */
    char why[JSON_WHY];
};

/* ---- the App's own token ---- */

static EVP_PKEY *github_read_key(const char *path, const char **wrong)
{
    struct stat status;
    char no_password[] = ""; /* with NULL, OpenSSL would prompt at the terminal */
    *wrong = "it is no file that can be read";
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > KEY_FILE_MAX)
        return NULL;
    BIO *file = BIO_new_file(path, "r");
    if (file == NULL)
        return NULL;
    EVP_PKEY *key = PEM_read_bio_PrivateKey(file, NULL, NULL, no_password);
    (void)BIO_free(file);
    bool fits = key != NULL && EVP_PKEY_is_a(key, "RSA") == 1;
    *wrong = fits ? NULL : "it contains no RSA private key in PEM format";
    if (!fits)
        EVP_PKEY_free(key);
    return fits ? key : NULL;
}

static void github_add_claims(const struct github_login *login, struct text *out)
{
    static const char header[] = "{\"alg\":\"RS256\",\"typ\":\"JWT\"}";
    int64_t now_s = host_wall_ms() / 1000;
    char claims[128];
    int length = snprintf(claims, sizeof claims, "{\"iat\":%lld,\"exp\":%lld,\"iss\":\"%llu\"}",
                          (long long)(now_s - JWT_BEFORE_S), (long long)(now_s + JWT_LIVES_S),
                          (unsigned long long)login->url.app);
    base64url_add((const unsigned char *)header, sizeof header - 1, out);
    text_add(out, ".");
    base64url_add((const unsigned char *)claims, (size_t)length, out);
}

static bool github_app_credential(void *owner, const char **out, struct text *why)
{
    struct github_login *login = owner;
    const char *wrong = NULL;
    struct text jwt;
    EVP_PKEY *key = github_read_key(login->url.app_key_file, &wrong);
    text_init(&jwt, login->jwt, sizeof login->jwt);
    if (key != NULL) {
        github_add_claims(login, &jwt);
        wrong = jwt_sign(key, JWT_RS256, &jwt) ? NULL : "it cannot sign";
    }
    EVP_PKEY_free(key);
    ERR_clear_error(); /* TLS connections read the same error queue */
    *out = login->jwt;
    if (wrong != NULL)
        TEXT_JOIN(why, "the key of the GitHub App in ", login->url.app_key_file, ": ", wrong);
    return wrong == NULL;
}

static bool github_app_ready(void *owner)
{
    (void)owner;
    return true;
}

static void github_app_refused(void *owner)
{
    (void)owner; /* each request signs a new one */
}

/* ---- the token of the installation ---- */

static void github_login_drop_value(struct github_login *login)
{
    if (login->value != NULL)
        explicit_bzero(login->value, strlen(login->value));
    free(login->value);
    login->value = NULL;
}

static void github_hide(char *text, const char *secret)
{
    size_t length = strlen(secret);
    for (char *at = text; length > 0 && (at = strstr(at, secret)) != NULL; at += length)
        memset(at, '*', length);
}

static void github_login_fail(struct github_login *login, const char *why)
{
    struct text text;
    text_init(&text, login->why, sizeof login->why);
    TEXT_JOIN(&text, "no token for the GitHub App: ", why);
    github_hide(login->why, login->jwt);
    login->retry_at_ms = host_boot_ms() + backoff_pause_ms(&login->backoff);
    login->changed(login->owner);
}

static void github_login_ask(struct github_login *login, const char *method, const char *path,
                             json_t *body, void (*done)(void *owner, const struct json_reply *))
{
    static const char *const headers[] = {GITHUB_VERSION, "Content-Type: application/json", NULL};
    struct json_call call = {.method = method,
                             .path = path,
                             .body = body,
                             .headers = headers,
                             .most = REPLY_MAX,
                             .give_up_at_ms = host_boot_ms() + TIMEOUT_MS};
    struct json_callbacks callbacks = {.done = done, .owner = login};
    json_request_start(&login->request, login->api, &call, &callbacks);
    json_decref(body);
}

static void github_login_on_token(void *owner, const struct json_reply *reply)
{
    struct github_login *login = owner;
    const char *token = github_string(reply->json, "token");
    int64_t expires_ms = github_time_ms(github_string(reply->json, "expires_at"));
    int64_t now_ms = reply->now_ms >= 0 ? reply->now_ms : host_wall_ms();
    int64_t lives_ms = expires_ms - now_ms;
    char *value = reply->status == 201 && token[0] != '\0' && lives_ms > 0 ? strdup(token) : NULL;
    if (value == NULL || !text_is_clean(value, strlen(value))) {
        free(value);
        github_login_fail(login, reply->status == 201 ? "the reply has no token" : reply->why);
        return;
    }
    github_login_drop_value(login);
    login->value = value;
    login->why[0] = '\0';
    login->good_until_ms = host_boot_ms() + lives_ms;
    login->renew_at_ms =
        login->good_until_ms - (lives_ms / 2 < RENEW_BEFORE_MS ? lives_ms / 2 : RENEW_BEFORE_MS);
    login->retry_at_ms = 0;
    backoff_reset(&login->backoff);
    login->changed(login->owner);
}

static void github_login_on_installation(void *owner, const struct json_reply *reply)
{
    struct github_login *login = owner;
    json_int_t id = json_integer_value(json_object_get(reply->json, "id"));
    char path[64];
    if (reply->status != 200 || id <= 0) {
        github_login_fail(login, reply->status == 404
                                     ? "the App is not installed in this repository; install it"
                                     : reply->why);
        return;
    }
    (void)snprintf(path, sizeof path, "/app/installations/%lld/access_tokens", (long long)id);
    github_login_ask(login, "POST", path, json_pack("{s:[s]}", "repositories", login->url.repo),
                     github_login_on_token);
}

static void github_login_renew(struct github_login *login)
{
    char path[sizeof login->url.owner + sizeof login->url.repo + 32];
    (void)snprintf(path, sizeof path, "/repos/%s/%s/installation", login->url.owner,
                   login->url.repo);
    github_login_ask(login, "GET", path, /* body= */ NULL, github_login_on_installation);
}

/* ---- for json_api.h ---- */

static bool github_login_ready(void *owner)
{
    struct github_login *login = owner;
    int64_t now_ms = host_boot_ms();
    if (login->api == NULL)
        return true;
    if (login->request.api == NULL && now_ms >= login->renew_at_ms && now_ms >= login->retry_at_ms)
        github_login_renew(login);
    return now_ms < login->good_until_ms || login->request.api == NULL;
}

static bool github_login_credential(void *owner, const char **out, struct text *why)
{
    struct github_login *login = owner;
    if (login->api == NULL)
        return credential_now(&login->token, out, why);
    *out = login->value;
    if (login->value != NULL && host_boot_ms() < login->good_until_ms)
        return true;
    text_add(why, login->why[0] != '\0' ? login->why : "the GitHub App has no token yet");
    return false;
}

static void github_login_refused(void *owner)
{
    struct github_login *login = owner;
    if (login->api == NULL)
        credential_refused(&login->token);
    else if (login->request.api == NULL)
        login->renew_at_ms = login->good_until_ms = 0;
}

struct json_login github_login_source(struct github_login *login)
{
    return (struct json_login){.ready = github_login_ready,
                               .credential = github_login_credential,
                               .refused = github_login_refused,
                               .owner = login};
}

void github_login_hide(struct github_login *login, char *text)
{
    const char *token = NULL;
    if (github_login_credential(login, &token, NULL) && token != NULL)
        github_hide(text, token);
}

uint64_t github_login_account(struct github_login *login)
{
    const char *token = NULL, *owner = login->url.owner;
    uint64_t account = hash_string(login->server);
    if (login->url.app != 0)
        return hash_mix(hash_bytes(account, owner, strlen(owner)), login->url.app);
    if (!credential_now(&login->token, &token, NULL) || token == NULL)
        token = login->url.token_file;
    return hash_bytes(account, token, strlen(token));
}

/* ---- start and end ---- */

static bool github_login_find(struct github_login *login, struct text *why)
{
    static const char *const variables[] = {"GITHUB_TOKEN", "GH_TOKEN"};
    struct credential_source source = {0};
    for (size_t i = 0; i < 2 && source.variable == NULL; i++) {
        const char *value = getenv(variables[i]);
        if (value != NULL && value[0] != '\0')
            source.variable = variables[i];
    }
    if (source.variable == NULL && login->url.token_file[0] != '\0')
        source.file = login->url.token_file;
    if (source.variable == NULL && source.file == NULL) {
        text_add(why, "there is no token for GitHub; set GITHUB_TOKEN or GH_TOKEN, or add "
                      "?token-file=PATH or ?app=ID&app-key-file=PATH to the URL");
        return false;
    }
    if (credential_init(&login->token, /* poller= */ NULL, &source))
        return true;
    text_add(why, "out of memory");
    return false;
}

struct github_login *github_login_new(struct poller *poller, const struct github_url *url,
                                      const char *server, const struct stream_tls *tls,
                                      void (*changed)(void *owner), void *owner, struct text *why)
{
    struct github_login *login = calloc(1, sizeof *login);
    bool good = false;
    if (login != NULL) {
        *login = (struct github_login){
            .url = *url, .server = server, .changed = changed, .owner = owner};
        backoff_init(&login->backoff, (uint64_t)host_boot_ms(), RETRY_FIRST_MS, RETRY_MAX_MS);
    }
    if (login != NULL && url->app == 0) {
        good = github_login_find(login, why);
    } else if (login != NULL) {
        struct json_api_options options = {.name = "GitHub",
                                           .server = server,
                                           .tls = tls,
                                           .scheme = "Bearer",
                                           .accept = GITHUB_ACCEPT,
                                           .login = {.ready = github_app_ready,
                                                     .credential = github_app_credential,
                                                     .refused = github_app_refused,
                                                     .owner = login},
                                           .pause_max_ms = TIMEOUT_MS};
        login->api = json_api_new(poller, &options);
        good = login->api != NULL;
    }
    if (!good && (login == NULL || url->app != 0))
        text_add(why, "out of memory");
    if (!good)
        github_login_free(&login);
    return login;
}

void github_login_free(struct github_login **login)
{
    if (*login == NULL)
        return;
    json_api_free(&(*login)->api);
    credential_done(&(*login)->token);
    github_login_drop_value(*login);
    explicit_bzero((*login)->jwt, sizeof(*login)->jwt);
    free(*login);
    *login = NULL;
}
