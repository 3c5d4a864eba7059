#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many requests for one fingerprint over three daemons: daemon_crowd.py URL PROGRAM --rounds N

Each round, 300 connections, 100 to each daemon, send their request for the same new fingerprint at
the same time. With ONCE the winner creates the object and finishes the id; the others repeat BEGIN
until it is done. With LOCK every request acquires the key, looks whether the object exists, creates
it if not, and releases with a cooldown; the others repeat until they get `cooling`. One round
without a lock shows that the harness counts creations. Prints TAP.
"""

import argparse
import os
import selectors
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # the tree stays clean
from resp_client import More, encode, now_ms, parse
from serve_process import Daemon
from tap_cases import Tap

DAEMONS, EACH, TTL_MS, ROUND_MS, AGAIN_MS = 3, 100, 10000, 60000, 150


class Requester:
    """One connection, driven by the crowd's loop."""

    def __init__(self, crowd, number, connection):
        self.crowd, self.name, self.connection = crowd, f"request-{number}", connection
        self.connection.socket.setblocking(False)
        self.buffer, self.outcome, self.again_ms, self.step = bytearray(), None, None, None

    def send(self, step, *words):
        self.step = step
        self.connection.socket.sendall(encode(words))

    def start(self):
        self.outcome = self.again_ms = None
        self.begin()

    def on_readable(self):
        received = self.connection.socket.recv(65536)
        if not received:
            raise RuntimeError(f"{self.name}: the daemon closed the connection")
        self.buffer += received
        try:
            reply, used = parse(self.buffer, 0)
        except More:
            return
        del self.buffer[:used]
        if not isinstance(reply, list):
            raise RuntimeError(f"{self.name}: {reply}")
        self.on_reply(dict(zip(reply[::2], reply[1::2])))

    def finish(self, outcome):
        self.outcome = outcome
        self.crowd.answered += 1

    def retry(self):
        self.again_ms = now_ms() + AGAIN_MS


class OnceRequester(Requester):
    def begin(self):
        self.send("begin", "ONCE.BEGIN", self.crowd.fingerprint, self.name, TTL_MS, "ID",
                  f"{self.crowd.fingerprint}-{self.name}")

    def on_reply(self, reply):
        outcome = reply["outcome"]
        if self.step == "finish":
            self.finish("created" if outcome == "ok" else outcome)
        elif outcome == "ok":
            self.crowd.create()
            self.send("finish", "ONCE.FINISH", self.crowd.fingerprint, reply["token"], "KEEP",
                      600000, "RESULT", self.name)
        elif outcome in ("busy", "unavailable"):
            self.retry()
        else:
            self.finish(outcome)


class LockRequester(Requester):
    def begin(self):
        self.send("acquire", "LOCK.ACQUIRE", self.crowd.fingerprint, self.name, TTL_MS, "ID",
                  f"{self.crowd.fingerprint}-{self.name}")

    def on_reply(self, reply):
        outcome = reply["outcome"]
        if self.step == "release":
            self.finish(self.made if outcome == "ok" else outcome)
        elif outcome == "ok":
            self.made = "found" if self.crowd.exists() else "created"
            if self.made == "created":
                self.crowd.create()
            self.send("release", "LOCK.RELEASE", self.crowd.fingerprint, reply["token"],
                      "COOLDOWN", 600000)
        elif outcome in ("busy", "unavailable"):
            self.retry()
        else:
            self.finish("done" if outcome == "cooling" else outcome)


class UnlockedRequester(Requester):
    """Looks, then creates: what a lock is for."""

    def begin(self):
        self.existed = self.crowd.exists()
        self.send("look", "LOCK.STATUS", self.crowd.fingerprint)

    def on_reply(self, reply):
        if not self.existed:
            self.crowd.create()
        self.finish("created" if not self.existed else "done")


class Crowd:
    def __init__(self, daemons, kind):
        self.fingerprint, self.creations, self.answered = None, 0, 0
        self.selector = selectors.DefaultSelector()
        self.requesters = [kind(self, number, daemons[number % DAEMONS].connect())
                           for number in range(DAEMONS * EACH)]
        for one in self.requesters:
            self.selector.register(one.connection.socket, selectors.EVENT_READ, one)

    def exists(self):
        return self.creations > 0

    def create(self):
        self.creations += 1

    def round(self, fingerprint):
        """True: one creation, and everybody was answered."""
        self.fingerprint, self.creations, self.answered = fingerprint, 0, 0
        for one in self.requesters:
            one.start()
        until_ms = now_ms() + ROUND_MS
        while self.answered < len(self.requesters) and now_ms() < until_ms:
            for key, _ in self.selector.select(0.02):
                key.data.on_readable()
            for one in self.requesters:
                if one.again_ms is not None and one.again_ms <= now_ms():
                    one.start()
        outcomes = [one.outcome for one in self.requesters]
        good = (self.creations == 1 and outcomes.count("created") == 1 and
                outcomes.count("done") == len(outcomes) - 1)
        if not good:
            print(f"# {fingerprint}: {self.creations} creations, "
                  f"{ {outcome: outcomes.count(outcome) for outcome in set(outcomes)} }")
        return good

    def close(self):
        for one in self.requesters:
            one.connection.close()


def run_all(daemons, rounds, tap):
    for name, kind in (("ONCE", OnceRequester), ("LOCK", LockRequester)):
        crowd, begun, good = Crowd(daemons, kind), time.monotonic(), 0
        for number in range(rounds):
            good += crowd.round(f"{name.lower()}-{os.getpid()}-{number}")
        crowd.close()
        took = (time.monotonic() - begun) * 1000 / rounds
        print(f"# {name}: {DAEMONS * EACH} requests over {DAEMONS} daemons, {took:.0f} ms a round")
        tap.case(good == rounds, f"{name}: {good} of {rounds} rounds have one creation, and all "
                 f"{DAEMONS * EACH} requests are answered")
    crowd = Crowd(daemons, UnlockedRequester)
    tap.case(not crowd.round(f"unlocked-{os.getpid()}") and crowd.creations > 1,
             "without a lock the harness sees more than one creation")
    crowd.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        daemons = [Daemon(options.program, options.url, f"{folder}/daemon-{i}")
                   for i in range(DAEMONS)]
        try:
            run_all(daemons, options.rounds, tap)
            tap.case(all([daemon.end() for daemon in daemons]), "the daemons end by SIGTERM")
        finally:
            for daemon in daemons:
                if daemon.process.poll() is None:
                    daemon.kill()
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
