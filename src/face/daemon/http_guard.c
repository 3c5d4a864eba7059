/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks before a request is read further: a Host that is ours, so that a name of
 * somebody else that resolves to this address is refused; no Origin of another site; and, if
 * credentials are configured, one in Authorization.
 */
#include "face/daemon/http_face.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

/* Host without its port, and without the brackets of an IPv6 address. False if it is malformed. */
static bool guard_host_name(struct httpd_slice host, char *out, size_t size)
{
    struct httpd_slice name = host;
    const char *port = NULL;
    const char *end = host.bytes + host.length;
    if (host.length > 0 && host.bytes[0] == '[') {
        const char *bracket = memchr(host.bytes, ']', host.length);
        if (bracket == NULL)
            return false;
        name = (struct httpd_slice){.bytes = host.bytes + 1,
                                    .length = (size_t)(bracket - host.bytes) - 1};
        port = bracket + 1;
    } else {
        const char *colon = memchr(host.bytes, ':', host.length);
        port = colon != NULL ? colon : end;
        name.length = (size_t)(port - host.bytes);
    }
    if (port < end && *port != ':')
        return false;
    for (const char *at = port + 1; at < end; at++) {
        if (*at < '0' || *at > '9')
            return false;
    }
    if (name.length == 0 || name.length >= size)
        return false;
    memcpy(out, name.bytes, name.length);
    out[name.length] = '\0';
    return true;
}

static bool guard_is_our_host(const struct daemon *daemon, struct httpd_slice host)
{
    char name[256];
    unsigned char address[16];
    if (!guard_host_name(host, name, sizeof name))
        return false;
    if (strcasecmp(name, "localhost") == 0 || inet_pton(AF_INET, name, address) == 1 ||
        inet_pton(AF_INET6, name, address) == 1)
        return true;
    for (const char *const *at = daemon->options->hosts; at != NULL && *at != NULL; at++) {
        if (strcasecmp(name, *at) == 0)
            return true;
    }
    return false;
}

/* "http://HOST" or "https://HOST", with the same port as in Host, which HTTP/1.0 may lack. */
static bool guard_is_same_origin(struct httpd_slice origin, struct httpd_slice host)
{
    static const char *const schemes[] = {"http://", "https://"};
    if (host.bytes == NULL)
        return false;
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        size_t length = strlen(schemes[i]);
        if (origin.length == length + host.length &&
            strncasecmp(origin.bytes, schemes[i], length) == 0 &&
            strncasecmp(origin.bytes + length, host.bytes, host.length) == 0)
            return true;
    }
    return false;
}

/* "Bearer SECRET". False: refused. */
static bool guard_login(struct daemon_connection *connection, struct httpd_slice authorization)
{
    static const char scheme[] = "Bearer ";
    char *secret = connection->daemon->http->segment;
    size_t length = authorization.length, skip = sizeof scheme - 1;
    const struct login *login = NULL;
    if (length > skip && length - skip < HTTP_SEGMENT_SIZE &&
        strncasecmp(authorization.bytes, scheme, skip) == 0) {
        memcpy(secret, authorization.bytes + skip, length - skip);
        secret[length - skip] = '\0';
        login = credentials_by_secret(connection->daemon->credentials, /* name= */ NULL, secret);
        explicit_bzero(secret, length - skip);
    }
    if (login != NULL)
        auth_use(connection, login);
    return login != NULL;
}

static bool guard_is_health(struct httpd_slice path)
{
    return httpd_is(path, "/healthz") || httpd_is(path, "/readyz");
}

/* Each request is on its own: a proxy sends those of several clients on one connection. */
static bool guard_authenticates(struct daemon_connection *connection,
                                const struct httpd_request *request)
{
    static const char challenge[] = "WWW-Authenticate: Bearer realm=\"leasehold\"\r\n";
    if (connection->daemon->credentials == NULL)
        return true;
    if (request->authorization.bytes == NULL) {
        if (!MAY_HOLE(HTTP_KEPT))
            auth_restart(connection);
        if (!connection->auth.needed || guard_is_health(request->path))
            return true;
        http_refuse(connection, 401, "send a credential: Authorization: Bearer SECRET", challenge);
        return false;
    }
    if (guard_login(connection, request->authorization))
        return true;
    connection->http->keep_alive = false;
    http_refuse(connection, 401, "this credential is not known", challenge);
    return false;
}

bool http_is_allowed(struct daemon_connection *connection, const struct httpd_request *request)
{
    if (request->host.bytes != NULL && !guard_is_our_host(connection->daemon, request->host)) {
        http_refuse(connection, 421,
                    "the name in Host is not served here; use an address, localhost, or a name "
                    "of --host",
                    NULL);
        return false;
    }
    if (request->origin.bytes != NULL && !guard_is_same_origin(request->origin, request->host)) {
        http_refuse(connection, 403, "requests of other sites are refused (Origin)", NULL);
        return false;
    }
    return guard_authenticates(connection, request);
}
