#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults of daemons under load on `file:`. daemon_faults.py FOLDER PROGRAM --rounds N

Groups run side by side. Each has one store file, two daemons, a proxy before each, and clients that
follow rule D2 (remote_holder.py). A round is one fault: a daemon killed with kill -9 and started
again, a daemon stopped past the TTL and continued, or all connections of a daemon cut without FIN.
Clients also stop themselves past their deadline between the check and the write. Prints TAP.

Shown: a grant or id that was answered OK before the fault is still there afterwards at both
daemons; no two clients are inside together; stale writes are refused; tokens grow. Then clients
meet late replies: those that follow the rule are never inside together, and the checker must see
two mutants that are: one that counts from the reply, and one without a deadline.
"""

import argparse
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True  # the tree stays clean
import cutting_proxy
from cutting_proxy import Proxy
from guarded_value import GuardedValue
from holder_checker import Audit, check_logs
from resp_client import Lost, now_ms
from serve_process import Daemon
from tap_cases import Tap

GROUPS, CLIENTS, KEYS, TTL_MS, PROBE_TTL_MS = 5, 7, ("a", "b", "c"), 1000, 20000
CONTROL_ROUNDS, LOADER = 36, 0  # the first client only makes load
CONTROLS = {"rule": False, "reply": True, "deaf": True}  # whether clients may be inside together
CUTS = (cutting_proxy.BOTH, cutting_proxy.REPLIES, cutting_proxy.REQUESTS, cutting_proxy.DELAY)
MUST_HAPPEN = ("kills", "stops", "cuts", "takeovers", "repeats", "repeats granted", "stale tried",
               "probes", "finished ids", "renewed", "load pairs")
MUST_NOT = ("overlaps", "tokens", "shared", "lost grants", "lost probes", "lost ids", "done twice",
            "stale accepted", "lost updates", "ended early", "failed exits")
HERE = os.path.dirname(os.path.abspath(__file__))


class Probe:
    """A grant and a finished id of the controller itself, with a TTL that outlives the round."""

    def __init__(self, group, number):
        self.group, self.key = group, f"probe-{number}"
        self.token = None

    def ask(self, daemon, *words):
        """Repeated while the store cannot be reached: a daemon may be stopped inside its lock."""
        until_ms = now_ms() + PROBE_TTL_MS
        while now_ms() < until_ms:
            try:
                connection = daemon.connect()
                reply = connection.call(*words)
                connection.close()
                if reply["outcome" if "outcome" in reply else "state"] != "unavailable":
                    return reply
            except Lost:
                pass
            time.sleep(0.05)
        return {"outcome": "unknown", "text": "no reply"}

    def acquire(self, daemon):
        return self.ask(daemon, "LOCK.ACQUIRE", self.key, "controller", PROBE_TTL_MS, "ID",
                        self.key)

    def begin(self, daemon):
        self.sent_ms = now_ms()
        reply = self.acquire(daemon)
        self.expect(reply, "outcome", "ok")
        self.token = reply.get("token")
        reply = self.ask(daemon, "ONCE.BEGIN", self.key, "controller", PROBE_TTL_MS)
        self.expect(reply, "outcome", "ok")
        self.expect(self.ask(daemon, "ONCE.FINISH", self.key, reply.get("token"), "KEEP", 3600000),
                    "outcome", "ok")

    def expect(self, reply, field, value):
        if reply.get(field) == value:
            return
        if now_ms() < self.sent_ms + PROBE_TTL_MS * 2 / 3:
            self.group.audit.problem("lost probes", f"{self.key}: {field} is not {value}: {reply}")
        else:
            self.group.audit.counts["probes too late"] += 1

    def verify(self, victim, other):
        """The victim has been started again, or has continued."""
        for daemon in (victim, other):
            status = self.ask(daemon, "LOCK.STATUS", self.key)
            self.expect(status, "token", self.token)
            self.expect(status, "holder", "controller")
            self.expect(self.ask(daemon, "LOCK.RENEW", self.key, self.token), "outcome", "ok")
            self.expect(self.ask(daemon, "ONCE.STATUS", self.key), "outcome", "done")
            self.expect(self.acquire(daemon), "token", self.token)
        self.expect(self.ask(victim, "LOCK.RELEASE", self.key, self.token), "outcome", "ok")
        self.expect(self.ask(other, "LOCK.RELEASE", self.key, self.token), "outcome", "stale")
        self.group.audit.counts["probes"] += 1


class Group:
    def __init__(self, folder, program, number, control):
        self.folder, self.control, self.audit = f"{folder}/group-{number}", control, Audit()
        self.random = random.Random(number)
        os.mkdir(self.folder)
        store = f"file:{self.folder}/store.log"
        self.daemons = [Daemon(program, store, f"{self.folder}/daemon-{i}") for i in range(2)]
        self.proxies = [Proxy(daemon.port) for daemon in self.daemons]
        for proxy in self.proxies:
            proxy.start()
        self.clients = [self.start_client(number, i) for i in range(CLIENTS)]
        self.resumer = threading.Thread(target=self.resume_clients)
        self.ending = False
        self.resumer.start()
        self.await_clients()

    def start_client(self, number, client):
        config = {"name": f"client-{client}", "ttl_ms": TTL_MS, "seed": number * 100 + client,
                  "keys": KEYS, "ports": [proxy.port for proxy in self.proxies],
                  "folder": self.folder, "stops": 0.1, "patient": self.control is not None,
                  "load": client == LOADER,
                  "mutant": None if self.control == "rule" else self.control}
        return subprocess.Popen([sys.executable, HERE + "/remote_holder.py",
                                 json.dumps(config)])

    def await_clients(self):
        for client in range(CLIENTS):
            path = f"{self.folder}/log-client-{client}"
            while not os.path.exists(path) or os.path.getsize(path) == 0:
                time.sleep(0.02)

    def has_stopped(self, client):
        try:
            return os.waitid(os.P_PID, client.pid, os.WSTOPPED | os.WNOHANG) is not None
        except ChildProcessError:  # it has ended
            return False

    def resume_clients(self):
        """Continues clients that stopped themselves, after their deadline, mostly after the TTL."""
        due = {}
        while not self.ending:
            for client in self.clients:
                if client not in due and self.has_stopped(client):
                    due[client] = now_ms() + TTL_MS * self.random.uniform(0.8, 2.5)
                if due.get(client, 1e300) <= now_ms():
                    del due[client]
                    os.kill(client.pid, signal.SIGCONT)
            time.sleep(0.02)

    # ---- faults ----

    def kill(self, victim):
        both = self.random.random() < 0.15
        killed = [victim, 1 - victim] if both else [victim]
        for index in killed:
            self.daemons[index].kill()
        time.sleep(self.random.uniform(0, 0.2))
        for index in killed:
            self.daemons[index].start()
            self.proxies[index].target = self.daemons[index].port
        self.audit.counts["kills"] += len(killed)

    def stop(self, victim):
        self.daemons[victim].signal(signal.SIGSTOP)
        time.sleep(TTL_MS / 1000 * self.random.uniform(1.1, 1.4))
        self.daemons[victim].signal(signal.SIGCONT)
        self.audit.counts["stops"] += 1

    def cut(self, victim, mode=None):
        mode = mode or self.random.choice(CUTS)
        delayed = mode == cutting_proxy.DELAY
        seconds = TTL_MS / 1000 * self.random.uniform(0.4, 0.95 if delayed else 3)
        self.proxies[victim].cut(mode, seconds)
        time.sleep(TTL_MS / 1000 * self.random.uniform(0.3, 1))

    def round(self, number):
        victim = self.random.randrange(2)
        probe = Probe(self, number)
        probe.begin(self.daemons[victim])
        time.sleep(self.random.uniform(0, 0.1))
        (self.kill, self.stop, self.cut)[number % 3](victim)
        probe.verify(self.daemons[victim], self.daemons[1 - victim])

    def control_round(self, number):
        """Replies that come late make a deadline matter."""
        self.cut(number % 2, cutting_proxy.DELAY)

    # ---- the end ----

    def end(self):
        with open(self.folder + "/stop", "w", encoding="ascii"):
            pass
        for client in self.clients:
            try:
                client.wait(30)
            except subprocess.TimeoutExpired:
                client.kill()
                self.audit.problem("ended early", "a client does not end")
        self.ending = True
        self.resumer.join()
        for proxy in self.proxies:
            self.audit.counts["cuts"] += proxy.cut_count
            proxy.end()

    def judge(self):
        finished = check_logs(self.folder, self.audit)
        for daemon in self.daemons:
            connection = daemon.connect()
            for identity in finished:
                reply = connection.call("ONCE.STATUS", identity)
                if reply["outcome"] != "done" or reply["result"] != finished[identity]:
                    self.audit.problem("lost ids", f"{identity}: {reply}")
            connection.close()
        for key in KEYS:
            tried, stale, lost, writes = GuardedValue(self.folder, key).audit()
            self.audit.counts.update({"stale tried": tried, "stale accepted": stale,
                                      "lost updates": lost, "writes": writes})
        for daemon in self.daemons:
            if not daemon.end():
                self.audit.problem("failed exits", "a daemon")

    def run(self, rounds):
        try:
            for number in range(rounds):
                (self.round if self.control is None else self.control_round)(number)
            self.end()
            self.judge()
        finally:
            self.ending = True
            for process in self.clients + [daemon.process for daemon in self.daemons]:
                if process.poll() is None:
                    process.kill()
                    process.wait()


def run_group(folder, program, number, rounds, control, results):
    audit = Audit()
    try:
        group = Group(folder, program, number, control)
        audit = group.audit
        group.run(rounds)
    except Exception as error:  # the other groups go on; this one fails the run
        audit.problem("ended early", f"group {number}: {error!r}")
    results.put((dict(audit.counts), audit.problems))


def run_groups(folder, program, kinds):
    """Side by side: for each kind (control or None, groups, rounds of them together) its audit."""
    results, processes, first = {}, [], 0
    for control, groups, rounds in kinds:
        results[control] = multiprocessing.Queue()
        for number in range(groups):
            share = rounds // groups + (number < rounds % groups)
            processes.append(multiprocessing.Process(
                target=run_group,
                args=(folder, program, first + number, share, control, results[control])))
            processes[-1].start()
        first += groups
    audits = {}
    for control, groups, _ in kinds:
        audits[control] = Audit()
        for _ in range(groups):
            counts, problems = results[control].get()
            audits[control].counts.update(counts)
            audits[control].problems += problems
    for process in processes:
        process.join()
    return audits


def report(audit, rounds, tap):
    counts = audit.counts
    figures = ", ".join(f"{name} {counts[name]}" for name in sorted(counts))
    print(f"# {rounds} rounds: {figures}")
    for kind in MUST_NOT:
        tap.case(counts[kind] == 0, f"{rounds} rounds: 0 {kind}",
                 [text for text in audit.problems if text.startswith(kind + ":")][:10])
    for kind in MUST_HAPPEN:
        tap.case(counts[kind] > 0, f"{rounds} rounds: some {kind}")


def report_controls(audits, tap):
    for control, audit in audits.items():
        counts, sees = audit.counts, CONTROLS[control]
        print(f"# late replies, client {control}: overlaps {counts['overlaps']} in "
              f"{counts['sections']} sections, stale writes tried {counts['stale tried']}, "
              f"accepted {counts['stale accepted']}")
        tap.case((counts["overlaps"] > 0) == sees and counts["stale accepted"] == 0 and
                 counts["sections"] > 0,
                 f"late replies, client {control}: {'some' if sees else 'no'} overlaps",
                 audit.problems)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    tap, begun = Tap(), time.monotonic()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        program = os.path.abspath(options.program)
        audits = run_groups(folder, program, [(None, GROUPS, options.rounds)])
        report(audits[None], options.rounds, tap)
        os.mkdir(folder + "/controls")
        audits = run_groups(folder + "/controls", program,
                            [(control, 2, CONTROL_ROUNDS) for control in CONTROLS])
        report_controls(audits, tap)
    print(f"# {time.monotonic() - begun:.0f} s in all")
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
