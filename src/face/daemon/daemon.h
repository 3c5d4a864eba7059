/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon: serves the locks of one store to other processes. Any Redis client is a client. It is
 * a face like the command line: it acquires and releases through the public headers only, with the
 * loop of the calling thread, and has no rule of its own.
 */
#ifndef LEASEHOLD_FACE_DAEMON_DAEMON_H
#define LEASEHOLD_FACE_DAEMON_DAEMON_H

#include "leasehold.h"

#define DAEMON_ADDRESS "127.0.0.1:7379"
enum { DAEMON_CONNECTIONS = 10000, DAEMON_CONNECTIONS_LIMIT = 1000000 };

enum daemon_level { DAEMON_INFO, DAEMON_WARNING, DAEMON_ERROR };

struct daemon_options {
    const char *address;       /* of TCP; NULL: none */
    const char *unix_path;     /* NULL: none */
    bool unix_required;        /* a socket in use by another is fatal, not skipped */
    const char *tls_cert;      /* PEM file: TCP needs TLS; NULL: it has none */
    const char *tls_key;       /* NULL: in tls_cert */
    const char *tls_client_ca; /* NULL: clients have no certificates */
    bool stdio;                /* one connection on stdin and stdout; returns when it ends */
    size_t connections_max;
    const char *store; /* the URL without secrets, for INFO */
    /* The log; `event` is one word. */
    void (*log)(void *user, enum daemon_level level, const char *event, const char *text);
    /* All sockets are open; the text has one address per line. */
    void (*ready)(void *user, const char *addresses);
    void *user;
};

/* Serves until SIGTERM or SIGINT, or the end of stdin. SIGHUP reads the TLS files again. The client
 * has its own loop; it is taken over and closed. LH_OK, or why it could not start. */
enum lh_outcome daemon_run(struct lh_client **client, const struct daemon_options *options,
                           struct lh_report *report);

#endif
