#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every alert of dist/alerts fires and resolves: alerts_live.py PROGRAM

Prometheus scrapes daemons every second, one per fault, with the shipped rules, whose durations are
divided by 60. Faults are made side by side; each ends as soon as its alerts fire. Prints TAP.
"""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request

from serve_kit import Cases, Closed, Daemon, Redis, daemons, encode, folder, until

PROGRAM = os.path.realpath(sys.argv[1])
GENERATE = os.path.join(os.path.dirname(__file__), "../../dist/alerts/generate.sh")
DIVIDE = 60
HOUR = 3600000
QUIET_S = 7     # without faults, all windows of rates are full
FIRE_S = 90     # the longest "for" is 30 s, after a window of 5 s
RESOLVE_S = 120  # the longest window is 60 s


class Prometheus:
    """Scrapes the daemons, a job each."""

    def __init__(self, targets):
        rules = subprocess.run([GENERATE, "--divide", str(DIVIDE)], check=True,
                               capture_output=True, text=True).stdout
        self.alerts = re.findall(r"alert: (\w+)", rules)
        with open(f"{folder}/rules.yaml", "w") as file:
            file.write(rules)
        with open(f"{folder}/prometheus.yaml", "w") as file:
            json.dump({
                "global": {"scrape_interval": "1s", "scrape_timeout": "1s",
                           "evaluation_interval": "1s"},
                "rule_files": ["rules.yaml"],
                "scrape_configs": [{"job_name": job, "static_configs": [{"targets": [address]}]}
                                   for job, address in targets.items()]}, file)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.log = open(f"{folder}/prometheus.log", "wb")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yaml", "--log.level=warn",
             f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{self.port}"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        daemons.append(self)
        until(self.is_ready)

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            return json.loads(answer.read() or b"{}") if path.startswith("/api") else answer.status

    def is_ready(self):
        if self.process.poll() is not None:
            raise RuntimeError(open(f"{folder}/prometheus.log").read())
        try:
            return self.get("/-/ready") == 200
        except OSError:
            return False

    def firing(self):
        """Pairs of alert and job."""
        return {(one["labels"]["alertname"], one["labels"]["job"])
                for one in self.get("/api/v1/alerts")["data"]["alerts"] if one["state"] == "firing"}

    def up(self):
        """The jobs of which the last scrape succeeded."""
        return {one["labels"]["job"] for one in
                self.get("/api/v1/targets")["data"]["activeTargets"] if one["health"] == "up"}

    def end(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


class SlowProxy(threading.Thread):
    """Between a daemon and its store: replies wait for `delay` seconds."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.target, self.delay = port, 0.0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", self.target))
            for one, other, late in ((client, server, False), (server, client, True)):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self.forward, args=(one, other, late), daemon=True).start()

    def forward(self, source, target, late):
        try:
            while data := source.recv(65536):
                if late and self.delay:
                    time.sleep(self.delay)
                target.sendall(data)
        except OSError:
            pass
        for one in (source, target):
            one.close()


class Traffic(threading.Thread):
    """A client that acquires and releases keys of its own, and meets a held one if told so."""

    def __init__(self, daemon):
        super().__init__(daemon=True)
        self.daemon_process, self.contends = daemon, False
        self.start()

    def run(self):
        client, number = self.daemon_process.connect(), 0
        while True:
            number += 1  # a new key: the grant of a request without an answer stays
            try:
                reply = client.call("LOCK.ACQUIRE", f"own-{number}", "traffic", 60000)
                if reply["outcome"] == "ok":
                    client.call("LOCK.RELEASE", f"own-{number}", reply["token"])
                if self.contends:
                    client.call("LOCK.ACQUIRE", "held", "traffic", 60000)
            except Closed:
                return
            time.sleep(0.05)


# ---- faults: each has a daemon, and says which alerts it makes ----

class Fault:
    alerts = ()

    def __init__(self, job, daemon):
        self.job, self.daemon = f"{job}/leasehold", daemon
        self.fired, self.resolved = set(), set()

    def begin(self):
        pass

    def stop(self):
        """The fault is over."""


class StoreStops(Fault):
    alerts = ("StoreErrors", "BreakerOpen", "StoreDown")

    def __init__(self):
        self.server = Redis()
        super().__init__("stopped", serve(self.server.url, "--store-timeout", "1s"))
        Traffic(self.daemon)

    def begin(self):
        self.server.stop()

    def stop(self):
        self.server.go_on()


class StoreIsSlow(Fault):
    alerts = ("SlowAcquisition",)

    def __init__(self):
        self.server = Redis()
        self.proxy = SlowProxy(self.server.port)
        super().__init__("slow", serve(f"redis://127.0.0.1:{self.proxy.port}"))
        Traffic(self.daemon)

    def begin(self):
        self.proxy.delay = 0.03

    def stop(self):
        self.proxy.delay = 0.0


class KeyIsContended(Fault):
    alerts = ("Contention",)

    def __init__(self):
        super().__init__("contended", serve("memory:"))
        self.daemon.connect().token("LOCK.ACQUIRE", "held", "holder", HOUR)
        self.traffic = Traffic(self.daemon)

    def begin(self):
        self.traffic.contends = True

    def stop(self):
        self.traffic.contends = False


class ClientWaits(Fault):
    alerts = ("Waiting",)

    def __init__(self):
        super().__init__("waiting", serve("memory:"))
        self.client = self.daemon.connect()
        self.client.token("LOCK.ACQUIRE", "held", "holder", HOUR)
        Traffic(self.daemon)

    def begin(self):
        self.client.send(encode("LOCK.ACQUIRE", "held", "waiter", 60000, "WAIT", -1))

    def stop(self):
        self.client.close()


class GrantIsLost(Fault):
    alerts = ("Lost",)

    def __init__(self):
        super().__init__("lost", serve("memory:"))
        Traffic(self.daemon)

    def begin(self):
        client = self.daemon.connect(3)
        client.token("LOCK.ACQUIRE", "k", "holder", 600, "BIND")
        self.daemon.connect().ok("LOCK.BREAK", "k", "test", "NOW")
        assert client.push()[0] == "lock.lost"


class HoldersDie(Fault):
    alerts = ("Takeovers",)

    def __init__(self):
        super().__init__("dying", serve("memory:"))
        Traffic(self.daemon)

    def begin(self):
        client = self.daemon.connect()
        for _ in range(5):
            client.token("LOCK.ACQUIRE", "k", "dies", 20)
            time.sleep(0.05)
            client.ok("LOCK.RELEASE", "k", client.token("LOCK.ACQUIRE", "k", "takes-over", 60000))


class ManyConnections(Fault):
    alerts = ("Connections",)

    def __init__(self):
        super().__init__("full", serve("memory:", "--max-connections", "12"))
        self.clients = []

    def begin(self):
        self.clients = [self.daemon.connect() for _ in range(10)]  # one is Prometheus

    def stop(self):
        for client in self.clients:
            client.close()


class DaemonDies(Fault):
    alerts = ("Down",)

    def __init__(self):
        super().__init__("dead", serve("memory:"))

    def begin(self):
        self.daemon.kill()

    def stop(self):
        self.daemon = serve("memory:", http=self.daemon.http)


class Nothing(Fault):
    """No alert: the rules are quiet about it."""

    def __init__(self):
        super().__init__("fine", serve("memory:"))
        Traffic(self.daemon)


def serve(store, *options, http="127.0.0.1:0"):
    daemon = Daemon(PROGRAM, store, *options, http=http)
    daemon.http = "%s:%d" % daemon.web
    return daemon


def await_alerts(faults, prometheus):
    """Ends each fault when its alerts fire, and waits until they do not any more."""
    expected = {(f"Leasehold{alert}", fault.job): fault for fault in faults for alert in fault.alerts}
    began, unexpected = time.monotonic(), set()
    while time.monotonic() - began < FIRE_S + RESOLVE_S:
        firing = prometheus.firing()
        unexpected |= firing - expected.keys()
        for pair, fault in expected.items():
            over = len(fault.fired) == len(fault.alerts)
            if pair in firing:
                fault.fired.add(pair)
                fault.resolved.discard(pair)
            elif over:
                fault.resolved.add(pair)
            if not over and len(fault.fired) == len(fault.alerts):
                print(f"# {time.monotonic() - began:.0f} s: {fault.job} fires", flush=True)
                fault.stop()
        if all(fault.resolved == fault.fired and fault.fired for fault in expected.values()):
            break
        time.sleep(0.2)
    print(f"# {time.monotonic() - began:.0f} s: done", flush=True)
    return expected, unexpected


def main():
    cases = Cases()
    faults = [StoreStops(), StoreIsSlow(), KeyIsContended(), ClientWaits(), GrantIsLost(),
              HoldersDie(), ManyConnections(), DaemonDies(), Nothing()]
    prometheus = Prometheus({fault.job: fault.daemon.http for fault in faults})
    until(lambda: len(prometheus.up()) == len(faults))
    time.sleep(QUIET_S)
    cases.tell(not prometheus.firing(), "nothing fires before the faults", str(prometheus.firing()))
    for fault in faults:
        fault.begin()
    expected, unexpected = await_alerts(faults, prometheus)
    for pair, fault in sorted(expected.items(), key=lambda item: item[0]):
        cases.tell(pair in fault.fired, f"{pair[0]} fires on a real fault")
        cases.tell(pair in fault.resolved, f"{pair[0]} resolves after it")
    made = {pair[0] for pair in expected}
    cases.tell(made == set(prometheus.alerts), "every rule has its fault",
               str(made ^ set(prometheus.alerts)))
    for alert, job in sorted(unexpected):  # a stopped store is slow, too
        print(f"# {alert} fired for {job}")
    cases.tell(faults[-1].job not in {job for _, job in unexpected},
               "none fires for a daemon without a fault")
    cases.finish()


main()
