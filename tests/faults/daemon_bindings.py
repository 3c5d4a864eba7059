#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""BIND and the end of connections: daemon_bindings.py FOLDER PROGRAM [--rounds N] [--half-open]

Shown and measured on two daemons of one file: how long a grant with BIND stays after its peer is
killed, after its daemon is killed, and after a new connection bound it again. --half-open takes a
minute instead: in a network namespace of its own the address of the peer vanishes, so that no FIN
and no RST arrives; the daemon renews the grant until keep-alive fails, and then leaves it to its
TTL. Prints TAP.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # the tree stays clean
from resp_client import Connection, now_ms
from serve_process import Daemon
from tap_cases import Tap

LONG_MS, SHORT_MS, SLACK_MS = 30000, 2000, 8000
DRAIN_MS = 10000  # a daemon that ends in order renews bound grants until then
KEEP_ALIVE_MS, PEER = 60000, "10.9.0.2"
HERE = os.path.dirname(os.path.abspath(__file__))

# The peer: acquires with BIND, prints the token, and stays. With "unread" a reply is left unread.
HOLD = """
import sys, time
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
from resp_client import Connection
connection = Connection(int(sys.argv[2]))
reply = connection.call("LOCK.ACQUIRE", sys.argv[3], "peer", sys.argv[4], "BIND")
print(reply["token"], flush=True)
if sys.argv[5] == "unread":
    connection.send("PING")
    time.sleep(0.2)
    print("sent", flush=True)
time.sleep(600)
"""


def start_peer(port, key, ttl_ms, how="read"):
    peer = subprocess.Popen([sys.executable, "-c", HOLD, HERE, str(port), key, str(ttl_ms), how],
                            stdout=subprocess.PIPE)
    token = int(peer.stdout.readline())
    if how == "unread":
        peer.stdout.readline()
    return peer, token


def kill_peer(peer):
    peer.kill()
    peer.wait()
    peer.stdout.close()


class Waiter:
    """Waits in the queue at that daemon."""

    def __init__(self, daemon, key):
        self.key, self.connection = key, daemon.connect()
        self.connection.send("LOCK.ACQUIRE", key, "waiter", LONG_MS, "WAIT", 2 * LONG_MS)
        time.sleep(0.1)

    def granted_after(self, since_ms):
        reply = self.connection.reply(timeout_ms=3 * LONG_MS)
        took_ms = now_ms() - since_ms
        if reply["outcome"] != "ok":
            raise RuntimeError(f"{self.key}: {reply}")
        self.connection.call("LOCK.RELEASE", self.key, reply["token"])
        self.connection.close()
        return took_ms


class Suite:
    def __init__(self, daemons, rounds, tap):
        self.daemons, self.rounds, self.tap = daemons, rounds, tap

    def peer_killed(self):
        took = []
        for number in range(self.rounds):
            peer, _ = start_peer(self.daemons[0].port, "killed", LONG_MS)
            waiter = Waiter(self.daemons[number % 2], "killed")
            since_ms = now_ms()
            kill_peer(peer)
            took.append(waiter.granted_after(since_ms))
        took.sort()
        print(f"# peer killed, TTL {LONG_MS} ms: the next is granted after "
              f"{took[len(took) // 2]:.1f} ms (median), {took[-1]:.1f} ms (maximum) of {len(took)}")
        self.tap.case(took[-1] < LONG_MS / 3,
                      "kill -9 of the peer releases its bound grant at once")

    def peer_killed_with_unread_reply(self):
        peer, _ = start_peer(self.daemons[0].port, "unread", SHORT_MS, "unread")
        waiter = Waiter(self.daemons[1], "unread")
        since_ms = now_ms()
        kill_peer(peer)
        took = waiter.granted_after(since_ms)
        print(f"# peer killed with an unread reply (the kernel sends RST), TTL {SHORT_MS} ms: "
              f"the next is granted after {took:.0f} ms")
        self.tap.case(took < SHORT_MS + SLACK_MS,
                      "after RST the grant ends by its TTL at the latest")

    def daemon_ended(self, number, name, drains_ms=0):
        peer, _ = start_peer(self.daemons[0].port, name, SHORT_MS)
        time.sleep(SHORT_MS / 1000)  # it is renewed meanwhile
        waiter = Waiter(self.daemons[1], name)
        since_ms = now_ms()
        self.daemons[0].signal(number)
        took = waiter.granted_after(since_ms)
        self.daemons[0].kill()
        self.daemons[0].start()
        kill_peer(peer)
        print(f"# daemon ended by {name}, TTL {SHORT_MS} ms: the next is granted after "
              f"{took:.0f} ms")
        self.tap.case(drains_ms + SHORT_MS / 3 <= took < drains_ms + SHORT_MS + SLACK_MS,
                      f"{name} of the daemon leaves the bound grant to its TTL")

    def bound_again(self):
        """After its daemon was killed the client binds the grant at the other one."""
        first = self.daemons[0].connect()
        token = first.call("LOCK.ACQUIRE", "again", "client", SHORT_MS, "BIND")["token"]
        self.daemons[0].kill()
        second = self.daemons[1].connect()
        renewed = second.call("LOCK.RENEW", "again", token, "BIND")["outcome"]
        self.daemons[0].start()
        time.sleep(1.5 * SHORT_MS / 1000)
        other = self.daemons[0].connect()
        status = other.call("LOCK.STATUS", "again")
        waiter = Waiter(self.daemons[0], "again")
        since_ms = now_ms()
        second.close()
        took = waiter.granted_after(since_ms)
        print(f"# bound again at the other daemon: released {took:.1f} ms after the close")
        self.tap.case(renewed == "ok" and status["token"] == token,
                      "RENEW with BIND at the other daemon keeps the grant beyond its TTL")
        self.tap.case(took < SHORT_MS, "the close of that connection releases it at once")

    def stopped_daemon(self):
        """The daemon continues after the deadline: it must not renew, and it says so."""
        connection = self.daemons[0].connect()
        connection.call("HELLO", 3)
        token = connection.call("LOCK.ACQUIRE", "stopped", "client", SHORT_MS, "BIND")["token"]
        self.daemons[0].signal(signal.SIGSTOP)
        waiter = Waiter(self.daemons[1], "stopped")
        took = waiter.granted_after(now_ms())
        self.daemons[0].signal(signal.SIGCONT)
        push = connection.push(SLACK_MS)
        print(f"# daemon stopped: the next is granted after {took:.0f} ms at the other daemon")
        self.tap.case(push is not None and push[0] == "lock.lost" and push[1]["token"] == token,
                      f"a daemon stopped past the TTL pushes the loss: {push}")
        connection.close()

    def closed_while_stopped(self):
        """A stopped daemon finds the end of a connection whose grant was bound elsewhere since."""
        first = self.daemons[0].connect()
        token = first.call("LOCK.ACQUIRE", "moved", "client", SHORT_MS, "BIND")["token"]
        self.daemons[0].signal(signal.SIGSTOP)
        first.close()
        second = self.daemons[1].connect()
        renewed = second.call("LOCK.RENEW", "moved", token, "BIND")
        time.sleep(1.5 * SHORT_MS / 1000)
        self.daemons[0].signal(signal.SIGCONT)
        self.daemons[0].connect().call("PING")
        time.sleep(SHORT_MS / 4 / 1000)
        status = second.call("LOCK.STATUS", "moved")
        self.tap.case(renewed["outcome"] == "ok" and status["token"] == token,
                      "a daemon stopped past the deadline releases nothing that was bound elsewhere",
                      [str(renewed), str(status)])
        second.close()

    def run(self):
        self.peer_killed()
        self.peer_killed_with_unread_reply()
        self.daemon_ended(signal.SIGKILL, "SIGKILL")
        self.daemon_ended(signal.SIGTERM, "SIGTERM", drains_ms=DRAIN_MS)
        self.bound_again()
        self.stopped_daemon()
        self.closed_while_stopped()


# ---- half-open ----

def ip(*words):
    subprocess.run(["ip", *words], check=True)


def vanish(daemon, tap):
    """The peer's address vanishes. Its grant must stay while keep-alive has not failed."""
    ip("addr", "add", PEER + "/32", "dev", "lo")
    peer = Connection(daemon.port, source=PEER)
    token = peer.call("LOCK.ACQUIRE", "vanished", "peer", SHORT_MS, "BIND")["token"]
    ip("addr", "del", PEER + "/32", "dev", "lo")
    since_ms, ends_ms = now_ms(), None
    other = daemon.connect()
    while ends_ms is None and now_ms() < since_ms + 2 * KEEP_ALIVE_MS:
        if other.call("LOCK.STATUS", "vanished")["token"] != token:
            ends_ms = now_ms() - since_ms
        time.sleep(0.1)
    log = open(daemon.log_path, encoding="utf-8").read()
    print(f"# peer vanished, TTL {SHORT_MS} ms: its grant ends after {ends_ms or -1:.0f} ms")
    tap.case(ends_ms is not None and KEEP_ALIVE_MS / 3 < ends_ms <
             KEEP_ALIVE_MS + SHORT_MS + SLACK_MS,
             "the grant of a vanished peer is renewed until keep-alive fails, then ends by its TTL",
             log.splitlines())
    other.close()
    peer.close()


def half_open(program, folder, tap):
    ip("link", "set", "lo", "up")
    daemon = Daemon(program, f"file:{folder}/store.log", f"{folder}/daemon")
    try:
        vanish(daemon, tap)
    finally:
        daemon.end()


def enter_namespace():
    """Starts this program again in a network namespace. False: there are none here."""
    if os.environ.get("HALF_OPEN_INSIDE") is not None:
        return True
    words = ["unshare", "--user", "--map-root-user", "--net"]
    if subprocess.run([*words, "ip", "link", "set", "lo", "up"], check=False).returncode != 0:
        return False
    os.environ["HALF_OPEN_INSIDE"] = "1"
    os.execvp(words[0], [*words, sys.executable, *sys.argv])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--half-open", action="store_true")
    options = parser.parse_args()
    tap, program = Tap(), os.path.abspath(options.program)
    if options.half_open and not enter_namespace():
        tap.case(True, "network namespaces cannot be had here, so nothing was tried")
        return tap.end()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        if options.half_open:
            half_open(program, folder, tap)
            return tap.end()
        daemons = [Daemon(program, f"file:{folder}/store.log", f"{folder}/daemon-{i}")
                   for i in range(2)]
        try:
            Suite(daemons, options.rounds, tap).run()
        finally:
            for daemon in daemons:
                daemon.end()
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
