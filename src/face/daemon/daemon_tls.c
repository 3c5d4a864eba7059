/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS of the daemon's TCP sockets. SIGHUP reads the files again: an unusable one changes nothing,
 * because clients would lose a service that works.
 */
#include "face/daemon/daemon_internal.h"

#include "base/text.h"

/* NULL, with the reason. */
static struct tls_server *daemon_load_tls(struct daemon *daemon, struct text *why)
{
    const struct daemon_options *options = daemon->options;
    struct tls_server *tls =
        tls_server_new(options->tls_cert, options->tls_key, options->tls_client_ca, why);
    const char *warning = tls != NULL ? tls_server_warning(tls) : NULL;
    if (warning != NULL)
        daemon_log(daemon, DAEMON_WARNING, "tls_certificate", warning);
    return tls;
}

bool daemon_start_tls(struct daemon *daemon, struct text *why)
{
    if (daemon->options->tls_cert == NULL)
        return true;
    daemon->tls = daemon_load_tls(daemon, why);
    return daemon->tls != NULL;
}

void daemon_reload_tls(struct daemon *daemon)
{
    char message[LH_TEXT_SIZE];
    struct text text;
    if (daemon->tls == NULL)
        return;
    text_init(&text, message, sizeof message);
    struct tls_server *renewed = daemon_load_tls(daemon, &text);
    if (renewed == NULL) {
        text_add(&text, "; the previous certificate stays in use");
        daemon_log(daemon, DAEMON_WARNING, "reload_failed", message);
        return;
    }
    tls_server_free(&daemon->tls);
    daemon->tls = renewed;
    TEXT_JOIN(&text, "new connections use the certificate in ", daemon->options->tls_cert);
    daemon_log(daemon, DAEMON_INFO, "reloaded", message);
}
