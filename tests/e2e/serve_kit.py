# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of `leasehold serve`: a client of RESP2 and RESP3 over sockets and pipes,
daemons that end with the test, and cases in TAP. A wait ends after WAIT_S: a slow machine is no
failure.
"""

import atexit
import collections
import os
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

WAIT_S = 60


class Closed(Exception):
    """The daemon has ended the connection."""


class Push(list):
    """An out-of-band message of RESP3."""


class Error(str):
    """An error reply, such as "ERR unknown command"."""


def encode(*args):
    parts = [b"*%d\r\n" % len(args)]
    for arg in args:
        data = arg if isinstance(arg, bytes) else str(arg).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(parts)


def pairs(value):
    """A map: RESP2 has lists of names and values instead."""
    if isinstance(value, list) and not isinstance(value, Push) and len(value) % 2 == 0 and all(
            isinstance(name, str) for name in value[::2]):
        return dict(zip(value[::2], value[1::2]))
    return value


class Client:
    """One connection. call() returns the reply; pushes before it are kept in `pushes`."""

    def __init__(self, read_file, write_file, protocol=2, owner=None):
        self.read_file, self.write_file, self.owner = read_file, write_file, owner
        self.data, self.at = b"", 0
        self.pushes = collections.deque()
        if protocol == 3:
            hello = self.call("HELLO", 3)
            assert hello["proto"] == 3, hello

    def close(self):
        for file in {self.read_file, self.write_file}:
            os.close(file)
        self.read_file = self.write_file = None
        if self.owner is not None:
            self.owner.ended()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.read_file is not None:
            self.close()

    def send(self, data):
        while data:
            try:
                data = data[os.write(self.write_file, data):]
            except (BrokenPipeError, ConnectionResetError) as error:
                raise Closed() from error

    def fill(self, timeout):
        if not select.select([self.read_file], [], [], timeout)[0]:
            raise TimeoutError(f"no reply within {timeout} s")
        try:
            more = os.read(self.read_file, 1 << 16)
        except ConnectionResetError as error:
            raise Closed() from error
        if not more:
            raise Closed()
        self.data, self.at = self.data[self.at:] + more, 0

    def line(self, ends):
        while (end := self.data.find(b"\r\n", self.at)) < 0:
            self.fill(ends - time.monotonic() if ends > time.monotonic() else 0)
        text, self.at = self.data[self.at:end], end + 2
        return text

    def bulk(self, length, ends):
        while len(self.data) < self.at + length + 2:
            self.fill(max(0, ends - time.monotonic()))
        text = self.data[self.at:self.at + length]
        self.at += length + 2
        return text.decode("utf-8", "surrogateescape")

    def value(self, ends):
        line = self.line(ends).decode()
        kind, rest = line[0], line[1:]
        if kind == "+":
            return rest
        if kind == "-":
            return Error(rest)
        if kind == ":":
            return int(rest)
        if kind == "_":
            return None
        if kind == "#":
            return rest == "t"
        if kind == "$":
            return None if rest == "-1" else self.bulk(int(rest), ends)
        if kind == "%":
            return {self.value(ends): self.value(ends) for _ in range(int(rest))}
        assert kind in "*>", line
        items = [self.value(ends) for _ in range(int(rest))]
        return Push(items) if kind == ">" else items

    def read(self, timeout=WAIT_S):
        """The next reply."""
        ends = time.monotonic() + timeout
        while isinstance(value := self.value(ends), Push):
            self.pushes.append(value)
        return value

    def push(self, timeout=WAIT_S):
        """The next push, or with RESP2 the next message."""
        return self.pushes.popleft() if self.pushes else self.value(time.monotonic() + timeout)

    def quiet(self, seconds):
        """True if nothing arrives for so long."""
        return self.at == len(self.data) and not select.select([self.read_file], [], [], seconds)[0]

    def call(self, *args, timeout=WAIT_S):
        self.send(encode(*args))
        value = self.read(timeout)
        return pairs(value)

    def ok(self, *args):
        """The map of a call whose outcome must be ok."""
        reply = self.call(*args)
        assert isinstance(reply, dict) and reply.get("outcome") == "ok", (args, reply)
        return reply

    def token(self, *args):
        return self.ok(*args)["token"]

    def ends(self, timeout=WAIT_S):
        """Reads to the end of the connection; what was read."""
        values = []
        try:
            while True:
                values.append(self.value(time.monotonic() + timeout))
        except Closed:
            return values


class Daemon:
    """`leasehold serve` on a port of its own, on a unix socket, or on pipes."""

    def __init__(self, program, store, *options, listen="127.0.0.1:0", unix="off", http="off",
                 wait=True):
        self.log = tempfile.TemporaryFile()
        command = [program, "serve", "--store", store, "--listen", listen, "--unix", unix, "--http",
                   http]
        self.process = subprocess.Popen(command + list(options), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=self.log)
        daemons.append(self)
        self.address = self.path = self.web = None
        expected = (listen != "off") + (unix != "off") + (http != "off")
        for _ in range(expected if wait else 0):
            line = self.process.stdout.readline().decode()
            assert line.startswith("listening on "), (line, self.logged())
            name = line[len("listening on "):].strip()
            if name.startswith("/") or name.startswith("unix"):
                self.path = name.split(":", 1)[-1]
            elif name.startswith("http"):
                self.web = ("127.0.0.1", int(name.rsplit(":", 1)[1]))
            else:
                self.address = ("127.0.0.1", int(name.rsplit(":", 1)[1]))

    @property
    def port(self):
        return self.address[1]

    def logged(self):
        self.log.seek(0)
        return self.log.read().decode()

    def connect(self, protocol=2, receive_buffer=None, unix=False):
        one = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
        if receive_buffer is not None:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        one.connect(self.path if unix else self.address)
        file = one.detach()
        return Client(file, file, protocol)

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        return self.process.wait(WAIT_S)

    def end(self):
        if self.process.poll() is None:
            self.kill()
        if self.process.stdout is not None:
            self.process.stdout.close()


class Pipes:
    """`leasehold serve --stdio`: ends with its one connection."""

    def __init__(self, program, store):
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([program, "serve", "--store", store, "--stdio"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log)
        daemons.append(self)

    def connect(self, protocol=2):
        read_file, write_file = os.dup(self.process.stdout.fileno()), os.dup(
            self.process.stdin.fileno())
        self.process.stdin.close()
        self.process.stdout.close()
        return Client(read_file, write_file, protocol, owner=self)

    def ended(self):
        status = self.process.wait(WAIT_S)
        assert status == 0, f"exit status {status}"

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


daemons = []
folder = tempfile.mkdtemp()


@atexit.register
def clean_up():
    for one in daemons:
        one.end()
    shutil.rmtree(folder, ignore_errors=True)


signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def until(condition, timeout=WAIT_S):
    """Waits for a condition; what it returned."""
    ends = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > ends:
            raise TimeoutError(f"{condition.__name__}: not within {timeout} s")
        time.sleep(0.02)
    return value


def waiters(client, key, count):
    """Waits until the daemon has so many waiters; the key is for the reader."""
    def counted():
        return int(re.search(r"blocked_clients:(\d+)", client.call("INFO"))[1]) == count
    until(counted)
    return client.call("LOCK.STATUS", key)


def stop(pid):
    """All its threads: a signal takes a moment."""
    os.kill(pid, signal.SIGSTOP)
    def stopped():
        files = [f"/proc/{pid}/task/{task}/stat" for task in os.listdir(f"/proc/{pid}/task")]
        return all(") T " in open(file).read() for file in files)
    until(stopped)


class Redis:
    """A server of its own, which can be stopped, killed and started again."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(dir=folder)
        for _ in range(20):  # until its port is free
            self.port = random.randrange(10000, 30000)
            if self.start():
                break
        self.url = f"redis://127.0.0.1:{self.port}"
        daemons.append(self)

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
             "--dir", self.folder, "--appendonly", "yes"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return until(lambda: self.process.poll() is not None or self.cli("PING") == "PONG") and \
            self.process.poll() is None

    def cli(self, *args):
        return subprocess.run(["redis-cli", "-p", str(self.port), *args], capture_output=True,
                              text=True).stdout.strip()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        stop(self.process.pid)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    end = kill


class Cases:
    """Numbered cases; a case is a function that raises when it fails."""

    def __init__(self):
        self.number = self.wrong = 0

    def tell(self, good, name, why=""):
        self.number += 1
        print(f"{'ok' if good else 'not ok'} {self.number} - {name}", flush=True)
        if not good:
            self.wrong += 1
            for line in why.splitlines():
                print(f"# {line}", flush=True)

    def run(self, name, function, *args):
        try:
            function(*args)
        except Exception:  # every failure is a failed case
            self.tell(False, name, traceback.format_exc())
        else:
            self.tell(True, name)

    def finish(self):
        print(f"1..{self.number}")
        sys.exit(self.wrong != 0)
