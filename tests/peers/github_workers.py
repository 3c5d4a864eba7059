#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workers on a shared list of issues, killed at random: github_workers.py URL PROGRAM [--rounds N]

Every round has a repository of its own, made in the emulator behind GITHUB_API_URL, with 40 issues
and 8 workers that share one login. Each worker runs `leasehold claim` without a limit; one is
killed every second or so, with kill -9, and started again. CMD takes a kernel lock of its issue, so
that two workers at one issue are seen however short they meet. The rounds run side by side: most of
the time is spent waiting for dead workers. Prints TAP.

Then the same workers take the first issue with the label, without a lock: the harness must see them
meet.
"""

import argparse
import datetime
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

WORKERS, ISSUES, LABEL, POLL_S = 8, 40, "todo", 1
MARGIN_S = 3  # dates are whole seconds
BUSY_S = 6  # a CMD before its kill, and a slow machine

# CMD: fails to get the kernel lock: two are at one issue. Its end is not logged if it is killed.
WORK = """
import fcntl, os, random, sys, time
number, folder = os.environ["LEASEHOLD_ISSUE_NUMBER"], sys.argv[1]
log = os.open(folder + "/log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
note = lambda what: os.write(log, f"{time.monotonic():.3f} {what} {number}\\n".encode())
lock = os.open(folder + "/" + number, os.O_RDWR | os.O_CREAT)
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    note("overlap")
note("start")
time.sleep(random.uniform(0.1, 1.2))
note("end")
"""


def call(method, path, body=None, token="tok_alice"):
    request = urllib.request.Request(
        os.environ["GITHUB_API_URL"] + path,
        None if body is None else json.dumps(body).encode(),
        {"Authorization": "Bearer " + token}, method=method)
    with urllib.request.urlopen(request, timeout=30) as reply:
        return json.loads(reply.read() or b"null")


def descendants(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
            found = [int(child) for child in children.read().split()]
    except OSError:
        return []
    return found + [below for child in found for below in descendants(child)]


class Round(threading.Thread):
    """One repository, its issues and its workers."""

    def __init__(self, number, options, program, lock):
        super().__init__()
        self.repository = f"round-{os.getpid()}-{number}-{'lock' if lock else 'free'}"
        self.options, self.program, self.lock = options, program, lock
        self.token = f"tok_alice_{number % 36 + 2}"
        self.random = random.Random(number)
        self.folder = tempfile.TemporaryDirectory()
        self.workers, self.kills, self.problems, self.succeeded = {}, [], [], 0

    def path(self, rest=""):
        return f"/repos/alice/{self.repository}{rest}"

    def prepare(self):
        call("POST", "/user/repos", {"name": self.repository, "auto_init": True}, self.token)
        self.issues = [call("POST", self.path("/issues"), {"title": f"issue {i}",
                                                           "labels": [LABEL]}, self.token)["number"]
                       for i in range(ISSUES)]

    def left(self):
        query = f"/issues?labels={LABEL}&state=open&per_page=100&sort=created&direction=asc"
        return [issue["number"] for issue in call("GET", self.path(query), None, self.token)]

    def start_worker(self, name):
        store = f"github://alice/{self.repository}?{self.options}"
        environment = dict(os.environ, GITHUB_TOKEN=self.token, HOME=self.folder.name)
        command = [sys.executable, "-c", WORK, self.folder.name]
        if self.lock:
            command = [self.program, "--quiet", "--store", store, "claim", "--label", LABEL,
                       "--max", "0", "--holder", name, "--", *command]
        else:
            environment["LEASEHOLD_ISSUE_NUMBER"] = str(self.issues[0])
        self.workers[name] = subprocess.Popen(
            command, env=environment, start_new_session=True, stdin=subprocess.DEVNULL,
            stderr=open(self.folder.name + "/errors", "ab"))

    def kill(self, name):
        """Either the process that the shell sees, or all of the worker's own processes at once."""
        pid = self.workers[name].pid
        below = descendants(pid)
        for victim in [pid] + (below[:1] if self.random.random() < 0.7 else []):
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.workers[name].wait()
        self.kills.append(time.monotonic())

    def finish(self):
        for worker in self.workers.values():
            for pid in [worker.pid] + descendants(worker.pid):
                try:
                    os.kill(pid, signal.SIGTERM)
                except ProcessLookupError:
                    pass
            try:
                worker.wait(20)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()

    def run(self):
        try:
            self.prepare()
            for i in range(WORKERS):
                self.start_worker(f"w{i}")
            self.watch()
            self.finish()
            self.judge()
        except Exception as error:  # pylint: disable=broad-except
            self.problems.append(f"{type(error).__name__}: {error}")
            self.finish()

    def watch(self):
        until = time.monotonic() + (150 if self.lock else 3)
        while time.monotonic() < until and (not self.lock or self.left()):
            time.sleep(self.random.uniform(0.6, 1.4))
            name = f"w{self.random.randrange(WORKERS)}"
            if not self.lock:
                self.start_worker(name + str(len(self.workers)))
            elif len(self.kills) < 12:
                self.kill(name)
                self.start_worker(name)
        if self.lock and self.left():
            self.problems.append(f"issues are left: {self.left()}")

    def events(self):
        with open(self.folder.name + "/log", encoding="ascii") as log:
            for line in log:
                at, what, number = line.split()
                yield float(at), what, int(number)

    def judge(self):
        events = list(self.events())
        self.overlaps = sum(1 for _, what, _ in events if what == "overlap")
        if not self.lock:
            return
        if self.overlaps:
            self.problems.append(f"{self.overlaps} times two workers at one issue")
        starts, ends = {}, {}
        for at, what, number in events:
            if what != "overlap":
                (starts if what == "start" else ends).setdefault(number, []).append(at)
        missing = [number for number in self.issues if number not in ends]
        if missing:
            self.problems.append(f"never handled: {missing}")
        self.takeovers = [later - earlier for number in self.issues
                          for earlier, later in zip(starts.get(number, []),
                                                    starts.get(number, [])[1:])]
        granted = {number: self.read_history(number) for number in self.issues}
        late = [(low, high) for i, low in enumerate(self.issues) for high in self.issues[i + 1:]
                if granted[high] + POLL_S + 1 < granted[low]]  # dates are whole seconds
        if late:
            self.problems.append(f"a higher issue was granted first: {late[:3]}")

    def read_history(self, number):
        """When the issue was granted first. A success is a record that became cooling."""
        said = subprocess.run(
            [self.program, "--json", "--store", f"github://alice/{self.repository}?{self.options}",
             "history", str(number)], env=dict(os.environ, GITHUB_TOKEN=self.token),
            capture_output=True, text=True, check=False).stdout
        records = [json.loads(line) for line in said.splitlines()][::-1]
        states = [record["state"] for record in records]
        times = sum(1 for i, state in enumerate(states)
                    if state == "cooling" and (i == 0 or states[i - 1] != "cooling"))
        self.succeeded += times
        if times != 1:
            self.problems.append(f"issue {number} succeeded {times} times: {states}")
        dates = [record["written_at"] for record in records if record["state"] == "held"]
        return datetime.datetime.fromisoformat(dates[0].replace("Z", "+00:00")).timestamp()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--stale", type=int, default=20)
    settings = parser.parse_args()
    options = (f"stale={settings.stale}s&heartbeat=3s&poll={POLL_S}s&pace=0&writes=1000000"
               "&budget=1000000&show=off")
    program = os.path.realpath(settings.program)
    verdicts = []
    for first in range(0, settings.rounds, 5):
        rounds = [Round(i, options, program, True)
                  for i in range(first, min(first + 5, settings.rounds))]
        for one in rounds:
            one.start()
        for one in rounds:
            one.join()
        for one in rounds:
            longest = max(getattr(one, "takeovers", []), default=0)
            print(f"# {ISSUES} issues, {WORKERS} workers, {len(one.kills)} kills: "
                  f"{one.succeeded} succeeded, {len(getattr(one, 'takeovers', []))} started again, "
                  f"the last after {longest:.1f} s (stale {settings.stale} s)")
            for problem in one.problems:
                print(f"# {problem}")
            bound = settings.stale + MARGIN_S + 2 * POLL_S + BUSY_S
            verdicts += [(not one.problems, "every issue is handled once, by one at a time"),
                         (longest <= bound, f"a dead worker's issue is taken within {bound} s")]
    unlocked = Round(99, options, program, False)
    unlocked.start()
    unlocked.join()
    overlaps = getattr(unlocked, "overlaps", 0)
    print(f"# without the lock: {overlaps} times two workers at one issue",
          unlocked.problems or "")
    verdicts.append((overlaps > 0, "without the lock, workers meet"))
    for number, (passed, what) in enumerate(verdicts, 1):
        print(f"{'' if passed else 'not '}ok {number} - {what}")
    print(f"1..{len(verdicts)}")
    return 0 if all(passed for passed, _ in verdicts) else 1


sys.exit(main())
