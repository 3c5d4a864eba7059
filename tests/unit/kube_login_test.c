/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kubeconfigs in common use, several at once, and the credentials: a token, one in a file that
 * changes, certificates inside the kubeconfig, a credential plugin that is a real program.
 */
#include "http/kube_login.h"

#include "stream_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64], words[512];
static struct kube_config config;
static struct kube_login *login;
static unsigned readies;

static const char *path(const char *name)
{
    static char out[128];
    (void)snprintf(out, sizeof out, "%s/%s", folder, name);
    return out;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(path(name), "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path(name), 0700), 0);
}

static bool load(const char *url)
{
    struct k8s_url parsed;
    struct text why;
    text_init(&why, words, sizeof words);
    assert_true(k8s_url_parse(url, &parsed, &why));
    return kube_config_load(&config, &parsed, &why);
}

static void on_ready(void *owner)
{
    (void)owner;
    readies++;
}

static const char *bearer(void)
{
    const char *out = NULL;
    struct text why;
    text_init(&why, words, sizeof words);
    return kube_login_bearer(login, &out, &why) ? out : NULL;
}

static int begin(void **state)
{
    (void)snprintf(folder, sizeof folder, "/tmp/leasehold-kube-XXXXXX");
    (void)unsetenv("POD_NAMESPACE");
    (void)unsetenv("KUBERNETES_SERVICE_HOST");
    readies = 0;
    return kit_open(state) != 0 || mkdtemp(folder) == NULL;
}

static int end(void **state)
{
    static const char *const names[] = {"one", "two", "token", "plugin", "count", "ca.crt"};
    kube_login_free(&login);
    kube_config_done(&config);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        (void)unlink(path(names[i]));
    return rmdir(folder) != 0 || kit_close(state) != 0;
}

static void use(const char *text)
{
    write_file("one", text);
    (void)setenv("KUBECONFIG", path("one"), 1);
}

#define CLUSTER                                                                    \
    "apiVersion: v1\nkind: Config\ncurrent-context: east\n"                        \
    "clusters:\n- name: c\n  cluster: {server: 'https://h:6443/', "                \
    "certificate-authority: ca.crt, tls-server-name: api.example}\n"               \
    "contexts:\n- name: east\n  context: {cluster: c, user: u, namespace: blue}\n" \
    "- name: west\n  context: {cluster: c, user: v}\n"                             \
    "- name: gone\n  context: {cluster: nowhere, user: v}\n"

static void a_kubeconfig_says_where_and_who(void **state)
{
    (void)state;
    use(CLUSTER "users:\n- name: u\n  user: {token: t-east}\n- name: v\n  user: {token: t-west}\n");
    assert_true(load("k8s://"));
    assert_string_equal(config.server, "https://h:6443");
    assert_string_equal(config.namespace, "blue");
    assert_string_equal(config.token, "t-east");
    assert_string_equal(config.tls.ca_file, path("ca.crt")); /* relative to its own folder */
    assert_string_equal(config.tls.name, "api.example");
    kube_config_done(&config);
    assert_true(load("k8s://green?context=west"));
    assert_string_equal(config.namespace, "green");
    assert_string_equal(config.token, "t-west");
    kube_config_done(&config);
    assert_true(load("k8s://?context=west"));
    assert_string_equal(config.namespace, "default");
}

static void a_bad_kubeconfig_is_reported(void **state)
{
    (void)state;
    use(CLUSTER "users: []\n");
    assert_false(load("k8s://?context=north"));
    assert_non_null(strstr(words, "no context north"));
    assert_false(load("k8s://?context=gone"));
    assert_non_null(strstr(words, "no server"));
    use("clusters:\n- name: c\n  cluster: {server: 'https://h', insecure-skip-tls-verify: true}\n"
        "contexts:\n- name: x\n  context: {cluster: c}\ncurrent-context: x\n");
    assert_false(load("k8s://"));
    assert_non_null(strstr(words, "certificate-authority"));
    use("{ [ not yaml");
    assert_false(load("k8s://"));
    assert_non_null(strstr(words, "this is no YAML"));
    static const char *const others[] = {"as: boss", "username: me", "auth-provider: {name: gcp}"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        char text[1024];
        (void)snprintf(text, sizeof text, "%susers:\n- name: u\n  user: {token: t, %s}\n", CLUSTER,
                       others[i]);
        use(text);
        assert_false(load("k8s://")); /* we would log in as another user than was meant */
        assert_non_null(strstr(words, "the kubeconfig's user"));
    }
    (void)setenv("KUBECONFIG", "/no/such/file", 1);
    assert_false(load("k8s://"));
    assert_non_null(strstr(words, "/no/such/file"));
}

static void of_several_files_the_first_counts(void **state)
{
    char both[300];
    (void)state;
    use(CLUSTER);
    write_file("two", "current-context: other\nusers:\n- name: u\n  user: {token: second}\n"
                      "contexts:\n- name: east\n  context: {cluster: other}\n");
    (void)snprintf(both, sizeof both, "%s/none:%s/one:%s/two", folder, folder, folder);
    (void)setenv("KUBECONFIG", both, 1);
    assert_true(load("k8s://"));
    assert_string_equal(config.server, "https://h:6443");
    assert_string_equal(config.token, "second");
}

static void certificates_inside_never_touch_a_disk(void **state)
{
    char read_back[16] = "";
    (void)state;
    use(CLUSTER "users:\n- name: u\n  user: {client-certificate-data: Y2VydA==, "
                "client-key-data: a2V5IQ==}\n");
    assert_true(load("k8s://"));
    assert_int_equal(strncmp(config.tls.cert_file, "/proc/self/fd/", 14), 0);
    FILE *file = fopen(config.tls.key_file, "re");
    assert_non_null(file);
    assert_non_null(fgets(read_back, sizeof read_back, file));
    (void)fclose(file);
    assert_string_equal(read_back, "key!");
}

static void a_token_file_is_read_anew_when_refused(void **state)
{
    char text[1024];
    (void)state;
    (void)snprintf(text, sizeof text, "%susers:\n- name: u\n  user: {tokenFile: %s}\n", CLUSTER,
                   "token");
    use(text);
    write_file("token", "first\n");
    assert_true(load("k8s://"));
    login = kube_login_new(kit_net, &config, on_ready, NULL);
    assert_true(kube_login_ready(login));
    assert_string_equal(bearer(), "first");
    write_file("token", "later\n");
    kube_login_refused(login);
    assert_string_equal(bearer(), "later");
    assert_int_equal(unlink(path("token")), 0);
    kube_login_refused(login);
    assert_null(bearer());
    assert_null(strstr(words, "later"));
}

static void use_plugin(const char *script)
{
    char text[1024];
    (void)snprintf(text, sizeof text,
                   "%susers:\n- name: u\n  user:\n    exec:\n      command: %s/plugin\n"
                   "      apiVersion: client.authentication.k8s.io/v1beta1\n"
                   "      args: [one, two words]\n      env: [{name: WHO, value: me}]\n",
                   CLUSTER, folder);
    use(text);
    write_file("plugin", script);
    assert_true(load("k8s://"));
    login = kube_login_new(kit_net, &config, on_ready, NULL);
    assert_non_null(login);
}

/* One call can start the plugin for the next; afterwards its result counts. */
static void ask_plugin(void)
{
    readies = 0;
    assert_false(kube_login_ready(login));
    assert_false(kube_login_ready(login)); /* it runs once */
    assert_true(kit_until(&readies));
    assert_true(kube_login_ready(login));
}

static void a_plugin_is_asked_and_asked_again_when_refused(void **state)
{
    char script[512];
    (void)state;
    (void)snprintf(script, sizeof script,
                   "#!/bin/sh\necho x >>%s/count\ncase $KUBERNETES_EXEC_INFO in *v1beta1*) ;; *) "
                   "exit 1 ;; esac\nprintf '{\"status\":{\"token\":\"%%s-%%s-%%s-%%s\"}}' \"$WHO\" "
                   "$# \"$2\" $(wc -l <%s/count)\n",
                   folder, folder);
    use_plugin(script);
    ask_plugin();
    assert_string_equal(bearer(), "me-2-two words-1");
    kube_login_refused(login);
    ask_plugin();
    assert_string_equal(bearer(), "me-2-two words-2");
}

static void an_expired_token_is_requested_again(void **state)
{
    (void)state;
    use_plugin("#!/bin/sh\nprintf '{\"status\":{\"token\":\"t\",\"expirationTimestamp\":\"%s\"}}' "
               "$(date -u -d '1 second' +%Y-%m-%dT%H:%M:%SZ)\n");
    ask_plugin();
    kit_turn(1100);
    assert_false(kube_login_ready(login));
}

/* RFC 3339 allows the time of any zone. */
static void an_expiry_may_be_told_in_another_time_zone(void **state)
{
    (void)state;
    use_plugin("#!/bin/sh\nprintf '{\"status\":{\"token\":\"t\",\"expirationTimestamp\":\"%s\"}}' "
               "$(TZ=XXX-14 date -d '1 second' +%Y-%m-%dT%H:%M:%S.5%:z)\n");
    ask_plugin();
    kit_turn(1100);
    assert_false(kube_login_ready(login));
}

/* By our clock, which may be wrong; the server may disagree. */
static void an_expired_token_is_tried_for_a_moment(void **state)
{
    (void)state;
    use_plugin("#!/bin/sh\nprintf '{\"status\":{\"token\":\"t\",\"expirationTimestamp\":"
               "\"2020-01-01T00:00:00Z\"}}'\n");
    ask_plugin();
    assert_string_equal(bearer(), "t");
    kit_turn(1100);
    assert_false(kube_login_ready(login));
}

static void a_request_while_a_plugin_runs_gets_nothing(void **state)
{
    (void)state;
    use_plugin("#!/bin/sh\nexec sleep 1000\n");
    assert_false(kube_login_ready(login));
    assert_null(bearer());
    assert_non_null(strstr(words, "has not returned yet"));
}

static void the_kubeconfig_counts_before_our_environment(void **state)
{
    (void)state;
    (void)setenv("WHO", "somebody else", 1);
    use_plugin("#!/bin/sh\nprintf '{\"status\":{\"token\":\"%s\"}}' \"$WHO\"\n");
    ask_plugin();
    assert_string_equal(bearer(), "me");
    (void)unsetenv("WHO");
}

static void a_plugin_with_a_slash_lies_beside_the_kubeconfig(void **state)
{
    (void)state;
    use(CLUSTER "users:\n- name: u\n  user: {exec: {command: ./plugin}}\n");
    write_file("plugin", "#!/bin/sh\nprintf '{\"status\":{\"token\":\"t\"}}'\n");
    assert_true(load("k8s://"));
    login = kube_login_new(kit_net, &config, on_ready, NULL);
    ask_plugin();
    assert_string_equal(bearer(), "t");
}

static void a_plugin_gives_certificates_too(void **state)
{
    (void)state;
    use_plugin("#!/bin/sh\nprintf '{\"status\":{\"clientCertificateData\":\"c\","
               "\"clientKeyData\":\"k\"}}'\n");
    ask_plugin();
    assert_null(bearer());
    assert_string_equal(words, "");
    assert_int_equal(strncmp(config.tls.cert_file, "/proc/self/fd/", 14), 0);
}

static void a_plugin_that_fails_is_named_without_its_words(void **state)
{
    static const char *const scripts[] = {"#!/bin/sh\necho swordfish; exit 3\n",
                                          "#!/bin/sh\necho '{\"status\":{}}'\n",
                                          "#!/bin/sh\necho swordfish\n", "no program"};
    (void)state;
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        use_plugin(scripts[i]);
        readies = 0;
        if (!kube_login_ready(login))
            assert_true(kit_until(&readies));
        assert_true(kube_login_ready(login));
        assert_null(bearer());
        assert_non_null(strstr(words, "plugin"));
        assert_null(strstr(words, "swordfish"));
        kube_login_free(&login);
        kube_config_done(&config);
    }
}

/* Closing the store does not wait for it. */
static void a_plugin_that_hangs_is_ended(void **state)
{
    (void)state;
    use_plugin("#!/bin/sh\nexec sleep 1000\n");
    assert_false(kube_login_ready(login));
    kit_turn(50);
    kube_login_free(&login);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(a_kubeconfig_says_where_and_who),
        STORY(a_bad_kubeconfig_is_reported),
        STORY(of_several_files_the_first_counts),
        STORY(certificates_inside_never_touch_a_disk),
        STORY(a_token_file_is_read_anew_when_refused),
        STORY(a_plugin_is_asked_and_asked_again_when_refused),
        STORY(an_expired_token_is_requested_again),
        STORY(an_expiry_may_be_told_in_another_time_zone),
        STORY(an_expired_token_is_tried_for_a_moment),
        STORY(a_request_while_a_plugin_runs_gets_nothing),
        STORY(the_kubeconfig_counts_before_our_environment),
        STORY(a_plugin_with_a_slash_lies_beside_the_kubeconfig),
        STORY(a_plugin_gives_certificates_too),
        STORY(a_plugin_that_fails_is_named_without_its_words),
        STORY(a_plugin_that_hangs_is_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
