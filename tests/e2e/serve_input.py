#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bad input, limits and sockets of the daemon: serve_input.py PROGRAM. Prints TAP.

Bytes that are no command get an error and the end of their connection; others live on.
"""

import datetime
import json
import os
import re
import socket
import stat
import subprocess
import sys
import time

from serve_kit import Cases, Closed, Daemon, Error, Pipes, encode, folder, pairs, until

PROGRAM = os.path.realpath(sys.argv[1])
HOUR = 3600000
daemon = Daemon(PROGRAM, "memory:")
witness = daemon.connect()

# what is sent | the error
BROKEN = [
    (b"PING\r\n", "inline commands are not supported"),
    (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "inline commands are not supported"),
    (b"\x16\x03\x01\x02\x00", "inline commands are not supported"),
    (b"\n", "inline commands are not supported"),
    (b"\rPING\r\n", "expected LF after CR"),
    (b"*-1\r\n", "invalid multibulk length"),
    (b"*01\r\n$4\r\nPING\r\n", "invalid multibulk length"),
    (b"*x\r\n", "invalid multibulk length"),
    (b"*1000000\r\n", "too many arguments"),
    (b"*99999999999999999999\r\n", "too many arguments"),
    (b"*1\r\n$-1\r\n", "invalid bulk length"),
    (b"*1\r\n$99999999999999999999\r\n", "an argument is too long"),
    (b"*1\r\n$2147483648\r\n", "an argument is too long"),
    (b"*2\r\n$4\r\nECHO\r\n$16385\r\n", "an argument is too long"),
    (b"*1\r\n$4\r\nPINGxx", "expected CRLF"),
    (b"*1\r\n$4\r\nPING\rx", "expected LF after CR"),
    (b"*1\r\n:4\r\n", "expected '$'"),
    (b"*1\r\n+PING\r\n", "expected '$'"),
    (b"*1\r\n" * 9, "expected '$'"),  # 9 levels
    (b"%1\r\n", "expected '*'"),
    (encode("ECHO", b"a\0b"), "a NUL byte"),
    (encode("LOCK.STATUS", b"k\0"), "a NUL byte"),
    (encode("LOCK.STATUS", "k" * 513), "at most 512 bytes of UTF-8"),
    (encode("LOCK.STATUS", b"a\xff"), "at most 512 bytes of UTF-8"),
    (encode("LOCK.STATUS", b"\xed\xa0\x80"), "at most 512 bytes of UTF-8"),
    (encode("LOCK.STATUS", "a\nb"), "at most 512 bytes of UTF-8"),
    (encode("LOCK.ACQUIRE_ALL", 2, "k", b"\xc0\x80", "w", 60000), "at most 512 bytes of UTF-8"),
    (encode("LOCK.LIST", b"\xff"), "at most 512 bytes of UTF-8"),
    (encode("ONCE.STATUS", b"\xff"), "at most 512 bytes of UTF-8"),
]


def breaks_the_connection(data, error, make):
    with make() as client:
        client.ok("LOCK.ACQUIRE", "before", "w", HOUR, "ID", "x")
        client.send(encode("ECHO", "first") + data)
        values = client.ends()
        assert values[0] == "first" and len(values) == 2, values
        assert isinstance(values[1], Error) and values[1].startswith("ERR "), values
        assert error in values[1], values


def each_broken_command_ends_its_connection():
    for data, error in BROKEN:
        for protocol in (2, 3):
            breaks_the_connection(data, error, lambda: daemon.connect(protocol))
        assert witness.call("PING") == "PONG"


def byte_by_byte():
    with daemon.connect() as a:
        for data in (encode("ECHO", "x"), encode("LOCK.STATUS", "key of é")):
            for at in range(len(data)):
                a.send(data[at:at + 1])
        assert a.read() == "x"
        assert pairs(a.read())["key"] == "key of é"


def empty_commands_are_ignored():
    with daemon.connect() as a:
        a.send(b"*0\r\n\r\n\r\n" + encode("ECHO", "x"))
        assert a.read() == "x"


def pipes_end_too():
    pipes = Pipes(PROGRAM, "memory:")
    with pipes.connect() as a:
        a.send(b"PING\r\n")
        assert "inline" in a.ends()[0]


def pipes_answer_what_came_before_the_end():
    count = 200
    data = b"".join(encode("LOCK.ACQUIRE", f"k{i}", "w", HOUR) for i in range(count))
    data += encode("LOCK.ACQUIRE", "k0", "v", HOUR, "WAIT", -1)
    result = subprocess.run([PROGRAM, "serve", "--store", "memory:", "--stdio"], input=data,
                            capture_output=True, timeout=60)
    assert result.returncode == 0, result
    assert result.stdout.count(b"$2\r\nok\r\n") == count, result.stdout[-500:]
    assert result.stdout.count(b"$4\r\nbusy\r\n") == 1, result.stdout[-500:]


def the_longest_key_is_valid():
    for key in ("k" * 512, "é" * 256):
        assert witness.call("LOCK.STATUS", key)["key"] == key


def the_nearest_is_named():
    for call, near in ((("LOCK.AQUIRE", "k"), "did you mean LOCK.ACQUIRE?"),
                       (("lock.statsu", "k"), "did you mean LOCK.STATUS?"),
                       (("ONCE.FINSH", "k"), "did you mean ONCE.FINISH?"),
                       (("LOCK.ACQUIRE", "k", "w", 1000, "BINDS"), "did you mean BIND?"),
                       (("LOCK.LIST", "x", "CUONT", 5), "did you mean COUNT?")):
        reply = witness.call(*call)
        assert isinstance(reply, Error) and near in reply, reply
    with daemon.connect() as a:
        reply = a.call(b"L\xffCK\x01" + b"x" * 500)
        assert isinstance(reply, Error) and "unknown command" in reply, reply
        assert all(" " <= character <= "\uffff" for character in reply), reply
        assert a.call("PING") == "PONG"


def more_than_a_pipeline_waits():
    """Reading stops at 1,024 commands: the client's bytes are kept until there is room."""
    with daemon.connect() as holder, daemon.connect() as a:
        token = holder.token("LOCK.ACQUIRE", "pipeline", "h", HOUR)
        a.send(encode("LOCK.ACQUIRE", "pipeline", "w", HOUR, "WAIT", -1) +
               b"".join(encode("ECHO", i) for i in range(5000)))
        until(lambda: "blocked_clients:1" in holder.call("INFO"))
        holder.ok("LOCK.RELEASE", "pipeline", token)
        assert pairs(a.read())["outcome"] == "ok"
        for i in range(5000):
            assert a.read() == str(i)


def the_number_of_connections_is_limited():
    small = Daemon(PROGRAM, "memory:", "--max-connections", "2")
    with small.connect() as a, small.connect() as b:
        assert a.call("PING") == b.call("PING") == "PONG"
        with small.connect() as c:
            reply = c.ends()
            assert reply == ["ERR max number of connections reached; see --max-connections"], reply
        assert a.call("PING") == "PONG"
    def is_accepted():
        try:
            with small.connect() as d:
                return d.call("PING") == "PONG"
        except Closed:
            return False
    until(is_accepted)


def a_slow_watcher_is_cut():
    slow = daemon.connect(3, receive_buffer=4096)
    before = int(re.search(r"cut_connections:(\d+)", witness.call("INFO"))[1])
    slow.ok("LOCK.WATCH", "flood/")
    slow.ok("LOCK.ACQUIRE", "bound", "w", HOUR, "BIND")
    with daemon.connect() as busy:
        token = busy.token("LOCK.ACQUIRE", "flood/k", "w", HOUR, "META", '{"a":"%s"}' % ("x" * 900))
        ends = time.monotonic() + 60
        while f"cut_connections:{before}\r" in witness.call("INFO"):
            assert time.monotonic() < ends, "it is not cut"
            busy.send(encode("LOCK.RENEW", "flood/k", token) * 100)
            for _ in range(100):
                assert pairs(busy.read())["outcome"] == "ok"
        size = int(re.search(r"buffered_bytes:(\d+)", busy.call("INFO"))[1])
        assert size < 2 << 20, size
    assert witness.call("LOCK.STATUS", "bound")["state"] == "held"
    slow.close()


def too_many_watches_are_refused():
    with daemon.connect(3) as a:
        replies = [a.call("LOCK.WATCH", f"w{i}/") for i in range(257)]
        assert all(reply["outcome"] == "ok" for reply in replies[:256]), replies[:256]
        assert isinstance(replies[256], Error) and "at most 256" in replies[256], replies[256]
        a.ok("LOCK.UNWATCH")
        a.ok("LOCK.WATCH", "w/")


# ---- sockets ----


def fails(*options, environment=None):
    """The status and stderr of a daemon that does not start."""
    result = subprocess.run([PROGRAM, "serve", "--store", "memory:", *options],
                            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                            env={**os.environ, **(environment or {})})
    return result.returncode, result.stderr


def an_explicit_socket_in_use_is_fatal():
    path = f"{folder}/used.sock"
    first = Daemon(PROGRAM, "memory:", listen="off", unix=path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    status, text = fails("--listen", "127.0.0.1:0", "--unix", path)
    assert status == 70 and f"{path}: another process listens" in text, (status, text)
    with first.connect(unix=True) as a:
        assert a.call("PING") == "PONG"
    first.kill()
    Daemon(PROGRAM, "memory:", listen="off", unix=path)  # a dead socket is replaced
    status, text = fails("--listen", "127.0.0.1:0", "--unix", "/no/such/folder/sock")
    assert status == 70 and "/no/such/folder/sock" in text, (status, text)


def the_default_socket_in_use_is_skipped():
    runtime = f"{folder}/runtime"
    os.mkdir(runtime)
    command = [PROGRAM, "serve", "--store", "memory:", "--listen", "127.0.0.1:0", "--http", "off"]
    environment = {**os.environ, "XDG_RUNTIME_DIR": runtime}
    running = []
    try:
        for _ in range(2):
            running.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment,
                                            stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        # Whichever came first has the socket.
            running[-1].stdout.readline()
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(f"{runtime}/leasehold.sock")
    finally:
        for process in running:
            process.terminate()
        logs = [process.communicate(timeout=60)[1].decode() for process in running]
    assert [process.returncode for process in running] == [0, 0], logs
    assert "socket_skipped" not in logs[0] and "socket_skipped" in logs[1], logs
    assert "leasehold.sock" in logs[1], logs


def listening_is_optional_and_ports_are_printed():
    only_unix = Daemon(PROGRAM, "memory:", listen="off", unix=f"{folder}/only.sock")
    assert only_unix.address is None
    with only_unix.connect(unix=True) as a:
        assert a.call("PING") == "PONG"
    assert only_unix.kill(15) == 0 and not os.path.exists(f"{folder}/only.sock")
    assert daemon.port > 0
    status, text = fails("--listen", "off", "--unix", "off")
    assert status == 64 and "nothing to serve on" in text, (status, text)
    status, text = fails("--listen", f"127.0.0.1:{daemon.port}", "--unix", "off")
    assert status == 70 and f":{daemon.port}" in text, (status, text)
    status, text = fails("--listen", "127.0.0.1:99999", "--unix", "off")
    assert status in (64, 70) and "99999" in text, (status, text)
    status, text = fails("--max-connections", "0")
    assert status == 64 and "--max-connections" in text, (status, text)


def the_log_has_a_line_per_class_and_second():
    """After all the cases above, and the end of the daemon."""
    lines = [json.loads(line) for line in daemon.logged().splitlines()]
    refusals = [line for line in lines if "class" in line]
    for line in refusals:
        assert list(line) == ["time", "level", "event", "class", "peer", "identity", "count",
                              "text"], line
        assert line["count"] > 0 and len(line["text"]) < 200, line
    found = {line["class"] for line in refusals}
    assert found == {"protocol_error", "bad_command", "slow_client", "limit_exceeded"}, found
    for name in found:
        times = [datetime.datetime.fromisoformat(line["time"].rstrip("Z"))
                 for line in refusals if line["class"] == name]
        pauses = [(b - a).total_seconds() for a, b in zip(times, times[1:])][:-1]  # not the last one
        assert all(pause > 0.99 for pause in pauses), (name, times)
    counted = sum(line["count"] for line in refusals
                  if line["class"] in ("protocol_error", "bad_command"))
    assert counted == refused, (counted, refused)


cases = Cases()
for function in (
        each_broken_command_ends_its_connection, byte_by_byte, empty_commands_are_ignored,
        pipes_end_too, pipes_answer_what_came_before_the_end, the_longest_key_is_valid,
        the_nearest_is_named, more_than_a_pipeline_waits, the_number_of_connections_is_limited,
        a_slow_watcher_is_cut, too_many_watches_are_refused, an_explicit_socket_in_use_is_fatal,
        the_default_socket_in_use_is_skipped, listening_is_optional_and_ports_are_printed):
    cases.run(function.__name__.replace("_", " "), function)
cases.tell(witness.call("PING") == "PONG", "the first connection lives on")
refused = int(re.search(r"refused_commands:(\d+)", witness.call("INFO"))[1])
cases.tell(daemon.kill(15) == 0, "SIGTERM ends the daemon", daemon.logged())
cases.run("the log has a line per class and second", the_log_has_a_line_per_class_and_second)
cases.finish()
