/* SPDX-License-Identifier: Apache-2.0 */
/* See kube_login.h. A plugin prints an ExecCredential of client.authentication.k8s.io. */
#include "store/k8s/kube_login.h"

#include "base/check.h"
#include "process/host.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    LOGIN_MAGIC = 0x109,
    ARGS_MAX = 32,          /* arguments, and environment variables of its own */
    OUTPUT_MAX = 64 * 1024, /* bytes */
    PLUGIN_MS = 20000,      /* timeout of the plugin */
    REAP_MS = 5,
    RENEW_BEFORE_MS = 60000,
    FAILED_FOR_MS = 1000, /* minimum interval between two runs */
};

struct kube_login {
    uint32_t magic;
    struct poller *poller;
    struct kube_config *config;
    void (*ready)(void *owner);
    void *owner;
    pid_t child; /* 0: not running */
    struct poller_watch pipe;
    struct poller_timer timeout, reap;
    char *output;
    size_t length;
    char *token;
    bool known;            /* the plugin has returned … */
    int64_t good_until_ms; /* … and its result is valid until then */
    char error[160];       /* of the last run; empty: none */
};

struct kube_login *kube_login_new(struct poller *poller, struct kube_config *config,
                                  void (*ready)(void *owner), void *owner)
{
    struct kube_login *login = calloc(1, sizeof *login);
    if (login == NULL)
        return NULL;
    *login = (struct kube_login){.magic = LOGIN_MAGIC,
                                 .poller = poller,
                                 .config = config,
                                 .ready = ready,
                                 .owner = owner,
                                 .pipe = {.file = -1}};
    return login;
}

const struct kube_config *kube_login_config(const struct kube_login *login)
{
    return login->config;
}

static void login_drop_token(struct kube_login *login)
{
    if (login->token != NULL)
        explicit_bzero(login->token, strlen(login->token));
    free(login->token);
    login->token = NULL;
}

static void login_close_pipe(struct kube_login *login)
{
    if (login->pipe.file < 0)
        return;
    (void)poller_watch(login->poller, &login->pipe, 0);
    (void)close(login->pipe.file);
    login->pipe.file = -1;
}

static void login_drop_output(struct kube_login *login)
{
    if (login->output != NULL)
        explicit_bzero(login->output, login->length);
    free(login->output);
    login->output = NULL;
    login->length = 0;
}

void kube_login_free(struct kube_login **login_pointer)
{
    struct kube_login *login = *login_pointer;
    if (login == NULL)
        return;
    ASSERT(login->magic == LOGIN_MAGIC);
    login_close_pipe(login);
    poller_call_at(login->poller, &login->timeout, POLLER_NEVER);
    poller_call_at(login->poller, &login->reap, POLLER_NEVER);
    if (login->child > 0) {
        (void)kill(login->child, SIGKILL);
        (void)waitpid(login->child, NULL, 0);
    }
    login_drop_output(login);
    login_drop_token(login);
    free(login);
    *login_pointer = NULL;
}

/* ---- output of the plugin ---- */

static int64_t expires_ms(const json_t *status)
{
    struct tm tm = {0};
    const char *string = json_string_value(json_object_get(status, "expirationTimestamp"));
    const char *end = string != NULL ? strptime(string, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
    if (end == NULL)
        return POLLER_NEVER;
    if (*end == '.')
        end += 1 + strspn(end + 1, "0123456789");
    (void)strptime(end, "%z", &tm); /* "Z", or the offset of the time zone */
    int64_t ahead_s = tm.tm_gmtoff; /* timegm() would overwrite it */
    int64_t left_ms = ((int64_t)timegm(&tm) - ahead_s) * 1000 - host_wall_ms();
    int64_t early_ms = left_ms / 2 < RENEW_BEFORE_MS ? left_ms / 2 : RENEW_BEFORE_MS;
    /* A credential that has expired by our clock may still be valid by the server's. */
    left_ms = left_ms - early_ms > FAILED_FOR_MS ? left_ms - early_ms : FAILED_FOR_MS;
    return host_boot_ms() + left_ms;
}

static void login_set_certificate(const json_t *status, const char *name, int *memfd,
                                  const char **out)
{
    const char *string = json_string_value(json_object_get(status, name));
    char *path = string != NULL ? kube_config_memfd(memfd, string, strlen(string)) : NULL;
    char *before;
    if (path == NULL)
        return;
    memcpy(&before, out, sizeof before); /* we own it, despite the const */
    free(before);
    *out = path;
}

/* False if it contains no credential. */
static bool login_read_output(struct kube_login *login)
{
    json_t *json = json_loadb(login->output, login->length, 0, NULL);
    const json_t *status = json_object_get(json, "status");
    const char *token = json_string_value(json_object_get(status, "token"));
    bool certified = json_object_get(status, "clientCertificateData") != NULL;
    if (token != NULL || certified) {
        login_drop_token(login);
        login->token = token != NULL ? strdup(token) : NULL;
        login->good_until_ms = expires_ms(status);
        login_set_certificate(status, "clientCertificateData", &login->config->memfd[1],
                              &login->config->tls.cert_file);
        login_set_certificate(status, "clientKeyData", &login->config->memfd[2],
                              &login->config->tls.key_file);
    }
    json_decref(json);
    return token != NULL || certified;
}

static void login_finish(struct kube_login *login, const char *error)
{
    poller_call_at(login->poller, &login->timeout, POLLER_NEVER);
    poller_call_at(login->poller, &login->reap, POLLER_NEVER);
    login_close_pipe(login);
    login->child = 0;
    login->error[0] = '\0';
    if (error == NULL && !login_read_output(login))
        error = "returned no credential";
    if (error != NULL) {
        const char *name = json_string_value(json_object_get(login->config->plugin, "command"));
        (void)snprintf(login->error, sizeof login->error, "the credential plugin %.60s %s",
                       name != NULL ? name : "", error);
        login->good_until_ms = host_boot_ms() + FAILED_FOR_MS;
    }
    login->known = true;
    login_drop_output(login);
    login->ready(login->owner);
}

/* ---- plugin process ---- */

/* The plugin closed its output; it exits soon, or the timeout kills it. */
static void login_reap(void *owner)
{
    struct kube_login *login = owner;
    int status = 0;
    pid_t ended = waitpid(login->child, &status, WNOHANG);
    if (ended == 0) {
        poller_call_at(login->poller, &login->reap, host_boot_ms() + REAP_MS);
        return;
    }
    /* The caller's process may reap all its children; then only the output counts. */
    bool taken = ended < 0 && errno == ECHILD;
    bool good = taken || (ended == login->child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    login_finish(login, good ? NULL : "failed");
}

static void login_on_timeout(void *owner)
{
    struct kube_login *login = owner;
    (void)kill(login->child, SIGKILL);
    (void)waitpid(login->child, NULL, 0);
    login_finish(login, "timed out");
}

static void login_on_output(void *owner, unsigned what)
{
    struct kube_login *login = owner;
    (void)what;
    ssize_t got = read(login->pipe.file, login->output + login->length, OUTPUT_MAX - login->length);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0 && (login->length += (size_t)got) < OUTPUT_MAX)
        return;
    login_close_pipe(login);
    login_reap(login);
}

/* For posix_spawnp(), which changes nothing but does not take const. */
static char *as_string(const char *string)
{
    char *out;
    memcpy(&out, &string, sizeof out);
    return out;
}

/* The strings still belong to the configuration. */
static void copy_args(const json_t *list, char **out)
{
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(list) && count < ARGS_MAX; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (text != NULL)
            out[count++] = as_string(text);
    }
}

static bool is_set(char *const *environment, size_t count, const char *pair)
{
    size_t length = strcspn(pair, "=") + 1;
    for (size_t i = 0; i < count; i++) {
        if (strncmp(environment[i], pair, length) == 0)
            return true;
    }
    return false;
}

/* The variables of the kubeconfig, KUBERNETES_EXEC_INFO, and the rest of our environment. No name
 * twice: of two values shells use the last, other programs the first. */
static char **make_environment(const json_t *plugin)
{
    size_t index, count = 0, ours = 0;
    const json_t *pair;
    const char *version = json_string_value(json_object_get(plugin, "apiVersion"));
    while (environ[ours] != NULL)
        ours++;
    char **out = calloc(ours + ARGS_MAX + 2, sizeof *out);
    if (out == NULL)
        return NULL;
    json_array_foreach(json_object_get(plugin, "env"), index, pair)
    {
        const char *name = json_string_value(json_object_get(pair, "name"));
        const char *value = json_string_value(json_object_get(pair, "value"));
        if (index < ARGS_MAX && name != NULL && value != NULL &&
            asprintf(&out[count], "%s=%s", name, value) > 0)
            count++;
    }
    if (asprintf(&out[count],
                 "KUBERNETES_EXEC_INFO={\"apiVersion\":\"%s\",\"kind\":\"ExecCredential\","
                 "\"spec\":{\"interactive\":false}}",
                 version != NULL ? version : "client.authentication.k8s.io/v1") > 0)
        count++;
    for (size_t i = 0, own = count; i < ours; i++) {
        if (!is_set(out, own, environ[i]) && (out[count] = strdup(environ[i])) != NULL)
            count++;
    }
    return out;
}

static void free_strings(char **string)
{
    for (size_t i = 0; string != NULL && string[i] != NULL; i++)
        free(string[i]);
}

static int login_spawn(struct kube_login *login, char *const *argv, char *const *environment,
                       int output)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawnattr_init(&how);
    (void)posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    (void)posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    (void)posix_spawnattr_setsigmask(&how, &none);
    (void)posix_spawnattr_setsigdefault(&how, &all);
    (void)posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int error = posix_spawnp(&login->child, argv[0], &files, &how, argv, environment);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&how);
    return error;
}

/* False when it could not be started. */
static bool login_start_plugin(struct kube_login *login)
{
    const json_t *plugin = login->config->plugin;
    const char *name = json_string_value(json_object_get(plugin, "command"));
    char *argv[ARGS_MAX + 2] = {as_string(name)};
    char **environment = make_environment(plugin);
    int ends[2] = {-1, -1};
    login->output = malloc(OUTPUT_MAX);
    bool good = argv[0] != NULL && environment != NULL && login->output != NULL &&
                pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0;
    if (good) {
        copy_args(json_object_get(plugin, "args"), argv + 1);
        good = login_spawn(login, argv, environment, ends[1]) == 0;
        (void)close(ends[1]);
        login->pipe =
            (struct poller_watch){.file = ends[0], .ready = login_on_output, .owner = login};
        login->timeout.due = login_on_timeout;
        login->reap.due = login_reap;
        login->timeout.owner = login->reap.owner = login;
        if (good) {
            poller_call_at(login->poller, &login->timeout, host_boot_ms() + PLUGIN_MS);
            (void)poller_watch(login->poller, &login->pipe, POLLER_READ);
        }
    }
    free_strings(environment);
    free(environment);
    return good;
}

/* ---- interface ---- */

bool kube_login_ready(struct kube_login *login)
{
    ASSERT(login->magic == LOGIN_MAGIC);
    if (login->config->plugin == NULL || (login->known && host_boot_ms() < login->good_until_ms))
        return true;
    if (login->child > 0)
        return false;
    login->known = false;
    if (login_start_plugin(login))
        return false;
    login->child = 0;
    login_close_pipe(login);
    login_drop_output(login);
    (void)snprintf(login->error, sizeof login->error, "the credential plugin cannot be started");
    login->known = true;
    login->good_until_ms = host_boot_ms() + FAILED_FOR_MS;
    return true;
}

bool kube_login_bearer(struct kube_login *login, const char **out, struct text *why)
{
    struct kube_config *config = login->config;
    *out = config->token;
    if (config->plugin != NULL) {
        *out = login->token;
        text_add(why,
                 login->child > 0 ? "the credential plugin has not returned yet" : login->error);
        return login->child == 0 && login->error[0] == '\0';
    }
    if (config->token_file != NULL) {
        *out = secret_now(config->token_file, host_boot_ms(), why);
        return *out != NULL;
    }
    return true;
}

void kube_login_refused(struct kube_login *login)
{
    if (login->config->token_file != NULL)
        secret_refused(login->config->token_file);
    if (login->child == 0)
        login->good_until_ms = 0;
}
