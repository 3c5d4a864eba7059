# SPDX-License-Identifier: Apache-2.0
"""A client of HTTP/1.1 for the tests of `leasehold serve`: it sends any bytes, reads responses and
server-sent events, and checks the form of all that it reads.
"""

import json
import re
import select
import socket
import time

from serve_kit import WAIT_S, Closed

FORM = re.compile(rb"HTTP/1\.1 (\d{3}) ([A-Za-z ]+)\Z")


class Response:
    """A status, fields by their names in lower case, and a body."""

    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body
        self.closes = fields.get("connection") == "close"

    @property
    def json(self):
        assert self.fields["content-type"] == "application/json", self.fields
        value = json.loads(self.body)
        assert isinstance(value, dict) and (not self.body or "\n" not in self.body.decode()), value
        return value

    @property
    def text(self):
        return self.json["text"]

    def __repr__(self):
        return f"{self.status} {self.fields} {self.body[:300]!r}"


class Http:
    """One connection."""

    def __init__(self, address, receive_buffer=None):
        self.socket = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(WAIT_S)
        self.socket.connect(address)
        self.data = b""

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, data):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Closed() from error

    def trickle(self, data):
        """Byte by byte, as far as the daemon reads."""
        try:
            for at in range(len(data)):
                self.socket.sendall(data[at:at + 1])
        except (BrokenPipeError, ConnectionResetError):
            pass

    def fill(self, ends):
        if not select.select([self.socket], [], [], max(0, ends - time.monotonic()))[0]:
            raise TimeoutError(f"no response; {self.data[:300]!r}")
        try:
            more = self.socket.recv(1 << 16)
        except ConnectionResetError as error:
            raise Closed() from error
        if not more:
            raise Closed()
        self.data += more

    def take(self, length, ends):
        while len(self.data) < length:
            self.fill(ends)
        taken, self.data = self.data[:length], self.data[length:]
        return taken

    def until(self, mark, ends):
        """What is before the mark, which is taken too."""
        while (at := self.data.find(mark)) < 0:
            self.fill(ends)
        taken, self.data = self.data[:at], self.data[at + len(mark):]
        return taken

    def head(self, timeout=WAIT_S):
        """The status and the fields of a response."""
        lines = self.until(b"\r\n\r\n", time.monotonic() + timeout).split(b"\r\n")
        first = FORM.match(lines[0])
        assert first, lines
        fields = {}
        for line in lines[1:]:
            name, value = line.decode("ascii").split(": ", 1)
            assert name.lower() not in fields, lines
            fields[name.lower()] = value
        return int(first[1]), fields

    def read(self, method="GET", timeout=WAIT_S):
        """The next final response."""
        status, fields = self.head(timeout)
        assert status >= 200, status
        assert fields["x-content-type-options"] == "nosniff", fields
        assert fields["cache-control"] == "no-store", fields
        assert "set-cookie" not in fields and "access-control-allow-origin" not in fields, fields
        length = int(fields["content-length"])
        body = self.take(length if method != "HEAD" else 0, time.monotonic() + timeout)
        response = Response(status, fields, body)
        if status >= 400 and method != "HEAD":
            outcome = response.json["outcome"]
            assert response.text.startswith(f"{outcome}: "), response
        return response

    def call(self, method, path, body=None, timeout=WAIT_S, **fields):
        """Sends a request, a body as JSON; its response."""
        self.send(request(method, path, body, **fields))
        return self.read(method, timeout)

    def ends(self, timeout=WAIT_S):
        """Reads to the end of the connection; what came before it."""
        ends = time.monotonic() + timeout
        try:
            while True:
                self.fill(ends)
        except Closed:
            return self.data

    def quiet(self, seconds):
        """True if nothing arrives for so long."""
        return not self.data and not select.select([self.socket], [], [], seconds)[0]


def request(method, path, body=None, version="1.1", **fields):
    """The bytes of a request; `Content_Type="x"` is the field Content-Type, None leaves it out."""
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    head = {"Host": "localhost"}
    if body is not None:
        head.update({"Content-Type": "application/json", "Content-Length": len(data)})
    head.update({name.replace("_", "-"): value for name, value in fields.items()})
    lines = [f"{method} {path} HTTP/{version}"]
    lines += [f"{name}: {value}" for name, value in head.items() if value is not None]
    return "\r\n".join(lines + ["", ""]).encode() + data


class Event:
    def __init__(self, text):
        lines = dict(line.split(": ", 1) for line in text.split("\n"))
        assert list(lines) == ["id", "event", "data"], text
        self.id, self.name, self.data = lines["id"], lines["event"], json.loads(lines["data"])
        self.instance, number = re.fullmatch(r"([0-9a-f]{16})-(\d+)", self.id).groups()
        self.number = int(number)

    def __repr__(self):
        return f"{self.name} {self.id} {self.data}"


class Stream(Http):
    """GET /v1/watch. Comments are counted, not returned."""

    def __init__(self, address, prefix=None, last=None, receive_buffer=None):
        super().__init__(address, receive_buffer)
        self.comments = 0
        path = "/v1/watch" + (f"?prefix={prefix}" if prefix is not None else "")
        self.send(request("GET", path, Last_Event_ID=last))
        status, fields = self.head()
        assert status == 200 and fields["content-type"] == "text/event-stream", (status, fields)
        assert fields["cache-control"] == "no-store" and "content-length" not in fields, fields
        self.ready = self.event()
        assert self.ready.name == "ready", self.ready

    def event(self, timeout=WAIT_S):
        ends = time.monotonic() + timeout
        while True:
            text = self.until(b"\n\n", ends).decode()
            if not text.startswith(":"):
                return Event(text)
            self.comments += 1

    def events(self, count):
        return [self.event() for _ in range(count)]
