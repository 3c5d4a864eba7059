# SPDX-License-Identifier: Apache-2.0
"""A RESP client for tests: one connection, replies as Python values, maps as dictionaries.

Must not retry and must not reconnect: the caller decides what an unanswered command means.
"""

import socket
import time


class Lost(Exception):
    """The connection ended, or the reply did not come in time: the result is unknown."""


class More(Exception):
    """The buffer ends within a reply."""


def now_ms():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) / 1e6


def parse(buffer, at):
    """The reply at that offset, and the offset behind it."""
    end = buffer.find(b"\r\n", at)
    if end < 0:
        raise More
    kind, text = buffer[at:at + 1], bytes(buffer[at + 1:end]).decode()
    at = end + 2
    if kind in b"+-:,(":
        return (int(text) if kind == b":" else "-" + text if kind == b"-" else text), at
    if kind == b"_":
        return None, at
    if kind == b"#":
        return text == "t", at
    count = int(text)
    if count < 0:
        return None, at
    if kind in b"$=":
        if len(buffer) < at + count + 2:
            raise More
        return bytes(buffer[at:at + count]).decode(), at + count + 2
    items = []
    for _ in range(count * 2 if kind == b"%" else count):
        item, at = parse(buffer, at)
        items.append(item)
    if kind == b"%":
        return dict(zip(items[::2], items[1::2])), at
    return (("push", items) if kind == b">" else items), at


def encode(words):
    words = [str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


class Connection:
    """A reply that is a flat list of pairs, as RESP2 writes maps, becomes a dictionary too."""

    def __init__(self, port, timeout_ms=10000, source=None):
        self.buffer, self.pushes = bytearray(), []
        try:
            self.socket = socket.create_connection(("127.0.0.1", port), timeout_ms / 1000,
                                                   (source, 0) if source else None)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            raise Lost(str(error)) from error

    def close(self):
        self.socket.close()

    def send(self, *words):
        try:
            self.socket.sendall(encode(words))
        except OSError as error:
            raise Lost(str(error)) from error

    def next_value(self, until_ms):
        while True:
            try:
                value, used = parse(self.buffer, 0)
                del self.buffer[:used]
                return value
            except More:
                pass
            try:
                self.socket.settimeout(max(0.001, (until_ms - now_ms()) / 1000))
                received = self.socket.recv(65536)
            except OSError as error:
                raise Lost(str(error)) from error
            if not received:
                raise Lost("the daemon closed the connection")
            self.buffer += received

    def reply(self, timeout_ms=10000):
        until_ms = now_ms() + timeout_ms
        while True:
            value = self.next_value(until_ms)
            if isinstance(value, tuple):
                self.pushes.append(value[1])
                continue
            if isinstance(value, list) and len(value) % 2 == 0 and value and value[0] in (
                    "outcome", "key"):
                return dict(zip(value[::2], value[1::2]))
            return value

    def call(self, *words, timeout_ms=10000):
        self.send(*words)
        return self.reply(timeout_ms)

    def push(self, timeout_ms):
        """The next push; None: none came."""
        if self.pushes:
            return self.pushes.pop(0)
        try:
            value = self.next_value(now_ms() + timeout_ms)
        except Lost:
            return None
        return value[1] if isinstance(value, tuple) else None
