#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every verb of the daemon with every outcome: serve_verbs.py STORE PROGRAM

One table of rows, played with RESP2 and RESP3 over TCP, a unix socket and pipes (--stdio), and by
HTTP except for what only RESP has. A row is
    outcome | pattern | command ; command …
The last command is judged. Its outcome is that of the reply's map; "ERR" and other codes are
errors; "=" is a reply without outcome. The pattern is of the text or the error, otherwise of the
reply as Python shows it. "~" begins the keys of one pass, so that passes do not meet; {name} is the
token of a fixture, {1} that of the row's first command. STORE "file:" is a folder of its own.
Prints TAP.
"""

import os
import re
import shlex
import sys

from serve_kit import Cases, Daemon, Error, Pipes, encode, folder
from serve_web import FIELDS, PATHS, Web

FIXTURES = """
held      | LOCK.ACQUIRE ~held wfe-7 3600000
kept      | LOCK.ACQUIRE ~kept wfe-7 3600000
old       | LOCK.ACQUIRE ~changed wfe-7 3600000
-         | LOCK.RELEASE ~changed {old}
-         | LOCK.ACQUIRE ~changed wfe-7 3600000
cool      | LOCK.ACQUIRE ~cool wfe-7 3600000
-         | LOCK.RELEASE ~cool {cool} COOLDOWN 3600000
pool      | LOCK.ACQUIRE ~pool wfe-7 3600000 LIMIT 2
readers   | LOCK.ACQUIRE ~readers wfe-7 3600000 SHARED
asked     | LOCK.ACQUIRE ~asked wfe-7 3600000
claimed   | ONCE.BEGIN ~claimed wfe-7 3600000
overdue   | ONCE.BEGIN ~overdue wfe-7 3600000 PAYLOAD ab12
-         | ONCE.ABANDON ~overdue {overdue}
overdue2  | ONCE.BEGIN ~overdue wfe-7 3600000 PAYLOAD ab12
finished  | ONCE.BEGIN ~finished wfe-7 3600000
-         | ONCE.FINISH ~finished {finished} RESULT "all well"
failed    | ONCE.BEGIN ~failed wfe-7 3600000
-         | ONCE.FINISH ~failed {failed} STATUS 7 KEEP 3600000
-         | ONCE.MARK ~marked
-         | WATERMARK.SET ~level 7 test
-         | WATERMARK.SET ~moved 4 test
-         | WATERMARK.ADVANCE ~moved 4 5 ID ~r1
"""

ROWS = r"""
ok       | ^ok: granted                        | LOCK.ACQUIRE ~free wfe-7 3600000
ok       | ^ok: granted                        | lock.acquire ~lower wfe-7 3600000 limit 3
ok       | ^ok: granted                        | LOCK.ACQUIRE ~readers other 3600000 SHARED
ok       | ^ok: granted                        | LOCK.ACQUIRE ~pool other 3600000 LIMIT 2
ok | granted | LOCK.ACQUIRE ~words w 60000 COOLDOWN 1 LOCKDELAY 1 PRIORITY -5 META {} ID ~i
ok       | ^ok: granted                        | LOCK.ACQUIRE ~waits w 60000 WAIT 5000
ok       | ^ok: granted                        | LOCK.ACQUIRE ~forever w 60000 WAIT -1
ok       | ^ok: granted                        | LOCK.ACQUIRE ~copy w 60000 CACHED
ok       | ^ok: granted                        | LOCK.ACQUIRE "~with a space" "host 1" 60000
busy     | held by wfe-7 for .*lease ends in   | LOCK.ACQUIRE ~held other 60000
busy     | not granted within the wait         | LOCK.ACQUIRE ~held other 60000 WAIT 100
busy     | held by wfe-7                       | LOCK.ACQUIRE ~held wfe-7 60000
busy     | held by                             | LOCK.ACQUIRE ~readers other 60000
busy     | held by wfe-7                       | LOCK.ACQUIRE ~held other 60000 SHARED CACHED
cooling  | ~cool was done by wfe-7 .* free in  | LOCK.ACQUIRE ~cool other 60000
cooling  | ~cool was done by wfe-7             | LOCK.ACQUIRE ~cool other 60000 CACHED
mismatch | another limit                       | LOCK.ACQUIRE ~pool other 60000 LIMIT 3
mismatch | another limit                       | LOCK.ACQUIRE ~held other 60000 LIMIT 3
ERR      | give a limit or shared, not both    | LOCK.ACQUIRE ~k w 60000 LIMIT 2 SHARED
ERR      | wrong number of arguments; usage: LOCK.ACQUIRE key holder ttl_ms | LOCK.ACQUIRE ~k w
ERR      | ttl_ms must be a number             | LOCK.ACQUIRE ~k w 0
ERR      | ttl_ms must be a number             | LOCK.ACQUIRE ~k w -5
ERR      | ttl_ms must be a number             | LOCK.ACQUIRE ~k w 99999999999999999999
ERR      | the TTL of 1 ms is below            | LOCK.ACQUIRE ~k w 1
ERR      | ERR .*                              | LOCK.ACQUIRE ~k w 9000000000000
ERR      | the key must be 1 to 512 bytes      | LOCK.ACQUIRE "" w 60000
ERR      | holder                              | LOCK.ACQUIRE ~k LONG200 60000
ERR      | LIMIT needs a number from 1 to 64   | LOCK.ACQUIRE ~k w 60000 LIMIT 0
ERR      | LIMIT needs a value                 | LOCK.ACQUIRE ~k w 60000 LIMIT
ERR      | LIMIT is given twice                | LOCK.ACQUIRE ~k w 60000 LIMIT 2 LIMIT 2
ERR      | PRIORITY needs a number from -100   | LOCK.ACQUIRE ~k w 60000 PRIORITY 101
ERR      | unknown word 'WIAT'; did you mean WAIT\?; usage | LOCK.ACQUIRE ~k w 60000 WIAT 5
ERR      | unknown word 'NOW'                  | LOCK.ACQUIRE ~k w 60000 NOW
ERR      | META needs a JSON object            | LOCK.ACQUIRE ~k w 60000 META {
ERR      | META needs a JSON object            | LOCK.ACQUIRE ~k w 60000 META '{"a":1}'
ERR      | ID must have 1 to 256 bytes         | LOCK.ACQUIRE ~k w 60000 ID ""
ERR      | ASYNC needs WAIT                    | LOCK.ACQUIRE ~k w 60000 ASYNC
ERR      | ASYNC needs (ID\|RESP3)             | LOCK.ACQUIRE ~k w 60000 WAIT 5 ASYNC
ok       | 'tokens': .*~one.*~two              | LOCK.ACQUIRE_ALL 2 ~one ~two w 60000
ok       | ^ok: granted                        | LOCK.ACQUIRE_ALL 1 ~alone w 60000 WAIT 5000 ID ~all
busy     | ~held is held by wfe-7              | LOCK.ACQUIRE_ALL 2 ~aside ~held w 60000
ok | 'state': 'free' | LOCK.ACQUIRE_ALL 2 ~aside ~held w 60000 WAIT 50 ; LOCK.STATUS ~aside
cooling  | ~cool was done by                   | LOCK.ACQUIRE_ALL 2 ~aside ~cool w 60000
ERR      | named twice                         | LOCK.ACQUIRE_ALL 2 ~k ~k w 60000
ERR      | wrong number of arguments           | LOCK.ACQUIRE_ALL 5 ~k ~l w 60000
ERR      | ERR                                 | LOCK.ACQUIRE_ALL 0 w 60000 ID x
ERR      | ERR                                 | LOCK.ACQUIRE_ALL x ~k w 60000
ERR | ERR | LOCK.ACQUIRE_ALL 17 a b c d e f g h i j k l m n o p q w 60000
stale    | nothing waits under this request id | LOCK.CANCEL ~nothing
ERR      | LOCK.CLAIM needs a github:// store  | LOCK.CLAIM ready w 60000 WAIT 5 ORDER number
ERR      | usage: LOCK.CLAIM label holder      | LOCK.CLAIM ready w
ok       | ^ok: ~kept                          | LOCK.RENEW ~kept {kept} 3600000
ok       | 'ends_in_ms': 3600000               | LOCK.RENEW ~kept {kept}
stale    | nothing was changed                 | LOCK.RENEW ~changed {old}
stale    | nothing was changed                 | LOCK.RENEW ~never-was 5
stale    | nothing was changed                 | LOCK.RENEW ~cool {cool}
ERR      | token must be a number above 0      | LOCK.RENEW ~kept 0
ERR      | token must be a number above 0      | LOCK.RENEW ~kept 5e3
ERR      | token must be a number above 0      | LOCK.RENEW ~kept 99999999999999999999
ERR      | ttl_ms must be a number             | LOCK.RENEW ~kept {kept} soon
ERR      | the TTL of 1 ms is below            | LOCK.RENEW ~kept {kept} 1
ok       | ^ok: ~mine                          | LOCK.ACQUIRE ~mine w 60000 ; LOCK.RELEASE ~mine {1}
stale | nothing was changed | LOCK.ACQUIRE ~t w 9999 ; LOCK.RELEASE ~t {1} ; LOCK.RELEASE ~t {1}
cooling | free | LOCK.ACQUIRE ~c w 9999 ; LOCK.RELEASE ~c {1} COOLDOWN 9999 ; LOCK.ACQUIRE ~c w 9999
stale    | nothing was changed                 | LOCK.RELEASE ~changed {old}
stale    | nothing was changed                 | LOCK.RELEASE ~never-was 5
ERR      | token must be a number above 0      | LOCK.RELEASE ~kept -1
ERR      | usage: LOCK.RELEASE key token       | LOCK.RELEASE ~kept
ok | 'key': '~held'.*'state': 'held'.*'holder': 'wfe-7'.*'ends_in_ms': [0-9] | LOCK.STATUS ~held
ok       | 'state': 'free'.*'token': None      | LOCK.STATUS ~nobody-wants-it
ok       | 'state': 'cooling'.*'holder': 'wfe-7' | LOCK.STATUS ~cool
ok       | 'state': 'held'.*'holders': [12].*'limit': 2 | LOCK.STATUS ~pool
ok       | 'state': 'held'.*'shared': (True\|1) | LOCK.STATUS ~readers
ok       | 'kind': 'once', 'state': 'held'     | LOCK.STATUS once:~claimed
ok       | 'kind': 'once', .*'result': 'all well' | LOCK.STATUS once:~finished
ok       | 'kind': 'watermark', .*'result': '7' | LOCK.STATUS watermark:~level
ok       | 'record': '\{"leasehold":1,         | LOCK.STATUS ~held RAW
ERR      | unknown word 'ROW'; did you mean RAW | LOCK.STATUS ~held ROW
ok       | 'next': None, 'keys': .*'~held'     | LOCK.LIST ~hel
ok       | 'keys': \[\]                        | LOCK.LIST ~there-are-none/
ok       | 'next': '~[^']+', 'keys': \[[^ ]+ '~[^ ]+ | LOCK.LIST ~ COUNT 2
ok       | 'record'[:,] '\{                    | LOCK.LIST ~held RAW COUNT 1000
ERR      | COUNT needs a number from 1 to 1000 | LOCK.LIST ~ COUNT 1001
ERR      | the cursor is not one of ours       | LOCK.LIST ~ AFTER LONG600
ok       | ~quiet: nobody holds it             | LOCK.BREAK ~quiet "none held it"
ok       | ~cool: nobody holds it              | LOCK.BREAK ~cool test
ok       | asked wfe-7 to stop; held until     | LOCK.BREAK ~asked test
stale    | ~asked: broken by an operator       | LOCK.RENEW ~asked {asked}
ok | taken from w; only tokens keep | LOCK.ACQUIRE ~freed w 60000 ; LOCK.BREAK ~freed test NOW
stale | nothing was changed | LOCK.ACQUIRE ~f w 60000 ; LOCK.BREAK ~f x NOW ; LOCK.RENEW ~f {1}
ERR      | usage: LOCK.BREAK key reason        | LOCK.BREAK ~held
ok       | it is not cooling                   | LOCK.CLEAR ~quiet
ok | ^ok: ~d$ | LOCK.ACQUIRE ~d w 9999 ; LOCK.RELEASE ~d {1} COOLDOWN 60000 ; LOCK.CLEAR ~d
ok       | it is not cooling                   | LOCK.CLEAR ~held
ERR      | usage: LOCK.CLEAR key               | LOCK.CLEAR
ok       | ^ok: granted                        | ONCE.BEGIN ~new w 3600000
ok       | 'holder': 'w', .*'ends_in_ms': 3600000 | ONCE.BEGIN ~new2 w 3600000 PAYLOAD AB
busy     | held by wfe-7                       | ONCE.BEGIN ~claimed w 60000
busy     | held by wfe-7                       | ONCE.BEGIN ~overdue w 60000 PAYLOAD ab12
done     | 'status': 0, 'result': 'all well'   | ONCE.BEGIN ~finished w 60000
done     | 'status': 7                         | ONCE.BEGIN ~failed w 60000
done     | was done by                         | ONCE.BEGIN ~marked w 60000
mismatch | another payload                     | ONCE.BEGIN ~overdue w 60000 PAYLOAD ab13
ERR      | ERR .*64 bytes                      | ONCE.BEGIN ~k w 60000 PAYLOAD LONG65
ERR      | the TTL of 1 ms is below            | ONCE.BEGIN ~k w 1
ERR      | ttl_ms must be                      | ONCE.BEGIN ~k w x
ERR      | ID must have 1 to 256 bytes         | ONCE.BEGIN ~k w 60000 ID ""
ERR      | the name must be 1 to 500 bytes     | ONCE.BEGIN LONG512 w 60000
ok       | ^ok: once:~claimed                  | ONCE.RENEW ~claimed {claimed}
ok       | 'ends_in_ms': 7200000               | ONCE.RENEW ~claimed {claimed} 7200000
stale    | nothing was changed                 | ONCE.RENEW ~overdue {overdue}
stale    | nothing was changed                 | ONCE.RENEW ~finished {finished}
ERR      | token must be                       | ONCE.RENEW ~claimed x
ok | ^ok: once:~due | ONCE.BEGIN ~due w 60000 ; ONCE.FINISH ~due {1} KEEP 3600000 STATUS 0 RESULT x
stale    | nothing was changed                 | ONCE.FINISH ~overdue {overdue}
ERR      | KEEP needs a number                 | ONCE.FINISH ~claimed {claimed} KEEP 0
ERR      | the result must be at most 1024     | ONCE.FINISH ~claimed {claimed} RESULT LONG1025
ERR      | STATUS needs a number from 0 to 255 | ONCE.FINISH ~claimed {claimed} STATUS 256
ok       | ^ok: once:~ab                       | ONCE.BEGIN ~ab w 60000 ; ONCE.ABANDON ~ab {1}
ok | ^ok: granted | ONCE.BEGIN ~ag w 60000 ; ONCE.ABANDON ~ag {1} ; ONCE.BEGIN ~ag v 60000
stale    | nothing was changed                 | ONCE.ABANDON ~overdue {overdue}
stale    | nothing was changed                 | ONCE.ABANDON ~finished {finished}
ok       | ^ok: once:~nobody                   | ONCE.STATUS ~nobody-began-it
busy     | running by wfe-7                    | ONCE.STATUS ~claimed
done     | 'result': 'all well'                | ONCE.STATUS ~finished
done     | 'status': 7                         | ONCE.STATUS ~failed
ok       | ^ok: once:~m1                       | ONCE.MARK ~m1 KEEP 3600000
busy     | held by wfe-7                       | ONCE.MARK ~claimed
done     | was done by                         | ONCE.MARK ~marked
ERR      | KEEP needs a number                 | ONCE.MARK ~m2 KEEP 0
ok       | 'value': '7'                        | WATERMARK.GET ~level
ok       | 'value': ''                         | WATERMARK.GET ~nowhere-yet
ok       | 'value': '7', 'start_ms':           | WATERMARK.BEGIN ~level
ok       | 'value': '', 'start_ms':            | WATERMARK.BEGIN ~nowhere-yet OVERLAP 1000
ERR      | OVERLAP needs a number              | WATERMARK.BEGIN ~level OVERLAP 0
ok       | ^ok: watermark:~l1                  | WATERMARK.ADVANCE ~l1 "" 5
ok       | ^ok: watermark:~at                  | WATERMARK.ADVANCE ~at "" 2026-11-15T12:00:00+02:00
stale    | not what was expected               | WATERMARK.ADVANCE ~level 6 9
ok       | ^ok: watermark:~level               | WATERMARK.ADVANCE ~level 7.0 7
stale    | forward                             | WATERMARK.ADVANCE ~level 7 6
mismatch | ^mismatch: watermark:~level         | WATERMARK.ADVANCE ~level 7 x
ok       | ^ok: watermark:~moved               | WATERMARK.ADVANCE ~moved 4 5 ID ~r1
stale    | not what was expected               | WATERMARK.ADVANCE ~moved 4 5
stale    | not what was expected               | WATERMARK.ADVANCE ~moved 4 5 ID ~r2
stale    | not what was expected               | WATERMARK.ADVANCE ~moved 3 5 ID ~r1
ERR      | ID must have                        | WATERMARK.ADVANCE ~moved 4 5 ID ""
ok       | ^ok: watermark:~set                 | WATERMARK.SET ~set 5 test
ok       | 'value': '3'                        | WATERMARK.SET ~set 3 back ; WATERMARK.GET ~set
ERR      | usage: WATERMARK.SET name value reason | WATERMARK.SET ~set 5
ERR      | end with Z or an offset             | WATERMARK.SET ~set 2026-11-15T10:00 x
=        | 'server': 'leasehold'.*'api': 1     | HELLO
NOPROTO  | unsupported protocol version        | HELLO 4
ERR      | syntax error; usage: HELLO          | HELLO 3 AUHT a b
ERR      | this daemon has no credentials      | AUTH secret
ERR      | this daemon has no credentials      | AUTH name secret
=        | ^PONG$                              | PING
=        | ^text$                              | PING text
=        | ^text$                              | ECHO text
ERR      | usage: ECHO text                    | ECHO
=        | ^[0-9]+$                            | CLIENT ID
=        | ^me$                                | CLIENT SETNAME me ; CLIENT GETNAME
=        | ^OK$                                | CLIENT SETINFO lib-name x
ERR      | at most 64 bytes, without spaces    | CLIENT SETNAME "a b"
ERR      | usage: CLIENT ID                    | CLIENT KILL 1
=        | ^[0-9]+$                            | COMMAND COUNT
=        | LOCK.ACQUIRE                        | COMMAND LIST
=        | ^\{\}$                              | COMMAND DOCS
=        | server:leasehold.*blocked_clients:0 | INFO server
ERR      | unknown command 'LOCK.ACQUIR'; did you mean LOCK.ACQUIRE\?$ | LOCK.ACQUIR k
ERR      | unknown command 'onec.mark'; did you mean ONCE.MARK\? | onec.mark k
ERR      | unknown command 'frobnicate'$       | frobnicate k
"""

ROWS_OF_HISTORY = r"""
ok       | 'next': None, 'changes': .*'held'.*'free'.*'held' | LOCK.HISTORY ~changed
ok       | 'next': '[0-9]+', 'changes'         | LOCK.HISTORY ~changed COUNT 1
ERR      | the cursor is not one of ours       | LOCK.HISTORY ~changed AFTER x
"""
ROWS_WITHOUT_HISTORY = r"""
ERR      | this store keeps no history         | LOCK.HISTORY ~changed
"""
# The last ones of a pass: they change the connection.
ROWS_OF_WATCHES = {
    2: r"""
=        | ^\['subscribe', '~w/', 1\]$         | LOCK.WATCH ~w/
ERR      | not possible while watching         | LOCK.STATUS ~held
=        | ^\{'pong': ''\}$                    | PING
=        | ^\['subscribe', '~w/', 1\]$         | LOCK.WATCH ~w/
=        | ^\['unsubscribe', '~w/', 0\]$       | LOCK.UNWATCH ~w/
=        | ^\['unsubscribe', None, 0\]$        | LOCK.UNWATCH
=        | ^\['subscribe', '~s/', 1\]$         | SUBSCRIBE ~s/
=        | ^\['unsubscribe', '~s/', 0\]$       | UNSUBSCRIBE ~s/
=        | ^RESET$                             | LOCK.WATCH ~w/ ; RESET
ok       | 'state': 'held'                     | LOCK.STATUS ~held
=        | ^OK$                                | QUIT
""",
    3: r"""
ok       | ~w/: watching$                      | LOCK.WATCH ~w/
ok       | watching$                           | LOCK.WATCH ~w/
ok       | 'state': 'held'                     | LOCK.STATUS ~held
ok       | no longer watched                   | LOCK.UNWATCH ~w/
ok       | no longer watched                   | LOCK.UNWATCH
PUSH     | ^\['subscribe', '~s/', 1\]$         | SUBSCRIBE ~s/
PUSH     | ^\['unsubscribe', '~s/', 0\]$       | UNSUBSCRIBE ~s/
=        | ^RESET$                             | RESET
=        | 'proto', 2                          | HELLO
=        | ^OK$                                | QUIT
""",
    "http": ""}
TIMED = {"LOCK.ACQUIRE", "ONCE.BEGIN"}  # verbs that promise ends_in_ms with a token


class Pass:
    """The table over one connection."""

    def __init__(self, client, number, protocol):
        self.client, self.protocol = client, protocol
        self.prefix = f"p{os.getpid()}-{number}-"
        self.tokens, self.verbs, self.outcomes = {}, set(), set()

    def words(self, text, tokens):
        text = text.replace("~", self.prefix)
        for name, token in {**self.tokens, **tokens}.items():
            text = text.replace("{%s}" % name, str(token))
        return [re.sub(r"^LONG(\d+)$", lambda found: "k" * int(found[1]), word)
                for word in shlex.split(text)]

    def call(self, words, pushed=False):
        self.verbs.add(words[0].upper())
        if not pushed:
            return self.client.call(*words)
        self.client.send(encode(*words))
        return self.client.push()

    def fixtures(self):
        for line in FIXTURES.strip().splitlines():
            name, text = (part.strip() for part in line.split("|", 1))
            reply = self.call(self.words(text, {}))
            assert reply["outcome"] == "ok", (line, reply)
            if name != "-":
                self.tokens[name] = reply["token"]

    def row(self, line):
        outcome, pattern, text = (part.strip() for part in re.split(r"(?<!\\)\|", line, maxsplit=2))
        pattern = pattern.replace(r"\|", "|").replace("~", re.escape(self.prefix))
        commands, tokens, reply = text.split(" ; "), {}, None
        for number, command in enumerate(commands, 1):
            reply = self.call(self.words(command, tokens), outcome == "PUSH")
            if isinstance(reply, dict) and reply.get("token"):
                tokens[number] = reply["token"]
        found, shown = "=", repr(reply) if not isinstance(reply, str) else str(reply)
        if isinstance(reply, Error):
            found = reply.split(" ", 1)[0]
        elif outcome == "PUSH":
            found = "PUSH"
        elif isinstance(reply, dict) and "outcome" in reply:
            found = reply["outcome"]
            if re.search(pattern, str(reply.get("text"))):
                shown = reply["text"]
        self.outcomes.add(found)
        assert found == outcome, f"{line}\noutcome {found}: {reply!r}"
        if outcome == "=" and isinstance(reply, dict) and self.protocol == 2:
            shown = repr({**reply})
        assert re.search(pattern, shown.replace("\r\n", " ")) or re.search(
            pattern, repr(as_list(reply))), f"{line}\n{reply!r}"
        self.fields(words=self.words(commands[-1], tokens), reply=reply)

    @staticmethod
    def fields(words, reply):
        """What clients rely on, in every map with an outcome."""
        if not isinstance(reply, dict) or "text" not in reply:
            return
        outcome, verb = reply["outcome"], words[0].upper()
        for name in ("token", "holder", "since_ms", "ends_in_ms"):
            assert name in reply, (words, reply)
        assert reply["text"].startswith(outcome + ": "), reply
        assert reply["token"] is None or reply["token"].isdecimal(), reply
        assert (outcome == "ok") == ("refusal" not in reply) or verb == "LOCK.CANCEL", reply
        if outcome == "ok" and verb in TIMED:
            assert reply["token"] and reply["holder"] == words[2], reply
            assert reply["ends_in_ms"] == int(words[3]), reply
        if outcome == "busy":
            assert reply["holder"] and reply["ends_in_ms"] > 0 and reply["since_ms"] >= 0, reply


def as_list(reply):
    """The flat form of a map, for patterns of RESP2."""
    return [item for pair in reply.items() for item in pair] if isinstance(reply, dict) else reply


def rows_by_http(rows):
    """Those with a path, and not about words. Texts name fields instead of words."""
    kept = []
    for row in rows:
        commands = re.split(r"(?<!\\)\|", row, maxsplit=2)[2].split(" ; ")
        if all(command.split()[0].upper() in {*PATHS, "LOCK.ACQUIRE_ALL"} for command in commands):
            if not re.search(r"arguments|usage:|unknown word|given twice|needs a value|ASYNC|-1 *$"
                             r"|ALL (5|0|x|17) |META \{$|LONG512", row):
                head, rest = row.rsplit("|", 1)
                for word, field in FIELDS.items():
                    head = head.replace(f"{word} needs a number", f"{field} needs a number")
                head = head.replace("ttl_ms must be a number ", "ttl_ms must be a number *")
                head = head.replace("ID must have", "request_id: an ID must have")
                head = head.replace("META needs a JSON object", "meta needs a JSON object")
                kept.append(head + "|" + rest)
    return kept


def play(cases, name, make, number, protocol, rows):
    with make() as client:
        one = Pass(client, number, protocol)
        try:
            one.fixtures()
        except Exception as error:  # the rows need them
            cases.tell(False, f"{name}: the fixtures", repr(error))
            return one
        wrong = []
        rows = rows + ROWS_OF_WATCHES[protocol].strip().splitlines()
        for line in rows:
            try:
                one.row(line)
            except Exception as error:  # each row is judged on its own
                wrong.append(f"{line}\n{error!r}")
        cases.tell(not wrong, f"{name}: {len(rows)} rows", "\n".join(wrong))
    return one


def main():
    store, program = sys.argv[1], os.path.realpath(sys.argv[2])
    if store == "file:":
        store = f"file:{folder}/locks.log"
    rows = ROWS + (ROWS_OF_HISTORY if store.startswith("file:") else ROWS_WITHOUT_HISTORY)
    rows = rows.strip().splitlines()
    rows = [row for row in rows if row]
    cases = Cases()
    daemon = Daemon(program, store, unix=f"{folder}/serve.sock", http="127.0.0.1:0")
    ways = [("RESP2, TCP", 2, lambda: daemon.connect(2)),
            ("RESP3, TCP", 3, lambda: daemon.connect(3)),
            ("RESP3, unix socket", 3, lambda: daemon.connect(3, unix=True)),
            ("RESP2, pipes", 2, lambda: Pipes(program, store).connect(2)),
            ("RESP3, pipes", 3, lambda: Pipes(program, store).connect(3))]
    verbs, outcomes = set(), set()
    for number, (name, protocol, make) in enumerate(ways):
        one = play(cases, name, make, number, protocol, rows)
        verbs, outcomes = verbs | one.verbs, outcomes | one.outcomes
    play(cases, "HTTP", lambda: Web(daemon.web), len(ways), "http", rows_by_http(rows))
    with daemon.connect() as client:
        client.send(b"*2\r\n$7\r\nCOMMAND\r\n$4\r\nLIST\r\n")
        table = set(client.read())
    cases.tell(table <= verbs, "every verb has a row", f"without: {table - verbs}")
    every = {"ok", "busy", "cooling", "stale", "mismatch", "done", "ERR"}
    cases.tell(every <= outcomes, "every outcome has a row", f"without: {every - outcomes}")
    status = daemon.kill(15)
    cases.tell(status == 0, "SIGTERM ends the daemon", f"exit status {status}\n{daemon.logged()}")
    cases.finish()


main()
