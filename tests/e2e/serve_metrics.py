#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""/metrics, /readyz and /healthz of a daemon on a Redis server of its own: serve_metrics.py PROGRAM

Each metric that an operator needs moves by what it counts, promtool accepts the text, and all
series are there from the start. Prints TAP.
"""

import http.client
import json
import os
import signal
import subprocess
import sys
import time

from serve_kit import Cases, Daemon, Redis, encode, pairs, until

PROGRAM = os.path.realpath(sys.argv[1])
HOUR = 3600000

server = Redis()
daemon = Daemon(PROGRAM, server.url, "--store-timeout", "1s", "--metrics-prefix", "wfe",
                http="127.0.0.1:0")
ann, bob = daemon.connect(3), daemon.connect()


def get(path, of=daemon):
    """Status, fields and body, on a connection of its own."""
    connection = http.client.HTTPConnection(*of.web, timeout=30)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, answer.headers, body


def scrape(of=daemon):
    """Series and their values."""
    status, headers, body = get("/metrics", of)
    assert status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4")
    lines = [line.rsplit(" ", 1) for line in body.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in lines}


def value(name):
    return scrape()["wfe_" + name]


class Moves:
    """The change of a series while the block runs."""

    def __init__(self, *names, least=1):
        self.names, self.least = names, least

    def __enter__(self):
        before = scrape()
        self.before = [before["wfe_" + name] for name in self.names]

    def __exit__(self, kind, *_):
        after = scrape()
        for name, before in zip(self.names, self.before):
            grown = after["wfe_" + name] - before
            assert kind or grown >= self.least, f"{name} grew by {grown}"


first = scrape()


def failures(reason):
    return f'lock_acquisition_failures_total{{reason="{reason}"}}'


# ---- what the seeds name ----

def acquisitions_and_releases():
    with Moves("lock_acquisition_attempts_total", "lock_acquisition_successes_total",
               "lock_acquisition_duration_seconds_count", "lock_acquisition_duration_seconds_sum",
               least=0.0001):
        token = ann.token("LOCK.ACQUIRE", "k", "ann", 60000)
    assert value("locks_held") == 1
    with Moves("lock_hold_duration_seconds_count", "lock_releases_total"):
        time.sleep(0.1)
        ann.ok("LOCK.RELEASE", "k", token)
    assert value("lock_hold_duration_seconds_sum") >= 0.1
    assert value("locks_held") == 0


def conflicts_and_waits():
    """Requeues and conflicts are acquisitions that found the lock taken."""
    token = ann.token("LOCK.ACQUIRE", "k", "ann", 60000)
    with Moves(failures("contention")):
        assert bob.call("LOCK.ACQUIRE", "k", "bob", 60000)["outcome"] == "busy"
    with Moves(failures("timeout"), "lock_wait_duration_seconds_count"):
        bob.send(encode("LOCK.ACQUIRE", "k", "bob", 60000, "WAIT", 1500))
        until(lambda: value("lock_waiters") == 1)
        assert value("queue_oldest_wait_seconds") > 0
        assert pairs(bob.read())["outcome"] == "busy"
    assert value("lock_waiters") == 0 and value("queue_oldest_wait_seconds") == 0
    ann.ok("LOCK.RELEASE", "k", token, "COOLDOWN", 60000)
    with Moves(failures("cooling")):
        assert bob.call("LOCK.ACQUIRE", "k", "bob", 60000)["outcome"] == "cooling"
    ann.ok("LOCK.CLEAR", "k")


def stale_locks_recovered():
    with Moves("lock_takeovers_total"):
        ann.token("LOCK.ACQUIRE", "dead", "ann", 500)
        token = bob.token("LOCK.ACQUIRE", "dead", "bob", 60000, "WAIT", 20000)
    bob.ok("LOCK.RELEASE", "dead", token)


def losses():
    with Moves("lock_lost_total"):  # a bound grant
        ann.token("LOCK.ACQUIRE", "k", "ann", 1500, "BIND")
        assert value("bindings") == 1
        bob.ok("LOCK.BREAK", "k", "test", "NOW")
        assert ann.push()[0] == "lock.lost"
    with Moves("lock_lost_total"):  # a late renewal
        token = ann.token("LOCK.ACQUIRE", "k", "ann", 60000)
        bob.ok("LOCK.BREAK", "k", "test", "NOW")
        assert ann.call("LOCK.RENEW", "k", token)["outcome"] == "stale"
    with Moves("lock_lost_total"):  # a late release
        token = ann.token("LOCK.ACQUIRE", "k", "ann", 60000)
        bob.ok("LOCK.BREAK", "k", "test", "NOW")
        assert ann.call("LOCK.RELEASE", "k", token)["outcome"] == "stale"
    assert value("locks_held") == 0


def store_errors():
    """The server is gone, and comes back."""
    with Moves(failures("api_error"), 'store_errors_total{kind="unavailable"}'):
        server.kill()
        assert bob.call("LOCK.ACQUIRE", "new", "bob", 60000)["outcome"] == "unavailable"
        until(lambda: bob.call("LOCK.STATUS", "new")["outcome"] == "unavailable" and
              value("breaker_open") == 1)
        server.start()
    until(lambda: bob.call("LOCK.STATUS", "new")["outcome"] == "ok")
    until(lambda: value("breaker_open") == 0)


def retries():
    """A daemon with more time repeats its requests until the server is back."""
    patient = Daemon(PROGRAM, server.url, "--store-timeout", "60s", http="127.0.0.1:0")
    with patient.connect() as client:
        client.token("LOCK.ACQUIRE", "before", "x", 60000)
        assert scrape(patient)["leasehold_lock_retries_total"] == 0
        server.kill()
        client.send(encode("LOCK.ACQUIRE", "patient", "x", 60000, "WAIT", 60000))
        until(lambda: scrape(patient)["leasehold_lock_retries_total"] > 0)
        server.start()
        assert pairs(client.read())["outcome"] == "ok"


def claims():
    with Moves('once_claims_total{outcome="new"}', "lock_hold_duration_seconds_count"):
        token = ann.token("ONCE.BEGIN", "id", "ann", 60000)
        with Moves('once_claims_total{outcome="running"}'):
            assert bob.call("ONCE.BEGIN", "id", "bob", 60000)["outcome"] == "busy"
        ann.ok("ONCE.FINISH", "id", token)
    with Moves('once_claims_total{outcome="done"}', failures("duplicate")):
        assert bob.call("ONCE.BEGIN", "id", "bob", 60000)["outcome"] == "done"


def the_daemon_itself():
    before = scrape()
    assert before['wfe_connections{protocol="resp"}'] == 2
    assert before['wfe_connections{protocol="http"}'] == 1  # this one
    with Moves('connections_total{protocol="resp"}', 'connections_total{protocol="http"}',
               "commands_total"):
        with daemon.connect(3) as client:
            assert value('connections{protocol="resp"}') == 3
            client.ok("LOCK.WATCH", "x/")
            assert value("watches") == 1
    until(lambda: value("watches") == 0)
    assert before["process_cpu_seconds_total"] > 0
    assert before["process_open_fds"] >= 5
    assert abs(before["process_start_time_seconds"] - time.time()) < 3600


# ---- the text ----

def promtool_accepts_it():
    body = get("/metrics")[2]
    result = subprocess.run(["promtool", "check", "metrics"], input=body, capture_output=True,
                            text=True)
    assert result.returncode == 0 and not result.stdout + result.stderr, result
    assert 'wfe_build_info{version="' in body
    assert "leasehold_" not in body, "the prefix is not used everywhere"


def all_series_are_there_from_the_start():
    last = scrape()
    assert first.keys() == last.keys(), first.keys() ^ last.keys()
    moved = [name for name in first if first[name] != last[name]]
    assert len(moved) > 50, moved
    counters = [name for name in first if name.startswith("wfe_lock_") or "claims" in name]
    assert len(counters) > 60 and not any(first[name] for name in counters)


# ---- health ----

def readiness():
    status, _, body = get("/readyz")
    assert status == 200, body
    assert get("/healthz")[0] == 200
    server.stop()
    try:
        until(lambda: get("/readyz")[0] == 503)
        began = time.monotonic()
        status, _, body = get("/healthz")
        assert status == 200 and time.monotonic() - began < 1, body
        began = time.monotonic()
        status, headers, body = get("/readyz")
        assert status == 503 and json.loads(body)["outcome"] == "unavailable", body
        assert time.monotonic() - began < 6
        scrape()
        until(lambda: value("store_up") == 0)
    finally:
        server.go_on()
    until(lambda: get("/readyz")[0] == 200)
    assert value("store_up") == 1


def a_stopping_daemon_is_not_ready():
    stopping = Daemon(PROGRAM, "memory:", http="127.0.0.1:0")
    with stopping.connect(3) as client:
        client.token("LOCK.ACQUIRE", "k", "x", HOUR, "BIND")  # keeps it for up to 10 s
        stopping.process.send_signal(signal.SIGTERM)
        until(lambda: get("/readyz", stopping)[0] == 503)
        assert "stopping" in json.loads(get("/readyz", stopping)[2])["text"]
        assert get("/healthz", stopping)[0] == 200
        assert scrape(stopping)["leasehold_draining"] == 1
    assert stopping.process.wait(60) == 0


cases = Cases()
cases.run("acquisitions, their duration, holds and releases", acquisitions_and_releases)
cases.run("conflicts, timeouts, cooldowns and waits", conflicts_and_waits)
cases.run("stale locks that were recovered", stale_locks_recovered)
cases.run("losses of bound and other grants", losses)
cases.run("store errors and the breaker", store_errors)
cases.run("retries", retries)
cases.run("claims of ids", claims)
cases.run("connections, commands, watches and the process", the_daemon_itself)
cases.run("promtool accepts the text, which has the prefix", promtool_accepts_it)
cases.run("all series are there from the start, counters at 0", all_series_are_there_from_the_start)
cases.run("ready while the store answers, healthy always", readiness)
cases.run("a stopping daemon is not ready, but healthy", a_stopping_daemon_is_not_ready)
cases.finish()
