#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The daemon while its store is stopped, dead, or refuses: serve_outage.py [STORE] PROGRAM

Without STORE on a Redis server of its own; with one on that of scripts/on-k8s.sh. Prints TAP.
"""

import concurrent.futures
import os
import signal
import subprocess
import sys
import time

from serve_kit import Cases, Daemon, Error, Redis, encode, pairs, stop, until
from serve_web import Web

PROGRAM = os.path.realpath(sys.argv[-1])
STORE = sys.argv[1] if len(sys.argv) > 2 else None
HOUR = 3600000
TIMEOUT_S = 1
SLACK_S = 20  # of a slow machine, and of a verb with several requests

CALLS = """LOCK.ACQUIRE new w 60000
LOCK.ACQUIRE new2 w 60000 WAIT 500
LOCK.ACQUIRE new3 w 60000 CACHED
LOCK.ACQUIRE_ALL 2 a b w 60000
LOCK.RENEW held TOKEN
LOCK.RELEASE other 5
LOCK.STATUS held
LOCK.LIST
LOCK.BREAK broken test
LOCK.CLEAR cleared
ONCE.BEGIN id w 60000
ONCE.RENEW id2 5
ONCE.FINISH id3 5
ONCE.ABANDON id4 5
ONCE.STATUS id5
ONCE.MARK id6
WATERMARK.GET w
WATERMARK.BEGIN w2
WATERMARK.ADVANCE w3 4 5
WATERMARK.SET w4 5 test"""


class Api:
    """The API server of scripts/on-k8s.sh."""

    url = STORE

    @staticmethod
    def pid():
        with open(os.environ["K8S_PID"]) as file:
            return int(file.read())

    def stop(self):
        stop(self.pid())

    def go_on(self):
        os.kill(self.pid(), signal.SIGCONT)

    def kill(self):
        pid = self.pid()
        os.kill(pid, signal.SIGKILL)
        file = f"/proc/{pid}/stat"
        until(lambda: not os.path.exists(file) or ") Z " in open(file).read())

    def start(self):
        subprocess.run([os.environ["K8S_API"]], check=True)


server = Redis() if STORE is None else Api()
daemon = Daemon(PROGRAM, server.url, "--store-timeout", f"{TIMEOUT_S}s", http="127.0.0.1:0")
first = daemon.connect()
token = first.token("LOCK.ACQUIRE", "held", "w", HOUR)


def every_verb_is(outcome):
    """All at once, each on a connection of its own."""
    began, clients, wrong = time.monotonic(), [], []
    for line in CALLS.splitlines():
        client = daemon.connect()
        client.send(encode(*line.replace("TOKEN", token).split()))
        clients.append((line, client))
    assert first.call("ECHO", "x") == "x", "others are not served"
    for line, client in clients:
        reply = pairs(client.read())
        if isinstance(reply, Error) or reply.get("outcome") != outcome or not reply["text"]:
            wrong.append((line, reply))
        client.close()
    took = time.monotonic() - began
    assert not wrong, "\n".join(map(repr, wrong))
    assert took < TIMEOUT_S + SLACK_S, f"{took:.1f} s"


def by_http(line):
    with Web(daemon.web) as web:
        status, reply = web.send(line.replace("TOKEN", token).split())
        return status, reply["outcome"], int(web.response.getheader("Retry-After", "0"))


def every_path_is_unavailable():
    lines = CALLS.splitlines()
    with concurrent.futures.ThreadPoolExecutor(len(lines)) as pool:
        replies = list(pool.map(by_http, lines))
    wrong = [pair for pair in zip(lines, replies)
             if pair[1][:2] != (503, "unavailable") or not 1 <= pair[1][2] <= 60]
    assert not wrong, "\n".join(map(repr, wrong))
    with Web(daemon.web) as web:
        assert web.request("GET", "/readyz")[0] == 503
        assert web.request("GET", "/healthz")[0] == 200


def a_stopped_store_is_unavailable():
    server.stop()
    try:
        every_verb_is("unavailable")
        every_path_is_unavailable()
        subscriptions_are_refused()
    finally:
        server.go_on()


def subscriptions_are_refused():
    with daemon.connect() as a:
        reply = a.call("SUBSCRIBE", "x/")
        assert isinstance(reply, Error) and "unavailable" in reply, reply
        assert a.call("PING") == "PONG"
    with daemon.connect(3) as a:
        assert a.call("LOCK.WATCH", "x/")["outcome"] == "unavailable"


def a_dead_store_is_unavailable():
    server.kill()
    try:
        every_verb_is("unavailable")
    finally:
        server.start()


def it_is_served_again():
    until(lambda: first.call("LOCK.RENEW", "held", token)["outcome"] == "ok")
    with Web(daemon.web) as web:
        until(lambda: web.request("GET", "/readyz")[0] == 200)
    assert first.call("LOCK.ACQUIRE", "held", "v", HOUR)["outcome"] == "busy"


def a_grant_decided_after_the_end_is_released():
    patient = Daemon(PROGRAM, server.url, "--store-timeout", "60s")
    with patient.connect(3) as watcher:
        watcher.ok("LOCK.WATCH", "late/")
        with patient.connect() as a:
            assert a.call("LOCK.STATUS", "late/k")["state"] == "free"
            server.stop()
            a.send(encode("LOCK.ACQUIRE", "late/k", "w", HOUR))
            time.sleep(0.3)  # until the request is sent to the store
        until(lambda: "connected_clients:1" in watcher.call("INFO"))
        server.go_on()
        assert watcher.push()[2]["state"] == "held"
        assert watcher.push()[2]["state"] == "free"


def without_rights_it_is_denied():
    if STORE is None:
        server.cli("ACL", "SETUSER", "reader", "on", ">word", "~*", "&*", "+@all", "-@write",
                   "-@scripting")
        url = f"redis://reader:word@127.0.0.1:{server.port}"
    else:
        url = "k8s://kube-system?skew=0"
    with Daemon(PROGRAM, url).connect() as a:
        for call in (("LOCK.ACQUIRE", "refused", "w", 60000), ("ONCE.MARK", "refused"),
                     ("WATERMARK.SET", "refused", 5, "test")):
            reply = a.call(*call)
            assert reply["outcome"] == "denied", (call, reply)


cases = Cases()
cases.run("a stopped store is unavailable", a_stopped_store_is_unavailable)
cases.run("it is served again", it_is_served_again)
cases.run("a dead store is unavailable", a_dead_store_is_unavailable)
cases.run("it is served again", it_is_served_again)
cases.run("a grant decided after the end is released", a_grant_decided_after_the_end_is_released)
cases.run("without rights it is denied", without_rights_it_is_denied)
cases.finish()
