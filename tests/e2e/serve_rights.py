#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may do what with `leasehold serve --tokens`: serve_rights.py PROGRAM [OPTION...]. Prints TAP.

Every credential plays every verb on every path, and the result is compared with the two tables
below, which know nothing of the daemon's own. A verb of the daemon without a row fails. Another
face is another class of PATHS. The options are the daemon's: tests/e2e/serve_planted.sh plants
holes with them, each of which must be found here.
"""

import hashlib
import json
import os
import re
import signal
import socket
import sys

from serve_kit import Cases, Closed, Daemon, Error, encode, folder, pairs, until
from serve_web import PATHS as WEB_PATHS, Web

PROGRAM = os.path.realpath(sys.argv[1])
HOUR = 3600000

# verb | rights that it needs, for each of its keys | what its keys begin with in the store |
# arguments: {k} is a key, {l} a second one, {t} the token of the first
# Rights: "open" needs none, also before AUTH; "any" a known peer; "shown" too, but shows only keys
# that may be read.
VERBS = r"""
LOCK.ACQUIRE      | take       |            | {k} w 3600000
LOCK.ACQUIRE      | take       |            | {k} w 3600000 CACHED
LOCK.ACQUIRE      | take       |            | {k} w 3600000 WAIT 1 ID {k}
LOCK.ACQUIRE      | take+renew |            | {k} w 3600000 BIND
LOCK.ACQUIRE_ALL  | take       |            | 2 {k} {l} w 3600000
LOCK.ACQUIRE_ALL  | take       |            | 2 {l} {k} w 3600000
LOCK.ACQUIRE_ALL  | take+renew |            | 2 {k} {l} w 3600000 BIND
LOCK.CLAIM        | any        |            | label w 3600000
LOCK.CANCEL       | any        |            | some-id
LOCK.RENEW        | renew      |            | {k} {t}
LOCK.RENEW        | renew      |            | {k} {t} 3600000 BIND
LOCK.RELEASE      | renew      |            | {k} {t} COOLDOWN 3600000
LOCK.STATUS       | read       |            | {k}
LOCK.STATUS       | read       |            | {k} RAW
LOCK.STATUS       | read       |            | once:{k}
LOCK.STATUS       | read       |            | watermark:{k} RAW
LOCK.HISTORY      | read       |            | {k}
LOCK.HISTORY      | read       |            | {k} RAW
LOCK.BREAK        | operate    |            | {k} reason
LOCK.BREAK        | operate    |            | {k} reason NOW
LOCK.CLEAR        | operate    |            | {k}
LOCK.CLEAR        | operate    |            | once:{k}
LOCK.LIST         | shown      |            |
LOCK.LIST         | shown      |            | {k} RAW
LOCK.WATCH        | shown      |            |
LOCK.WATCH        | shown      |            | {k}
LOCK.UNWATCH      | any        |            |
SUBSCRIBE         | shown      |            | {k} {l}
UNSUBSCRIBE       | any        |            |
ONCE.BEGIN        | take       | once:      | {k} w 3600000 ID {k}
ONCE.RENEW        | renew      | once:      | {k} {t}
ONCE.FINISH       | renew      | once:      | {k} {t} RESULT stolen
ONCE.ABANDON      | renew      | once:      | {k} {t}
ONCE.STATUS       | read       | once:      | {k}
ONCE.MARK         | take       | once:      | {k} RESULT stolen
WATERMARK.GET     | read       | watermark: | {k}
WATERMARK.BEGIN   | read       | watermark: | {k}
WATERMARK.ADVANCE | take       | watermark: | {k} 10 20
WATERMARK.SET     | operate    | watermark: | {k} 30 reason
PING              | any        |            |
ECHO              | any        |            | text
CLIENT            | any        |            | ID
COMMAND           | any        |            | COUNT
INFO              | any        |            |
HELLO             | open       |            | 2
AUTH              | open       |            | nonsense
QUIT              | open       |            |
RESET             | open       |            |
"""

# name | how it is known | verbs | prefixes of its keys in the store
CREDENTIALS = """
none     | -      |                         |
wrong    | wrong  |                         |
reader   | secret | read                    | a: once:a: watermark:a:
taker    | secret | take                    | a: once:a: watermark:a:
renewer  | secret | renew                   | a: once:a: watermark:a:
operator | secret | operate                 | a: once:a: watermark:a:
worker   | secret | take,renew              | a:
owner    | secret | all                     | a: once:a: watermark:a:
locks    | secret | all                     | a:
ids      | secret | all                     | once:
admin    | secret | all                     | *
peer     | uid    | read,take               | a: once:a:
removed  | gone   | all                     | *
"""

OWN, OTHER, SHORT = "a:1", "b:1", "a"
KEYS = [(OWN, "a:2"), (OTHER, "b:2"), (OWN, OTHER), (SHORT, SHORT + "x")]
ALL = {"read", "take", "renew", "operate"}


class Row:
    """A line of VERBS."""

    def __init__(self, line):
        self.verb, self.needs, self.prefix, self.args = (part.strip() for part in line.split("|"))
        self.words = self.args.split()

    def keys(self, k, l):
        """The keys in the store that it names."""
        named = [word.replace("{k}", k).replace("{l}", l) for word in self.words[:3]
                 if "{k}" in word or "{l}" in word]
        return [self.prefix + key for key in (named if "{l}" in self.args else named[:1])]

    def command(self, k, l, token):
        return [self.verb] + [word.format(k=k, l=l, t=token) for word in self.words]


class Credential:
    """A line of CREDENTIALS."""

    def __init__(self, line):
        name, self.how, verbs, prefixes = (part.strip() for part in line.split("|"))
        self.name = name
        self.secret = f"secret of {name}"
        self.verbs = ALL if verbs == "all" else set(verbs.split(",")) - {""}
        self.prefixes = prefixes.split()
        self.known = self.how in ("secret", "uid")

    def line(self):
        """Of the file; "": none."""
        if self.how not in ("secret", "uid", "gone"):
            return ""
        digest = hashlib.sha256(self.secret.encode()).hexdigest()
        proof = f"uid:{os.geteuid()}" if self.how == "uid" else f"sha256:{digest}"
        return "".join(f"{self.name} {proof} {','.join(sorted(self.verbs))} {prefix}\n"
                       for prefix in self.prefixes)

    def may(self, right, key):
        return right in self.verbs and any(
            prefix == "*" or key.startswith(prefix) for prefix in self.prefixes)

    def expected(self, row, k, l):
        if row.needs == "open":
            return "answered"
        if not self.known:
            return "NOAUTH"
        if row.needs in ("any", "shown"):
            return "answered"
        allowed = all(self.may(right, key) for right in row.needs.split("+")
                      for key in row.keys(k, l))
        return "answered" if allowed else "NOPERM"


ROWS = [Row(line) for line in VERBS.strip().splitlines()]
PEOPLE = {one.name: one for one in map(Credential, CREDENTIALS.strip().splitlines())}
TOKENS = f"{folder}/tokens"


def write_tokens(*left_out):
    """As a careful administrator does it."""
    with open(os.open(TOKENS + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w",
              encoding="ascii") as file:
        file.write("# made by a test\n\n")
        file.writelines(one.line() for one in PEOPLE.values() if one.name not in left_out)
    os.rename(TOKENS + ".new", TOKENS)


write_tokens()
daemon = Daemon(PROGRAM, f"file:{folder}/locks.log", "--tokens", TOKENS, *sys.argv[2:],
                unix=f"{folder}/lock.sock", http="127.0.0.1:0")


def connect(credential, protocol=2):
    """A connection of that credential."""
    client = daemon.connect(unix=credential.how == "uid")
    if credential.how == "secret":
        assert client.call("AUTH", credential.name, credential.secret) == "OK"
    elif credential.how != "-" and credential.how != "uid":
        reply = client.call("AUTH", credential.name, credential.secret)
        assert reply == "WRONGPASS invalid username-password pair or user is disabled.", reply
    if protocol == 3:
        client.call("HELLO", 3)
    return client


admin = connect(PEOPLE["admin"])

# ---- keys that exist ----


def make(kind, key):
    """The token of a new grant of somebody else, or 1."""
    if kind == "watermark:":
        admin.ok("WATERMARK.SET", key, "10", "test")
        return "1"
    call = ("ONCE.BEGIN",) if kind == "once:" else ("LOCK.ACQUIRE",)
    return admin.token(*call, key, "holder", HOUR)


def make_all():
    return {(kind, key): make(kind, key) for kind in ("", "once:", "watermark:")
            for key in (OWN, OTHER, SHORT, "a:2", "b:2", SHORT + "x")}


tokens = make_all()


def listed():
    """All keys with what a change of others would change."""
    views, cursor = {}, None
    while True:
        reply = admin.ok("LOCK.LIST", "COUNT", 1000, *(["AFTER", cursor] if cursor else []))
        for view in map(pairs, reply["keys"]):
            views[view["key"]] = {name: view[name] for name in (
                "kind", "state", "token", "holder", "holders", "broken", "result")}
        cursor = reply["next"]
        if cursor is None:
            return views


# ---- paths: how a call reaches the daemon. ask() returns the class of each reply ----


def class_of(reply):
    if isinstance(reply, Error) and reply.split()[0] in ("NOAUTH", "NOPERM"):
        return reply.split()[0]
    return "answered"


ENDING = ("QUIT", "RESET", "HELLO", "AUTH")  # they change what follows on their connection
PUSHED = ("SUBSCRIBE", "UNSUBSCRIBE")  # with RESP3 their replies are pushes


class Alone:
    """Each call on a connection of its own."""

    name = "RESP2, one command per connection"

    def takes(self, _):
        return True

    def ask(self, credential, calls):
        found = []
        for row, command in calls:
            with connect(credential) as client:
                reply = client.call(*command)
            found.append(class_of(reply))
            if found[-1] == "answered" and row.needs not in ("open", "any"):
                # A call that fails for another reason proves nothing.
                assert not isinstance(reply, Error), (command, reply)
        return found


class InTurn:
    """All calls of a credential on one connection, each after the reply to the one before."""

    name = "RESP3, one command after another"

    def takes(self, row):
        return row.verb not in ENDING + PUSHED

    def ask(self, credential, calls):
        with connect(credential, 3) as client:
            return [class_of(client.call(*command)) for _, command in calls]


class Together(InTurn):
    """All calls of a credential in few writes, before the first reply."""

    name = "RESP3, many commands in one write"

    def ask(self, credential, calls):
        found = []
        with connect(credential, 3) as client:
            for start in range(0, len(calls), 100):  # before AUTH there is little room
                part = calls[start:start + 100]
                client.send(b"".join(encode(*command) for _, command in part))
                found += [class_of(client.read()) for _ in part]
        return found


def web(credential):
    """A connection of HTTP. A user id is of the unix socket, which has none."""
    return Web(daemon.web, None if credential.how in ("-", "uid") else credential.secret)


class ByHttp:
    """All calls of a credential on one connection of HTTP. Before each, a request of somebody who
    may do everything: the next one must not inherit its rights."""

    name = "HTTP"

    def takes(self, row):
        verbs = {*WEB_PATHS, "LOCK.ACQUIRE_ALL"}
        return row.verb in verbs and "BIND" not in row.words

    def ask(self, credential, calls):
        found = []
        with web(PEOPLE["admin"]) as client:
            for _, command in calls:
                client.secret = PEOPLE["admin"].secret
                assert client.request("GET", "/v1/locks/none")[0] == 200
                client.secret = web(credential).secret
                found.append(class_of(client.call(*command)))
        return found


PATHS = [Alone(), InTurn(), Together(), ByHttp()]


def plays_the_table(path, credential):
    calls, expected = [], []
    known = credential.known and (credential.how != "uid" or path.name != "HTTP")
    for row in ROWS:
        for k, l in KEYS if "{k}" in row.args or "{l}" in row.args else KEYS[:1]:
            if path.takes(row):
                calls.append((row, row.command(k, l, tokens[row.prefix, k])))
                expected.append(credential.expected(row, k, l) if known or row.needs == "open"
                                else "NOAUTH")
    before = listed()
    found = path.ask(credential, calls)
    wrong = [f"{' '.join(command)}: {got}, not {want}"
             for (_, command), got, want in zip(calls, found, expected) if got != want]
    assert not wrong and len(found) == len(expected), "\n" + "\n".join(wrong)
    assert len(found) > 90, found
    after = listed()  # what was refused has no effect either
    for key in set(before) | set(after):
        if not any(credential.may(right, key) for right in ALL - {"read"}):
            assert before.get(key) == after.get(key), (key, before.get(key), after.get(key))


def every_verb_has_a_row():
    admin.send(encode("COMMAND", "LIST"))
    verbs = set(admin.read())  # as a list: call() takes one of an even length for a map
    assert verbs == {row.verb for row in ROWS}, verbs ^ {row.verb for row in ROWS}


# ---- what shows keys ----


def readable(credential, keys):
    return {key for key in keys if credential.may("read", key)}


def lists_show_what_may_be_read(credential):
    keys = set(listed())
    assert readable(credential, keys) != keys or credential.name == "admin"
    for protocol in (2, 3):
        with connect(credential, protocol) as client:
            for words in ((), ("RAW",), ("b:",), ("COUNT", 1), ("once:", "COUNT", 2, "RAW")):
                seen, next_ = set(), None
                prefix = words[0] if words and words[0].endswith(":") else ""
                while True:
                    after = ("AFTER", next_) if next_ else ()
                    reply = client.ok("LOCK.LIST", *words, *after)
                    seen |= {pairs(view)["key"] for view in reply["keys"]}
                    next_ = reply["next"]
                    assert next_ is None or credential.may("read", next_), next_
                    if next_ is None:
                        break
                expected = {key for key in readable(credential, keys) if key.startswith(prefix)}
                assert seen == expected, (words, seen ^ expected)


def histories_show_what_may_be_read(credential):
    with connect(credential) as client:
        for key in (OWN, OTHER, "once:" + OWN, "once:" + OTHER, "watermark:" + OTHER):
            for words in ((), ("RAW",)):
                reply = client.call("LOCK.HISTORY", key, *words)
                if credential.may("read", key):
                    assert {pairs(view)["key"] for view in reply["changes"]} == {key}, reply
                else:
                    assert isinstance(reply, Error) and reply.startswith("NOPERM"), reply
                    assert key not in reply, reply


WATCHES = {
    "RESP3 LOCK.WATCH": (3, ("LOCK.WATCH",)),
    "RESP2 LOCK.WATCH": (2, ("LOCK.WATCH", "")),
    "RESP2 SUBSCRIBE": (2, ("SUBSCRIBE", "", "b:", "once:")),
    "RESP3 SUBSCRIBE": (3, ("SUBSCRIBE", "")),
}


def change_some(mark):
    """Changes keys of all kinds; the keys."""
    keys = [f"a:{mark}", f"b:{mark}", f"c:{mark}"]
    for key in keys:
        admin.ok("LOCK.ACQUIRE", key, "watched", HOUR)
        admin.ok("ONCE.MARK", key)
        admin.ok("WATERMARK.SET", key, "1", "test")
    return {kind + key for key in keys for kind in ("", "once:", "watermark:")}


def watches_show_what_may_be_read(credential, way, mark):
    protocol, command = WATCHES[way]
    with connect(PEOPLE["admin"], 3) as witness, connect(credential, protocol) as client:
        witness.ok("LOCK.WATCH")
        client.send(encode(*command))
        for _ in range(len(command) - 1 if command[0] == "SUBSCRIBE" else 1):
            reply = client.push()
            assert not isinstance(reply, Error), reply
        changed, told, text = change_some(mark), set(), ""
        while told < changed:
            told.add(witness.push()[2]["key"])
        client.send(encode("PING", "end-of-changes"))
        while "end-of-changes" not in (text := text + repr(client.push())):
            pass
    seen = {key for key in changed
            if re.search(rf"(?<![a-z:]){re.escape(key)}(?![0-9])", text)}
    assert seen == readable(credential, changed), seen ^ readable(credential, changed)


# ---- further paths ----


def the_web_shows_what_may_be_read(credential, mark):
    with web(credential) as client:
        status, reply = client.request("GET", "/v1/locks?count=1000")
        if client.secret is None:
            assert status == 401, (status, reply)
            return
        seen = {view["key"] for view in reply["keys"]}
        assert seen == readable(credential, set(listed())), seen
        status, _ = client.request("GET", "/metrics")
        assert status == (200 if credential.name == "admin" else 403), status
    kinds = ("", "once:", "watermark:")
    changed = {kind + f"{name}:{mark}" for name in "abc" for kind in kinds}
    seen = web_events(credential, mark)
    assert seen == readable(credential, changed), seen ^ readable(credential, changed)


def web_events(credential, mark):
    """The keys of the changes that follow."""
    with socket.create_connection(daemon.web) as stream:
        stream.sendall(f"GET /v1/watch HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
                       f"{credential.secret}\r\n\r\n".encode())
        data = b""
        while b"event: ready" not in data:
            data += stream.recv(1 << 16)
        change_some(mark)
        with connect(PEOPLE["admin"], 3) as witness:  # has what was written before
            witness.ok("LOCK.WATCH", f"z:{mark}")
            admin.ok("LOCK.ACQUIRE", f"z:{mark}", "last", HOUR)
            witness.push()
        stream.settimeout(0.3)
        try:
            while more := stream.recv(1 << 16):
                data += more
        except TimeoutError:
            pass
    lines = [line[6:] for line in data.decode().splitlines() if line.startswith('data: {"key"')]
    return {json.loads(line)["key"] for line in lines} - {f"z:{mark}"}


def a_request_without_credential_is_refused():
    with Web(daemon.web) as client:
        for path in ("/", "/openapi.json", "/metrics", "/v1/locks", "/v1/watch", "/v1/nothing"):
            status, _ = client.request("GET", path)
            assert status == 401, (path, status)
        for path in ("/healthz", "/readyz"):
            assert client.request("GET", path)[0] == 200, path
        for secret in ("nonsense", "", PEOPLE["reader"].secret + "x", "secret"):
            with Web(daemon.web, secret) as wrong:
                assert wrong.request("GET", "/v1/locks")[0] == 401, secret
        digest = hashlib.sha256(PEOPLE["admin"].secret.encode()).hexdigest()
        with Web(daemon.web, digest) as wrong:
            assert wrong.request("GET", "/v1/locks")[0] == 401
        status, _ = client.request("GET", f"/v1/locks?access_token={digest}")
        assert status == 401, status


def info_shows_the_store_to_those_who_read_all():
    for credential in PEOPLE.values():
        if credential.known:
            with connect(credential) as client:
                info = client.call("INFO")
                assert "version:" in info, info
                shown = any(word in info for word in (folder, "clients", "process_id"))
                assert shown == (credential.name == "admin"), (credential.name, info)


def request_ids_belong_to_a_name():
    with connect(PEOPLE["owner"], 3) as waiter, connect(PEOPLE["locks"]) as other:
        key = "a:waited"
        admin.ok("LOCK.ACQUIRE", key, "holder", HOUR)
        assert waiter.call("LOCK.ACQUIRE", key, "w", HOUR, "WAIT", -1, "ASYNC", "ID",
                           "job")["outcome"] == "waiting"
        for client in (other, admin):
            assert client.call("LOCK.CANCEL", "job")["outcome"] == "stale"
        assert waiter.call("LOCK.CANCEL", "job")["outcome"] == "ok"
        assert waiter.push()[2]["outcome"] == "busy"


def a_secret_needs_its_name():
    for name, good in (("reader", True), ("admin", False), ("default", True), ("nobody", False)):
        with daemon.connect() as client:
            reply = client.call("AUTH", name, PEOPLE["reader"].secret)
            assert (reply == "OK") == good, (name, reply)
            assert good or reply.startswith("WRONGPASS "), reply
            reply = client.call("HELLO", 3, "AUTH", name, PEOPLE["reader"].secret)
            assert isinstance(reply, Error) != good, (name, reply)


def a_reload_cuts_removed_credentials(old):
    def reloaded():
        return daemon.logged().count('"event":"reloaded"') > 0
    with connect(PEOPLE["reader"]) as kept:
        write_tokens("removed")
        daemon.process.send_signal(signal.SIGHUP)
        until(reloaded)
        assert kept.call("LOCK.STATUS", OWN)["outcome"] == "ok"
        try:
            reply = old.call("LOCK.STATUS", OTHER)
        except Closed:
            reply = None
        assert reply is None, reply
        admin.ok("LOCK.STATUS", OTHER)


cases = Cases()
gone = Credential("removed | secret | all | *")
connection_of_gone = connect(gone)
cases.run("every verb of the daemon has a row", every_verb_has_a_row)
cases.run("a reload cuts the connections of a removed credential",
          a_reload_cuts_removed_credentials, connection_of_gone)
for credential in PEOPLE.values():
    for path in PATHS:
        cases.run(f"{credential.name}: {path.name}", plays_the_table, path, credential)
admin = connect(PEOPLE["admin"])
for number, credential in enumerate(one for one in PEOPLE.values() if one.known):
    cases.run(f"{credential.name}: lists", lists_show_what_may_be_read, credential)
    cases.run(f"{credential.name}: histories", histories_show_what_may_be_read, credential)
    for at, way in enumerate(WATCHES):
        cases.run(f"{credential.name}: {way}", watches_show_what_may_be_read, credential, way,
                  1000 + number * 10 + at)
for number, credential in enumerate(one for one in PEOPLE.values() if one.known):
    cases.run(f"{credential.name}: lists, metrics and events by HTTP",
              the_web_shows_what_may_be_read, credential, 2000 + number)
for function in (info_shows_the_store_to_those_who_read_all, request_ids_belong_to_a_name,
                 a_secret_needs_its_name, a_request_without_credential_is_refused):
    cases.run(function.__name__.replace("_", " "), function)
log = daemon.logged()
cases.tell("secret of" not in log and "b:1" not in log, "the log has neither secrets nor keys", log)
cases.tell(daemon.kill(15) == 0, "SIGTERM ends the daemon", daemon.logged())
cases.finish()
