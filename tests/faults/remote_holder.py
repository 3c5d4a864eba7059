#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client of the daemon that follows rule D2, for daemon_faults.py: remote_holder.py CONFIG

It acquires keys through either daemon and updates a guarded value inside. Its deadline is two
thirds of the TTL, counted from before the first send of the request id; a grant of a request that
could wait counts only from an answered RENEW, and only an answered RENEW moves the deadline. An
unanswered request is repeated with its id, mostly at the other daemon; a lost connection says
nothing about the grant. Everything is logged as JSON lines on CLOCK_BOOTTIME.

Mutants: "reply" counts from the reply; "deaf" has no deadline.
"""

import json
import os
import random
import signal
import sys
import time

sys.dont_write_bytecode = True  # the tree stays clean
from guarded_value import GuardedValue
from resp_client import Connection, Lost, now_ms

LOAD_TTL_MS = 5000
KEEP_MS = 3600000  # of finished ids: longer than any run


class Grant:
    def __init__(self, key, token, deadline_ms, bound):
        self.key, self.token, self.deadline_ms, self.bound = key, token, deadline_ms, bound


class Holder:
    def __init__(self, config):
        self.config = config
        self.name, self.ttl_ms, self.mutant = config["name"], config["ttl_ms"], config["mutant"]
        self.patient = config["patient"]  # waits long for replies, works long, never renews
        self.random = random.Random(config["seed"])
        self.connection, self.at, self.kept, self.number = None, 0, [], 0
        self.log_file = open(f"{config['folder']}/log-{self.name}", "w", encoding="ascii",
                             buffering=1)

    def log(self, event, **fields):
        self.log_file.write(json.dumps({"event": event, "client": self.name, **fields}) + "\n")

    def stopping(self):
        return os.path.exists(self.config["folder"] + "/stop")

    # ---- calls ----

    def call(self, *words, timeout_ms, bound=False):
        """One try. Raises Lost: unknown."""
        try:
            if self.connection is None:
                ports = self.config["ports"]
                self.connection = Connection(ports[self.at % len(ports)], 500)
            return self.connection.call(*words, timeout_ms=timeout_ms)
        except Lost:
            # The peer's close releases its bound grants: such a connection stays open meanwhile.
            if self.connection is not None:
                (self.kept.append if bound else Connection.close)(self.connection)
            self.connection = None
            self.at += self.random.random() < 0.7
            raise

    def close_kept(self):
        while self.kept:
            self.kept.pop().close()

    def reply_timeout(self):
        return self.ttl_ms * self.random.choice((0.9,) if self.patient else (0.15, 0.3, 0.9))

    def call_until(self, until_ms, *words, wait_ms=0, bound=False):
        """Repeats the call until it is answered: the reply and the number of repeats."""
        for repeats in range(1000):
            if repeats and now_ms() >= until_ms:
                return None, repeats
            try:
                reply = self.call(*words, timeout_ms=wait_ms + self.reply_timeout(), bound=bound)
            except Lost:
                time.sleep(0.02)
                continue
            if not isinstance(reply, dict):
                raise RuntimeError(f"{self.name}: {words}: {reply}")
            if reply["outcome"] != "unavailable":
                return reply, repeats
            self.log("unavailable", text=reply["text"])
            self.at += 1
            self.leave_connection(bound)
            time.sleep(0.02)
        return None, repeats

    def leave_connection(self, bound):
        if self.connection is not None:
            (self.kept.append if bound else Connection.close)(self.connection)
        self.connection = None

    # ---- a lock ----

    def deadline_from(self, sent_ms):
        """D2; called when the reply has come."""
        start_ms = now_ms() if self.mutant == "reply" else sent_ms
        return float("1e15") if self.mutant == "deaf" else start_ms + self.ttl_ms * 2 / 3

    def acquire(self):
        self.number += 1
        key = self.random.choice(self.config["keys"])
        request = f"{self.name}-{self.number}"
        wait_ms = self.random.choice((0, 0, self.ttl_ms // 4, self.ttl_ms, 2 * self.ttl_ms))
        bound = self.random.random() < 0.2
        words = ["LOCK.ACQUIRE", key, self.name, self.ttl_ms, "ID", request]
        words += ["WAIT", wait_ms] if wait_ms else []
        words += ["BIND"] if bound else []
        sent_ms = now_ms()
        reply, repeats = self.call_until(sent_ms + wait_ms + self.ttl_ms * 2 / 3, *words,
                                         wait_ms=wait_ms, bound=bound)
        outcome = reply["outcome"] if reply else "unknown"
        token = int(reply["token"]) if outcome == "ok" else None
        self.log("acquire", key=key, id=request, outcome=outcome, token=token, repeats=repeats,
                 sent=sent_ms, replied=now_ms())
        if token is None:
            return None
        grant = Grant(key, token, self.deadline_from(sent_ms), bound)
        if wait_ms and self.mutant is None and not self.renew(grant):
            return None
        return grant

    def renew(self, grant):
        """Before it enters: one answered RENEW. It may come after the old deadline, because the
        client was not inside meanwhile. False: the grant is over, or unknown for a TTL."""
        until_ms = now_ms() + self.ttl_ms
        while True:
            sent_ms = now_ms()
            try:
                words = ["LOCK.RENEW", grant.key, grant.token] + ["BIND"] * grant.bound
                reply = self.call(*words, timeout_ms=self.reply_timeout(), bound=grant.bound)
            except Lost:
                reply = {"outcome": "unknown"}
            if reply["outcome"] == "ok":
                grant.deadline_ms = self.deadline_from(sent_ms)
                self.log("renewed", key=grant.key, token=grant.token)
                return True
            if reply["outcome"] not in ("unknown", "unavailable"):
                self.log("gone", verb="renew", key=grant.key, token=grant.token, now=now_ms(),
                         deadline=grant.deadline_ms, outcome=reply["outcome"])
                return False
            if now_ms() >= until_ms:
                return False
            time.sleep(0.02)

    def work(self, grant):
        """Inside until the work is done or the deadline has come."""
        long = (0.8 * self.ttl_ms, 1.5 * self.ttl_ms)
        length = self.random.choice(long if self.patient else (1,) * 6 + (5, 20, 50, 200) + long)
        leave_ms = now_ms() + length
        renews = not self.patient and self.random.random() < 0.6
        renew_ms = now_ms() + (self.ttl_ms / 4 if renews else 1e9)
        while now_ms() < min(leave_ms, grant.deadline_ms):
            if now_ms() >= renew_ms:
                if not self.renew_inside(grant):
                    return
                renew_ms = now_ms() + self.ttl_ms / 4
            time.sleep(max(0, min(leave_ms, renew_ms, grant.deadline_ms) - now_ms()) / 1000)

    def renew_inside(self, grant):
        """A single try, so that the deadline is looked at in between. False: it is over."""
        sent_ms = now_ms()
        timeout_ms = max(1, min(self.reply_timeout(), grant.deadline_ms - sent_ms))
        try:
            words = ["LOCK.RENEW", grant.key, grant.token] + ["BIND"] * grant.bound
            reply = self.call(*words, timeout_ms=timeout_ms, bound=grant.bound)
        except Lost:
            return True
        if reply["outcome"] == "ok":
            # An answer after the deadline comes too late: another client may be inside.
            if now_ms() < grant.deadline_ms:
                grant.deadline_ms = self.deadline_from(sent_ms)
                self.log("renewed", key=grant.key, token=grant.token)
            return True
        if reply["outcome"] == "unavailable":
            return True
        self.log("gone", verb="renew", key=grant.key, token=grant.token, now=now_ms(),
                 deadline=grant.deadline_ms, outcome=reply["outcome"])
        return False

    def inside(self, grant):
        value = GuardedValue(self.config["folder"], grant.key)
        enter_ms = now_ms()
        if enter_ms >= grant.deadline_ms:
            self.log("late", key=grant.key, token=grant.token)
            return
        self.log("enter", key=grant.key, token=grant.token, now=enter_ms)
        current = value.read(grant.token)
        self.work(grant)
        stops = self.random.random() < self.config["stops"]
        if now_ms() < grant.deadline_ms and current is not None:
            if stops:  # between the check and the write: what only a fencing token prevents
                self.log("stop", key=grant.key, token=grant.token)
                os.kill(os.getpid(), signal.SIGSTOP)
            value.write(grant.token, current + 1)
        self.log("leave", key=grant.key, token=grant.token, now=now_ms(),
                 deadline=grant.deadline_ms)

    def release(self, grant):
        if not grant.bound and self.random.random() < 0.2:
            self.log("abandoned", key=grant.key, token=grant.token)
            return
        reply, repeats = self.call_until(now_ms() + 2 * self.ttl_ms, "LOCK.RELEASE", grant.key,
                                         grant.token, bound=grant.bound)
        outcome = reply["outcome"] if reply else "unknown"
        if outcome == "ok":
            self.log("released", key=grant.key, token=grant.token)
        elif outcome == "stale" and not repeats:
            self.log("gone", verb="release", key=grant.key, token=grant.token, now=now_ms(),
                     deadline=grant.deadline_ms, outcome=outcome)

    # ---- an id ----

    def once(self):
        """Claims one of the ids that all clients of the group count through."""
        identity = f"job-{int(now_ms() / 400)}"
        request = f"{self.name}-once-{self.number}"
        reply, _ = self.call_until(now_ms() + self.ttl_ms, "ONCE.BEGIN", identity, self.name,
                                   4 * self.ttl_ms, "ID", request)
        if not reply or reply["outcome"] != "ok":
            return
        token = int(reply["token"])
        reply, repeats = self.call_until(now_ms() + self.ttl_ms, "ONCE.FINISH", identity, token,
                                         "KEEP", KEEP_MS, "RESULT", self.name)
        outcome = reply["outcome"] if reply else "unknown"
        self.log("finish", id=identity, token=token, outcome=outcome, repeats=repeats)

    # ---- load ----

    def load(self):
        """Acquires and releases keys that nobody else uses, as fast as the daemon answers."""
        self.log("begin")
        tokens, pairs, spoiled = {}, 0, 0
        while not self.stopping():
            key = f"load-{spoiled}-{pairs % 50}"
            until_ms = now_ms() + LOAD_TTL_MS * 2 / 3
            try:
                reply = self.call("LOCK.ACQUIRE", key, self.name, LOAD_TTL_MS, timeout_ms=500)
                if reply["outcome"] == "unavailable":
                    raise Lost(reply["text"])
                token = int(reply["token"])
                grows = reply["outcome"] == "ok" and token > tokens.get(key, 0)
                tokens[key] = token
                ended = self.call("LOCK.RELEASE", key, token, timeout_ms=500)["outcome"]
            except Lost:  # its keys may still be held
                spoiled += 1
                continue
            pairs += 1
            if not grows or ended not in ("ok", "unavailable"):
                self.log("gone", verb=f"load: {reply} then {ended}", key=key, token=token,
                         now=now_ms(), deadline=until_ms, outcome=ended)
            spoiled += ended == "unavailable"
        self.log("load", pairs=pairs)
        self.log("end")

    def run(self):
        self.log("begin")
        while not self.stopping():
            grant = self.acquire()
            if grant is not None:
                self.inside(grant)
                self.release(grant)
            self.close_kept()
            if self.random.random() < 0.2:
                self.once()
            time.sleep(self.random.uniform(0.002, 0.02))
        self.log("end")


if __name__ == "__main__":
    holder = Holder(json.loads(sys.argv[1]))
    holder.load() if holder.config["load"] else holder.run()
