#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TLS of the daemon: serve_tls.py PROGRAM [late]. Prints TAP.

Certificates are made by the openssl program. With `late`, peers without a handshake are watched
until the deadline of 10 s cuts them, while all other cases run.
"""

import json
import os
import pty
import select
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time

from serve_kit import (Cases, Client, Closed, Daemon, encode, folder, pairs, until, WAIT_S)
from serve_web import Web

PROGRAM = os.path.realpath(sys.argv[1])
LATE = sys.argv[2:] == ["late"]
DEADLINE_S = 10
HOUR = 3600000


# ---- certificates ----

def path(name):
    return os.path.join(folder, name)


def openssl(*args):
    result = subprocess.run(["openssl", *args], stdin=subprocess.DEVNULL, capture_output=True,
                            text=True, timeout=WAIT_S)
    assert result.returncode == 0, (args, result.stderr)


KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def make_ca(name):
    openssl("req", "-x509", *KEY, "-days", "2", "-subj", f"/CN={name}", "-keyout",
            path(name + ".key"), "-out", path(name + ".crt"))


def make_certificate(name, ca="ca", days="2", extension="subjectAltName=IP:127.0.0.1"):
    with open(path(name + ".ext"), "w", encoding="ascii") as file:
        file.write(extension + "\n")
    openssl("req", *KEY, "-subj", f"/CN={name}", "-keyout", path(name + ".key"), "-out",
            path(name + ".csr"))
    openssl("x509", "-req", "-in", path(name + ".csr"), "-CA", path(ca + ".crt"), "-CAkey",
            path(ca + ".key"), "-CAcreateserial", "-days", days, "-extfile", path(name + ".ext"),
            "-out", path(name + ".crt"))


def make_all():
    make_ca("ca")
    make_ca("other-ca")
    make_certificate("server")
    make_certificate("renewed")
    make_certificate("expired", days="-1")
    client = "extendedKeyUsage=clientAuth"
    make_certificate("worker", extension=client)
    make_certificate("worker-expired", days="-1", extension=client)
    make_certificate("worker-foreign", ca="other-ca", extension=client)
    openssl("ec", "-in", path("server.key"), "-aes128", "-passout", "pass:secret", "-out",
            path("encrypted.key"))
    os.chmod(path("encrypted.key"), 0o600)
    with open(path("lax.cnf"), "w", encoding="ascii") as file:
        file.write("openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = lax\n[lax]\n"
                   "MinProtocol = TLSv1\nCipherString = DEFAULT:@SECLEVEL=0\n")


# ---- clients and daemons ----

def trust(ca="ca", certificate=None, version=None):
    """What a client trusts; with a version, it speaks no other."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca is None:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    else:
        context.load_verify_locations(path(ca + ".crt"))
    if certificate is not None:
        context.load_cert_chain(path(certificate + ".crt"), path(certificate + ".key"))
    if version is not None:
        context.minimum_version = context.maximum_version = version
    return context


class TlsClient(Client):
    """A connection with TLS. Its end without close() is a cut: no close_notify is sent."""

    def __init__(self, address, context, protocol=2):
        plain = socket.create_connection(address, timeout=WAIT_S)
        try:
            self.tls = context.wrap_socket(plain, server_hostname="127.0.0.1",
                                           suppress_ragged_eofs=False)
        except BaseException:
            plain.close()
            raise
        super().__init__(self.tls.fileno(), self.tls.fileno(), protocol)

    def send(self, data):
        try:
            self.tls.sendall(data)
        except OSError as error:
            raise Closed() from error

    def fill(self, timeout):
        self.tls.settimeout(max(0.001, timeout))
        try:
            more = self.tls.recv(1 << 16)
        except TimeoutError:
            raise
        except OSError as error:
            raise Closed() from error
        if not more:
            raise Closed()
        self.data, self.at = self.data[self.at:] + more, 0

    def close(self):
        """Says goodbye: close_notify, and waits for that of the daemon."""
        self.read_file = None
        try:
            self.tls.unwrap().close()
        except OSError:
            self.tls.close()

    def cut(self):
        self.read_file = None
        self.tls.close()

    def certificate(self):
        return self.tls.getpeercert(binary_form=True)


class TlsDaemon(Daemon):
    """Refusals are its own: its OpenSSL would allow everything."""

    def __init__(self, *options, certificate="server", wait=True, **more):
        os.environ["OPENSSL_CONF"] = path("lax.cnf")
        super().__init__(PROGRAM, "memory:", "--tls-cert", path(certificate + ".crt"), "--tls-key",
                         path(certificate + ".key"), *options, wait=wait, **more)
        del os.environ["OPENSSL_CONF"]

    def client(self, context=None, protocol=2):
        return TlsClient(self.address, context or trust(), protocol)

    def events(self, name):
        return [line["text"] for line in map(json.loads, self.logged().splitlines())
                if name in (line["event"], line.get("class"))]

    def plain(self):
        return socket.create_connection(self.address, timeout=WAIT_S)


def s_client(*args, data=b""):
    result = subprocess.run(["openssl", "s_client", "-connect", "127.0.0.1:%d" % daemon.port,
                             *args], input=data, capture_output=True, timeout=WAIT_S)
    return result.returncode, (result.stdout + result.stderr).decode("utf-8", "replace")


# ---- cases ----

def both_versions_serve():
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        for protocol in (2, 3):
            with daemon.client(trust(version=version), protocol) as a:
                assert a.tls.version() == version.name.replace("_", "."), a.tls.version()
                assert a.call("PING") == "PONG"
                token = a.token("LOCK.ACQUIRE", "both", "w", HOUR)
                assert a.call("LOCK.ACQUIRE", "both", "v", HOUR)["outcome"] == "busy"
                a.ok("LOCK.RELEASE", "both", token)


def redis_cli_is_a_client():
    if shutil.which("redis-cli") is None:
        raise AssertionError("redis-cli is missing: install redis-tools")
    command = ["redis-cli", "-p", str(daemon.port), "--tls", "--cacert", path("ca.crt")]
    result = subprocess.run(command + ["PING"], capture_output=True, text=True, timeout=WAIT_S)
    assert result.stdout == "PONG\n", result
    result = subprocess.run(command + ["--cert", path("worker.crt"), "--key", path("worker.key"),
                                       "LOCK.ACQUIRE", "cli", "w", "1000"],
                            capture_output=True, text=True, timeout=WAIT_S)
    assert "ok: granted" in result.stdout, result
    result = subprocess.run(["redis-cli", "-p", str(daemon.port), "PING"], capture_output=True,
                            text=True, timeout=WAIT_S)
    assert "PONG" not in result.stdout, result


def old_versions_are_refused():
    for option in ("-tls1", "-tls1_1"):
        status, text = s_client(option, "-cipher", "ALL:@SECLEVEL=0")
        # the alert was received, not sent: s_client itself would have spoken it
        assert status != 0 and "alert protocol version" in text, text
    status, text = s_client("-tls1_2", "-cipher", "AES128-SHA:@SECLEVEL=0")
    assert status != 0 and "handshake failure" in text, text  # no forward secrecy
    status, text = s_client("-tls1_2")
    assert status == 0, text


def first_failure(act, *args):
    """What a daemon logs about its first peer; further ones of the same second are not logged."""
    one = TlsDaemon("--tls-client-ca", path("ca.crt"))
    act(one, *args)
    text = until(lambda: one.events("tls_handshake"))[0]
    with one.client() as a:
        assert a.call("PING") == "PONG"
    one.end()
    return text


def a_client_that_trusts_another_ca_refuses():
    def connect(one, version):
        try:
            one.client(trust("other-ca", version=version))
        except ssl.SSLCertVerificationError:
            return
        raise AssertionError("the client trusts it")
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        text = first_failure(connect, version)
        assert "127.0.0.1: the client refuses our certificate (" in text, text


def an_expired_certificate_serves_only_the_careless():
    old = TlsDaemon(certificate="expired")
    assert len(old.events("tls_certificate")) == 1, old.logged()
    assert "has expired" in old.events("tls_certificate")[0], old.logged()
    try:
        old.client()
    except ssl.SSLCertVerificationError as error:
        assert "expired" in str(error), error
    else:
        raise AssertionError("the client accepts it")
    with old.client(trust(ca=None)) as a:
        assert a.call("PING") == "PONG"
    old.end()


def certificates_of_clients_are_optional():
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        for certificate in (None, "worker"):
            with daemon.client(trust("ca", certificate, version)) as a:
                assert a.call("PING") == "PONG"


def a_certificate_is_a_credential():
    """Its name has a line of --tokens: by RESP and by HTTP."""
    with open(os.open(path("tokens"), os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write("worker cert take,renew,read w/\n")
    one = TlsDaemon("--tls-client-ca", path("ca.crt"), "--tokens", path("tokens"),
                    http="127.0.0.1:0")
    with one.client(trust("ca", "worker")) as a:
        assert a.call("LOCK.ACQUIRE", "w/1", "me", 60000)["outcome"] == "ok"
        assert a.call("LOCK.ACQUIRE", "x", "me", 60000).startswith("NOPERM worker "), "x"
    with one.client() as a:
        assert a.call("PING").startswith("NOAUTH "), "PING"
    for certificate, key, status in (("worker", "w%2F1", 200), ("worker", "x", 403),
                                     (None, "w%2F1", 401)):
        with Web(one.web, tls=trust("ca", certificate)) as web:
            assert web.request("GET", f"/v1/locks/{key}")[0] == status, (certificate, key)


def bad_certificates_of_clients_are_refused():
    def connect(one, certificate, version):
        try:  # with TLS 1.3 the client is done before the daemon has verified it
            with one.client(trust("ca", certificate, version)) as a:
                a.call("PING")
        except (Closed, OSError):
            return
        raise AssertionError(f"{certificate} was accepted")
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        text = first_failure(connect, "worker-foreign", version)
        assert "the client's certificate is refused (unable to get" in text, text
    text = first_failure(connect, "worker-expired", ssl.TLSVersion.TLSv1_3)
    assert "the client's certificate is refused (certificate has expired)" in text, text


NO_HELLO = [
    encode("PING"), b"PING\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x80.\x01", b"\0" * 300,
    b"\x16\x03\x01\x02\x00\x02\x00\x01\xfc" + b"\0" * 300, b"\x16\x03\x01\x40\x00\x01\xff\xff\xff",
    os.urandom(1000).replace(b"\x16", b"x"),
]


def bytes_that_are_no_tls_get_no_reply():
    def send(one, data):
        began = time.monotonic()
        with one.plain() as peer:
            peer.sendall(data)
            try:
                reply = peer.recv(1000)
            except ConnectionResetError:
                reply = b""
        assert reply == b"", (data, reply)
        assert time.monotonic() - began < DEADLINE_S / 2, "it waited for the deadline"
    text = first_failure(send, encode("PING"))
    assert text == "127.0.0.1: the peer does not speak TLS", text
    for data in NO_HELLO:
        send(daemon, data)
    with daemon.plain() as one:  # a ClientHello that is broken within: an alert, and the end
        one.sendall(b"\x16\x03\x01\x00\x30\x01\x00\x00\x2c\x03\x03" + b"\xff" * 42)
        assert one.recv(1000)[:1] in (b"\x15", b"")
    assert witness.call("PING") == "PONG"


def failures_do_not_fill_the_log():
    before = len(daemon.events("tls_handshake"))
    began = time.monotonic()
    for _ in range(300):
        with daemon.plain() as one:
            one.sendall(b"x")
    witness.call("PING")
    assert len(daemon.events("tls_handshake")) - before <= 2 + time.monotonic() - began


def a_probe_is_no_failure():
    quiet = TlsDaemon()
    for _ in range(3):
        quiet.plain().close()
    with quiet.client() as a:
        until(lambda: "connected_clients:1" in a.call("INFO"))
    assert quiet.events("tls_handshake") == [], quiet.logged()
    quiet.end()


def the_unix_socket_has_no_tls():
    both = TlsDaemon(unix=path("lock.sock"))
    with both.connect(unix=True) as a, both.client() as b:
        assert a.call("PING") == b.call("PING") == "PONG"
    both.end()


def the_number_of_connections_is_limited():
    small = TlsDaemon("--max-connections", "1")
    with small.client() as a:
        try:
            small.client()
        except OSError:
            pass
        else:
            raise AssertionError("two connections")
        assert a.call("PING") == "PONG"
    small.end()


def a_mebibyte_is_pipelined():
    count = 1040
    texts = ["%04d" % i + "x" * 1000 for i in range(count)]
    data = b"".join(encode("ECHO", text) for text in texts)
    assert len(data) > 1 << 20
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        with daemon.client(trust(version=version)) as a:
            reads = 0
            for at in range(0, len(data), 1 << 17):
                a.send(data[at:at + (1 << 17)])
                while reads < (at >> 10):  # a slow reader would be cut
                    assert a.read() == texts[reads]
                    reads += 1
            assert [a.read() for _ in range(count - reads)] == texts[reads:]


def large_replies_arrive_whole():
    with daemon.client() as a:
        a.send(b"".join(encode("LOCK.ACQUIRE", "large/%03d" % i + "k" * 400, "w" * 100, HOUR)
                        for i in range(700)))
        assert all(pairs(a.read())["outcome"] == "ok" for i in range(700))
        keys, after = [], []
        while True:
            page = a.ok("LOCK.LIST", "large/", "COUNT", 1000, *after)
            keys += [pairs(view)["key"][:9] for view in page["keys"]]
            if page["next"] is None:
                break
            after = ["AFTER", page["next"]]
        assert keys == ["large/%03d" % i for i in range(700)], keys


def a_pipeline_behind_a_wait_is_read_after_it():
    """The stream is paused in the middle of a record."""
    with daemon.client() as holder, daemon.client() as a:
        token = holder.token("LOCK.ACQUIRE", "pause", "h", HOUR)
        a.send(encode("LOCK.ACQUIRE", "pause", "w", HOUR, "WAIT", -1) +
               b"".join(encode("ECHO", i) for i in range(3000)))
        until(lambda: "blocked_clients:1" in holder.call("INFO"))
        holder.ok("LOCK.RELEASE", "pause", token)
        assert pairs(a.read())["outcome"] == "ok"
        for i in range(3000):
            assert a.read() == str(i)


def half_close_gets_its_replies():
    """Commands and close_notify in one piece."""
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        inward, outward = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = trust(version=version).wrap_bio(inward, outward, server_hostname="127.0.0.1")
        with daemon.plain() as one:
            def turn(step):
                while True:
                    try:
                        return step()
                    except ssl.SSLWantReadError:
                        one.sendall(outward.read())
                        more = one.recv(1 << 16)
                        inward.write(more) if more else inward.write_eof()
            turn(tls.do_handshake)
            for i in range(50):
                tls.write(encode("ECHO", "%02d" % i))
            try:
                tls.unwrap()
            except ssl.SSLWantReadError:
                pass
            one.sendall(outward.read())
            got, expected = b"", b"".join(b"$2\r\n%02d\r\n" % i for i in range(50))
            try:
                while True:
                    got += turn(tls.read)
            except ssl.SSLZeroReturnError:  # the daemon's close_notify
                pass
            assert got == expected, got


def only_a_goodbye_releases_bound_grants():
    with daemon.client() as a:
        a.ok("LOCK.ACQUIRE", "bound", "w", HOUR, "BIND")
    until(lambda: witness.call("LOCK.STATUS", "bound")["state"] == "free")
    a = daemon.client()
    token = a.token("LOCK.ACQUIRE", "bound", "w", HOUR, "BIND")
    a.cut()
    time.sleep(0.3)
    assert witness.call("LOCK.STATUS", "bound")["state"] == "held"
    with daemon.client() as b:  # D1: it can be bound again
        b.ok("LOCK.RENEW", "bound", token, "BIND")
        assert b.call("QUIT") == "OK"
    until(lambda: witness.call("LOCK.STATUS", "bound")["state"] == "free")


# ---- files ----

def replace(name, source):
    """As renewing programs do: by a rename."""
    shutil.copy(path(source), path("new"))
    os.replace(path("new"), path(name))


def read(name):
    with open(path(name), "rb") as file:
        return ssl.PEM_cert_to_DER_cert(file.read().decode())


def hangup_serves_new_files_to_new_connections():
    for kind in ("crt", "key"):
        replace("live." + kind, "server." + kind)
    live = TlsDaemon("--tls-client-ca", path("ca.crt"), certificate="live")
    with live.client() as old:
        assert old.certificate() == read("server.crt")
        for kind in ("crt", "key"):
            replace("live." + kind, "renewed." + kind)
        live.process.send_signal(signal.SIGHUP)
        until(lambda: len(live.events("reloaded")) == 1)
        with live.client() as new:
            assert new.certificate() == read("renewed.crt")
            assert new.call("PING") == old.call("PING") == "PONG"
        broken_files_keep_the_old_ones(live, old)
    live.end()


def broken_files_keep_the_old_ones(live, old):
    breaks = [
        ("live.crt", lambda: os.unlink(path("live.crt")), "No such file"),
        ("live.key", lambda: os.unlink(path("live.key")), "No such file"),
        ("live.key", lambda: replace("live.key", "server.key"), "live.key (key values mismatch)"),
        ("live.key", lambda: os.chmod(path("live.key"), 0o640), "other users have access"),
        ("live.crt", lambda: replace("live.crt", "live.ext"), "cannot use the certificate in"),
    ]
    with open(path("live.ext"), "w", encoding="ascii") as file:
        file.write("-----BEGIN CERTIFICATE-----\nAAAA\n")
    for number, (name, make, expected) in enumerate(breaks, 1):
        make()
        live.process.send_signal(signal.SIGHUP)
        until(lambda: len(live.events("reload_failed")) == number)
        text = live.events("reload_failed")[-1]
        assert expected in text and text.endswith("the previous certificate stays in use"), text
        with live.client() as new:
            assert new.certificate() == read("renewed.crt")
            assert new.call("PING") == old.call("PING") == "PONG"
        replace(name, "renewed" + name[-4:])
    assert "PRIVATE KEY" not in live.logged()
    live.process.send_signal(signal.SIGHUP)
    until(lambda: len(live.events("reloaded")) == 2)


def hangup_without_tls_does_nothing():
    plain = Daemon(PROGRAM, "memory:")
    with plain.connect() as a:
        plain.process.send_signal(signal.SIGHUP)
        time.sleep(0.1)
        assert a.call("PING") == "PONG"
    assert plain.process.poll() is None
    plain.end()


def fails(*options, stdio=False):
    where = ["--stdio"] if stdio else ["--listen", "127.0.0.1:0", "--unix", "off"]
    result = subprocess.run([PROGRAM, "serve", "--store", "memory:", *where, *options],
                            stdin=subprocess.DEVNULL, capture_output=True, text=True,
                            timeout=WAIT_S)
    assert "PRIVATE KEY" not in result.stderr, result
    return result.returncode, result.stderr


def bad_files_end_the_start():
    certificate, key = path("server.crt"), path("server.key")
    shutil.copy(key, path("open.key"))
    os.chmod(path("open.key"), 0o644)
    for options, expected in (
            (("--tls-cert", certificate, "--tls-key", path("open.key")),
             "open.key: other users have access to the key; chmod 600"),
            (("--tls-cert", path("none"), "--tls-key", key), "none: No such file"),
            (("--tls-cert", certificate, "--tls-key", path("renewed.key")), "mismatch"),
            (("--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", key),
             "cannot use the certificates in"),
            (("--tls-cert", certificate), "other users have access to the key")):
        status, text = fails(*options)
        assert status not in (0, 64) and expected in text, (options, status, text)
    with open(path("one.pem"), "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as one:
        for part in (certificate, key):
            with open(part, "rb") as file:
                one.write(file.read())
    os.symlink("one.pem", path("one.crt"))
    os.symlink("one.pem", path("one.key"))
    joined = TlsDaemon(certificate="one")
    with joined.client() as a:
        assert a.call("PING") == "PONG"
    joined.end()


def wrong_options_are_a_usage_error():
    certificate = ("--tls-cert", path("server.crt"), "--tls-key", path("server.key"))
    for options, stdio, expected in (
            (("--tls-key", path("server.key")), False, "--tls-key needs --tls-cert"),
            (("--tls-client-ca", path("ca.crt")), False, "--tls-client-ca needs --tls-cert"),
            (certificate, True, "--tls-cert is for TCP"),
            (certificate + ("--listen", "off", "--unix", path("x.sock")), False,
             "--tls-cert is for TCP")):
        status, text = fails(*options, stdio=stdio)
        assert status == 64 and expected in text, (options, status, text)


def an_encrypted_key_is_not_asked_for():
    """On a terminal, where OpenSSL would prompt and wait."""
    command = [PROGRAM, "serve", "--store", "memory:", "--listen", "127.0.0.1:0", "--unix", "off",
               "--tls-cert", path("server.crt"), "--tls-key", path("encrypted.key")]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(PROGRAM, command)
    text, ends = b"", time.monotonic() + 20
    try:
        while time.monotonic() < ends and select.select([terminal], [], [], 1):
            text += os.read(terminal, 1000)
    except OSError:  # EIO: the program has ended
        pass
    if time.monotonic() >= ends:
        os.kill(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(terminal)
    assert status > 0 and b"encrypted.key" in text and b"phrase" not in text, (status, text)


# ---- the deadline ----

def open_late_peers():
    """Peers that never finish: what they send, and when they began."""
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
    peers = [[daemon.plain(), b"", 0], [daemon.plain(), hello[:1], 0], [daemon.plain(), hello, 0],
             [daemon.plain(), hello + b"\0" * 500, 0]]
    return peers, time.monotonic()


def feed_late_peers(peers):
    """One more byte to each that is still there."""
    for peer in peers:
        if peer[2] < len(peer[1]):
            try:
                peer[0].send(peer[1][peer[2]:peer[2] + 1])
            except OSError:
                pass
            peer[2] += 1


def peers_without_a_handshake_are_cut(peers, began):
    feed_late_peers(peers)
    left = {peer[0] for peer in peers}
    while left:
        assert time.monotonic() - began < DEADLINE_S + 20, f"{len(left)} peers are still there"
        for one in select.select(list(left), [], [], 0.05)[0]:
            try:
                data = one.recv(100)
            except ConnectionResetError:
                data = b""
            assert data == b"", data
            took = time.monotonic() - began
            assert took > DEADLINE_S - 0.5, f"cut after {took} s"
            left.remove(one)
            one.close()
        feed_late_peers(peers)
    assert any("the TLS handshake is not done in time" in text
               for text in daemon.events("tls_handshake"))


def nothing_is_left():
    witness.call("PING")
    until(lambda: "connected_clients:1" in witness.call("INFO"))
    status = daemon.kill(signal.SIGTERM)
    assert status == 0, (status, daemon.logged())


make_all()
daemon = TlsDaemon("--tls-client-ca", path("ca.crt"))
witness = daemon.client()
late = open_late_peers() if LATE else None
cases = Cases()
for case in (both_versions_serve, redis_cli_is_a_client, old_versions_are_refused,
             a_client_that_trusts_another_ca_refuses,
             an_expired_certificate_serves_only_the_careless, certificates_of_clients_are_optional,
             a_certificate_is_a_credential, bad_certificates_of_clients_are_refused,
             bytes_that_are_no_tls_get_no_reply,
             failures_do_not_fill_the_log, a_probe_is_no_failure, the_unix_socket_has_no_tls,
             the_number_of_connections_is_limited, a_mebibyte_is_pipelined,
             large_replies_arrive_whole, a_pipeline_behind_a_wait_is_read_after_it,
             half_close_gets_its_replies, only_a_goodbye_releases_bound_grants,
             hangup_serves_new_files_to_new_connections, hangup_without_tls_does_nothing,
             bad_files_end_the_start, wrong_options_are_a_usage_error,
             an_encrypted_key_is_not_asked_for):
    cases.run(case.__name__.replace("_", " "), case)
if late is not None:
    cases.run("peers without a handshake are cut after 10 s", peers_without_a_handshake_are_cut,
              *late)
cases.run("nothing is left", nothing_is_left)
cases.finish()
