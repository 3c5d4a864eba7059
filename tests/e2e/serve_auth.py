#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Credentials of the daemon on real sockets: serve_auth.py PROGRAM. Prints TAP.

How it starts and does not start, who may use its sockets, what is possible before AUTH, and what
SIGHUP does. tests/e2e/serve_rights.py has the table of rights.
"""

import hashlib
import json
import os
import re
import signal
import stat
import subprocess
import sys

from serve_kit import Cases, Closed, Daemon, encode, folder, until

PROGRAM = os.path.realpath(sys.argv[1])
HOUR = 3600000
USER, OTHER_USER = 54321, 54322
REFUSED = "WRONGPASS invalid username-password pair or user is disabled."


def digest(secret):
    return "sha256:" + hashlib.sha256(secret.encode()).hexdigest()


def write(name, text, mode=0o600):
    path = f"{folder}/{name}"
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(text)
    os.chmod(path + ".new", mode)
    os.rename(path + ".new", path)
    return path


GOOD = f"""# of this test
ann {digest("alpha")} all a:
ann {digest("next alpha")} all a:
bob {digest("beta")} read,take,renew *
deploy uid:{USER} take d:
"""
tokens = write("tokens", GOOD)
daemon = Daemon(PROGRAM, "memory:", "--tokens", tokens, "--unix-mode", "0666",
                unix=f"{folder}/open.sock")


def events(one, name):
    lines = [json.loads(line) for line in one.logged().splitlines() if line.startswith("{")]
    return [line["text"] for line in lines if line["event"] == name]


# ---- start ----


def fails(*options):
    result = subprocess.run([PROGRAM, "serve", "--store", "memory:", "--unix", "off", *options],
                            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    return result.returncode, result.stderr


def wrong_starts_say_what_to_do():
    wrong = write("wrong", "ann hunter2 all *\n")
    public = write("public", GOOD, 0o644)
    loopback = ("--listen", "127.0.0.1:0")
    beyond = "give --tls-cert and --tokens, listen on 127.0.0.1, or accept the risk with --insecure"
    mode = "lets other users connect; give --tokens"
    for options, text in (
            ((*loopback, "--tokens", wrong), f"{wrong}:1: the secret must be sha256:"),
            ((*loopback, "--tokens", public), f"{public}: cannot read the credentials: other users"),
            ((*loopback, "--tokens", folder), "not a regular file"),
            ((*loopback, "--tokens", f"{folder}/none"), "No such file"),
            (("--listen", "0.0.0.0:0"), beyond),
            (("--listen", ":0"), beyond),
            (("--listen", ":0", "--tokens", tokens), beyond),
            ((*loopback, "--unix-mode", "0660"), mode),
            ((*loopback, "--unix-mode", "0700"), mode),
            ((*loopback, "--unix-mode", "9", "--tokens", tokens), "not a mode; write it as 0660"),
            ((*loopback, "--unix-mode", "01777", "--tokens", tokens), "not a mode"),
            ((*loopback, "--unix-mode", "rw", "--tokens", tokens), "not a mode")):
        status, said = fails(*options)
        assert status == 64 and text in said, (options, status, said)
        assert "hunter2" not in said, said


def beyond_loopback_by_request_only():
    for options, risk in ((("--insecure",), "whoever connects may do everything"),
                          (("--insecure", "--tokens", tokens), "without encryption")):
        wide = Daemon(PROGRAM, "memory:", *options, listen="0.0.0.0:0")
        assert risk in events(wide, "insecure")[0], wide.logged()
        with wide.connect() as client:
            assert client.call("PING") == ("PONG" if len(options) == 1
                                           else "NOAUTH Authentication required.")
        wide.kill(15)
    assert not events(daemon, "insecure"), daemon.logged()


def pipes_need_no_auth():
    result = subprocess.run([PROGRAM, "serve", "--store", "memory:", "--stdio", "--tokens", tokens],
                            input=encode("LOCK.ACQUIRE", "k", "w", HOUR) + encode("AUTH", "alpha") +
                            encode("LOCK.STATUS", "k"), capture_output=True, timeout=60)
    assert result.stdout.count(b"$2\r\nok\r\n") == 1, result
    assert b"+OK\r\n-NOPERM ann may not use this key" in result.stdout, result


# ---- sockets ----


def modes_of_the_socket():
    assert stat.S_IMODE(os.stat(daemon.path).st_mode) == 0o666
    private = Daemon(PROGRAM, "memory:", "--tokens", tokens, listen="off",
                     unix=f"{folder}/private.sock")
    assert stat.S_IMODE(os.stat(private.path).st_mode) == 0o600
    with private.connect(unix=True) as client:  # this user has no line: everything
        assert client.call("LOCK.ACQUIRE", "any", "w", HOUR)["outcome"] == "ok"


def as_user(user, *commands):
    """The replies that the daemon gives to that user, as text."""
    read_file, write_file = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            with daemon.connect(unix=True) as client:
                os.write(write_file, repr([client.call(*command) for command in commands]).encode())
        except BaseException as error:  # the parent shows it
            os.write(write_file, repr(error).encode())
        finally:
            os._exit(0)
    os.close(write_file)
    with open(read_file, encoding="utf-8") as file:
        said = file.read()
    os.waitpid(child, 0)
    return said


def users_are_known_on_the_unix_socket():
    os.chmod(folder, 0o711)
    said = as_user(USER, ("LOCK.RELEASE", "d:1", 5), ("LOCK.STATUS", "d:1"))
    assert said.count("NOPERM deploy may not use this key") == 2, said
    assert "'outcome': 'ok'" in as_user(USER, ("LOCK.ACQUIRE", "d:1", "w", HOUR))
    said = as_user(OTHER_USER, ("LOCK.STATUS", "d:1"), ("AUTH", "alpha"), ("PING",))
    assert said == "['NOAUTH Authentication required.', 'OK', 'PONG']", said


def an_address_has_64_connections_before_auth():
    clients = [daemon.connect() for _ in range(64)]
    assert clients[63].call("HELLO")["server"] == "leasehold"
    with daemon.connect() as late:
        assert late.ends() == ["ERR too many connections of this address before AUTH"]
    assert clients[0].call("AUTH", "alpha") == "OK"
    with daemon.connect() as in_time:
        assert in_time.call("AUTH", "beta") == "OK"
        assert clients[1].call("QUIT") == "OK"
        with daemon.connect(unix=True) as local:  # of this user
            assert local.call("PING") == "PONG"
    for client in clients:
        client.close()

    def is_open_again():
        with daemon.connect() as client:
            return client.call("AUTH", "alpha") == "OK"
    until(is_open_again)


def before_auth_there_is_little_room():
    with daemon.connect() as client:
        client.send(b"*2\r\n$4\r\nAUTH\r\n$5000\r\n")
        assert client.ends() == ["ERR Protocol error: an argument is too long"]
    with daemon.connect() as client:
        client.send(encode("AUTH", "x" * 4000) + encode("AUTH", "alpha") + encode("ECHO", "y" * 9000))
        assert client.read() == REFUSED
        assert client.read() == "OK"
        assert client.read() == "y" * 9000
    with daemon.connect() as client:
        try:
            client.send(encode("PING") * 20000)
        except Closed:
            pass
        replies = client.ends()
        assert 50 < len(replies) < 2000, len(replies)
    with daemon.connect() as client:
        client.send(encode("AUTH", "wrong") * 6)
        assert client.ends() == [REFUSED] * 5


def redis_cli_sends_auth():
    def ask(*options, secret, command=("LOCK.STATUS", "a:1")):
        result = subprocess.run(["redis-cli", "-p", str(daemon.port), "--json", *options, *command],
                                env={**os.environ, "REDISCLI_AUTH": secret}, capture_output=True,
                                text=True, timeout=60)
        return result.stdout + result.stderr
    assert '"outcome":"ok"' in ask(secret="alpha")
    assert '"outcome":"ok"' in ask("--user", "ann", secret="alpha")
    assert "NOPERM" in ask(secret="alpha", command=("LOCK.STATUS", "b:1"))
    assert "NOAUTH" in ask(secret="wrong")


# ---- SIGHUP ----


def hang_up(one, text, event):
    count = len(events(one, event))
    if text is not None:
        write("tokens", text)
    one.process.send_signal(signal.SIGHUP)

    def logged():
        return len(events(one, event)) > count
    until(logged)
    return events(one, event)[-1]


def a_reload_follows_the_file():
    with daemon.connect() as ann, daemon.connect() as old, daemon.connect() as bob:
        assert ann.call("AUTH", "ann", "next alpha") == old.call("AUTH", "ann", "alpha") == "OK"
        assert bob.call("AUTH", "beta") == "OK"
        old.ok("LOCK.ACQUIRE", "a:bound", "old", HOUR, "BIND")
        without = GOOD.replace(f"ann {digest('alpha')} all a:\n", "").replace(" all a:", " read a:")
        said = hang_up(daemon, without, "reloaded")
        assert said == f"{tokens}: 3 credentials; connections cut: 1", said
        assert old.ends() == []
        assert ann.call("LOCK.CLEAR", "a:bound").startswith("NOPERM ")
        assert ann.call("LOCK.STATUS", "a:bound")["state"] == "held"  # D1
        said = hang_up(daemon, without + "eve beta all *\n", "reload_failed")
        assert f"{tokens}:5: the secret must" in said and said.endswith("; the previous credentials stay"), said
        assert "eve" not in said and bob.call("PING") == "PONG"
        said = hang_up(daemon, GOOD, "reloaded")
        assert said.endswith("4 credentials; connections cut: 0"), said
        assert ann.call("LOCK.CLEAR", "a:bound")["outcome"] == "ok"
    with daemon.connect() as again:
        assert again.call("AUTH", "alpha") == "OK"


def without_credentials_a_hang_up_changes_nothing():
    plain = Daemon(PROGRAM, "memory:")
    with plain.connect() as client:
        client.ok("LOCK.ACQUIRE", "k", "w", HOUR)
        plain.process.send_signal(signal.SIGHUP)
        assert client.call("LOCK.STATUS", "k")["state"] == "held"
        assert client.call("AUTH", "x").startswith("ERR AUTH is not needed")
    assert plain.kill(15) == 0


cases = Cases()
functions = [wrong_starts_say_what_to_do, beyond_loopback_by_request_only, pipes_need_no_auth,
             modes_of_the_socket, an_address_has_64_connections_before_auth,
             before_auth_there_is_little_room, redis_cli_sends_auth, a_reload_follows_the_file,
             without_credentials_a_hang_up_changes_nothing]
if os.geteuid() == 0:  # only root can become another user
    functions.append(users_are_known_on_the_unix_socket)
for function in functions:
    cases.run(function.__name__.replace("_", " "), function)
log = daemon.logged()
secrets = ("alpha", "beta", digest("beta")[7:])
wrong = r'"class":"wrong_credential","peer":"127\.0\.0\.1".*wrong name or secret'
cases.tell(not any(word in log for word in secrets), "the log has no secret", log)
cases.tell(bool(re.search(wrong, log)),
           "the log has refusals", log)
cases.tell(daemon.kill(15) == 0, "SIGTERM ends the daemon", daemon.logged())
cases.finish()
