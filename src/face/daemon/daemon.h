/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon: serves the locks of one store to other processes. Any Redis client is a client. It is
 * a face like the command line: it acquires and releases through the public headers only, with the
 * loop of the calling thread, and has no rule of its own.
 */
#ifndef LEASEHOLD_FACE_DAEMON_DAEMON_H
#define LEASEHOLD_FACE_DAEMON_DAEMON_H

#include "leasehold.h"

#define DAEMON_ADDRESS        "127.0.0.1:7379"
#define DAEMON_HTTP_ADDRESS   "127.0.0.1:7380"
#define DAEMON_METRICS_PREFIX "leasehold"
enum { DAEMON_CONNECTIONS = 10000, DAEMON_CONNECTIONS_LIMIT = 1000000 };

enum daemon_level { DAEMON_INFO, DAEMON_WARNING, DAEMON_ERROR };

/* A line of the log. */
struct daemon_line {
    enum daemon_level level;
    const char *event; /* one word */
    const char *text;
    const char *class; /* of refusals, one word; NULL: it is no refusal, and has none of … */
    const char *peer, *identity; /* … these; each may be NULL */
    uint64_t count;              /* of refusals that it stands for */
};

struct daemon_options {
    const char *address;      /* of TCP; NULL: none */
    const char *http_address; /* NULL: none */
    bool http_required;       /* an address in use by another is fatal, not skipped */
    const char *const *hosts; /* names in Host beside addresses and localhost; NULL-terminated */
    const char *unix_path;    /* NULL: none */
    bool unix_required;       /* a socket in use by another is fatal, not skipped */
    bool stdio;               /* one connection on stdin and stdout; returns when it ends */
    size_t connections_max;
    const char *tokens;        /* the file of credentials; NULL: every peer may do everything */
    const char *tls_cert;      /* PEM file: TCP needs TLS; NULL: it has none */
    const char *tls_key;       /* NULL: in tls_cert */
    const char *tls_client_ca; /* NULL: clients have no certificates */
    bool insecure;             /* listen beyond loopback without TLS and credentials */
    unsigned unix_mode;        /* of the unix socket */
#ifdef LH_MUTANTS
    const char *planted; /* a hole of may.h; NULL: none */
#endif
    const char *store;          /* the URL without secrets, for INFO */
    const char *metrics_prefix; /* NULL: leasehold */
    void (*log)(void *user, const struct daemon_line *line);
    /* All sockets are open; the text has one address per line. */
    void (*ready)(void *user, const char *addresses);
    void *user;
};

/* Serves until SIGTERM or SIGINT, or the end of stdin. SIGHUP reads the TLS files again. The client
 * has its own loop; it is taken over and closed. LH_OK, or why it could not start. */
enum lh_outcome daemon_run(struct lh_client **client, const struct daemon_options *options,
                           struct lh_report *report);

#endif
