# SPDX-License-Identifier: Apache-2.0
"""A client of the daemon's HTTP face that takes the words of RESP commands, so that one table of
commands is played by both protocols. It knows paths and fields by its own table, and checks that
the status of a response is the one of its outcome.
"""

import http.client
import json
import urllib.parse

from serve_kit import WAIT_S, Error

STATUSES = {"ok": 200, "done": 200, "usage": 400, "denied": 403, "busy": 409, "lost": 410,
            "stale": 412, "mismatch": 422, "cooling": 423, "failed": 500, "unavailable": 503}
# verb: method, path, positional arguments behind the key
PATHS = {
    "LOCK.ACQUIRE": ("POST", "/v1/locks/{}/acquire", "holder ttl_ms"),
    "LOCK.RENEW": ("POST", "/v1/locks/{}/renew", "token ttl_ms"),
    "LOCK.RELEASE": ("POST", "/v1/locks/{}/release", "token"),
    "LOCK.STATUS": ("GET", "/v1/locks/{}", ""),
    "LOCK.LIST": ("GET", "/v1/locks", "prefix"),
    "LOCK.HISTORY": ("GET", "/v1/locks/{}/history", ""),
    "LOCK.BREAK": ("POST", "/v1/locks/{}/break", "reason"),
    "LOCK.CLEAR": ("POST", "/v1/locks/{}/clear", ""),
    "ONCE.BEGIN": ("POST", "/v1/once/{}/begin", "holder ttl_ms"),
    "ONCE.RENEW": ("POST", "/v1/once/{}/renew", "token ttl_ms"),
    "ONCE.FINISH": ("POST", "/v1/once/{}/finish", "token"),
    "ONCE.ABANDON": ("POST", "/v1/once/{}/abandon", "token"),
    "ONCE.MARK": ("POST", "/v1/once/{}/mark", ""),
    "ONCE.STATUS": ("GET", "/v1/once/{}", ""),
    "WATERMARK.GET": ("GET", "/v1/watermarks/{}", ""),
    "WATERMARK.BEGIN": ("POST", "/v1/watermarks/{}/begin", ""),
    "WATERMARK.ADVANCE": ("PUT", "/v1/watermarks/{}", "expected value"),
    "WATERMARK.SET": ("PUT", "/v1/watermarks/{}", "value reason"),
}
FIELDS = {"WAIT": "wait_ms", "LIMIT": "limit", "PRIORITY": "priority", "COOLDOWN": "cooldown_ms",
          "LOCKDELAY": "lock_delay_ms", "META": "meta", "ID": "request_id", "AFTER": "after",
          "COUNT": "count", "PAYLOAD": "payload", "KEEP": "keep_ms", "STATUS": "status",
          "RESULT": "result", "OVERLAP": "overlap_ms"}
FLAGS = {"SHARED": "shared", "CACHED": "cached", "RAW": "raw", "NOW": "now"}
NUMBERS = {"ttl_ms", "wait_ms", "limit", "priority", "cooldown_ms", "lock_delay_ms", "count",
           "keep_ms", "status", "overlap_ms"}


class Web:
    """One keep-alive connection."""

    def __init__(self, address, secret=None, tls=None):
        kind = http.client.HTTPSConnection if tls else http.client.HTTPConnection
        self.connection = kind(*address, timeout=WAIT_S, **({"context": tls} if tls else {}))
        self.secret = secret

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def request(self, method, path, body=None, **fields):
        """The status and the body, as JSON if it is JSON."""
        if body is not None:
            fields.setdefault("Content-Type", "application/json")
            body = body if isinstance(body, (str, bytes)) else json.dumps(body)
        if self.secret is not None:
            fields["Authorization"] = f"Bearer {self.secret}"
        self.connection.request(method, path, body, fields)
        response = self.connection.getresponse()
        data, self.response = response.read(), response
        if response.getheader("Content-Type") == "application/json":
            return response.status, json.loads(data)
        return response.status, data.decode()

    @staticmethod
    def value(name, text):
        if name == "meta":
            try:
                return json.loads(text)
            except ValueError:
                return text
        if name in NUMBERS:
            try:
                return int(text)
            except ValueError:
                return text
        return text

    def send(self, words):
        """Sends the command; the status and the body."""
        verb, rest, members = words[0].upper(), list(words[1:]), {}
        if verb == "LOCK.ACQUIRE_ALL":
            count = int(rest.pop(0))
            members["keys"] = [rest.pop(0) for _ in range(count)]
            method, path, names = "POST", "/v1/acquire", "holder ttl_ms"
        else:
            method, path, names = PATHS[verb]
        if "{}" in path:
            path = path.format(urllib.parse.quote(rest.pop(0), safe=""))
        for name in names.split():
            if rest and rest[0].upper() not in {*FIELDS, *FLAGS}:
                members[name] = self.value(name, rest.pop(0))
        while rest:
            word = rest.pop(0).upper()
            if word in FLAGS:
                members[FLAGS[word]] = True
            else:
                members[FIELDS[word]] = self.value(FIELDS[word], rest.pop(0))
        if method == "GET":
            members = {name: str(value).lower() if value is True else value
                       for name, value in members.items()}
            query = urllib.parse.urlencode(members, quote_via=urllib.parse.quote)
            return self.request(method, path + ("?" + query if query else ""))
        return self.request(method, path, members)

    def call(self, *words):
        """As Client.call(): the map, or an error."""
        status, reply = self.send(words)
        assert STATUSES[reply["outcome"]] == status or (
            status, reply["outcome"]) == (401, "denied"), (words, status, reply)
        if reply["outcome"] == "usage":
            assert reply["text"].startswith("usage: "), reply
            return Error("ERR " + reply["text"][len("usage: "):])
        if status == 401:
            return Error("NOAUTH " + reply["text"])
        if reply["outcome"] == "denied" and "token" not in reply:
            return Error("NOPERM " + reply["text"])
        return reply
