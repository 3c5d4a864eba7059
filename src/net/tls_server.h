/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The certificate, the key and the CA of clients of a TLS server, shared by its connections
 * (stream_adopt_tls()). The files are read once: a server that is made of renewed files replaces
 * this one, and the connections that use this one keep it.
 */
#ifndef LEASEHOLD_NET_TLS_SERVER_H
#define LEASEHOLD_NET_TLS_SERVER_H

#include "base/text.h"

struct tls_server;

/* PEM files. `key_file` NULL: the key is in cert_file. The file of the key must be inaccessible to
 * other users. `client_ca_file` NULL: clients are not asked for certificates; otherwise a client
 * may have one, and one that this CA has not signed ends the handshake. NULL, with the reason. */
struct tls_server *tls_server_new(const char *cert_file, const char *key_file,
                                  const char *client_ca_file, struct text *why);
/* Its connections go on. Accepts NULL. */
void tls_server_free(struct tls_server **server);
/* Why clients refuse the certificate: it has expired, or is not valid yet. NULL: they need not. */
const char *tls_server_warning(const struct tls_server *server);

#endif
