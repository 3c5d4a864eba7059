#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The orderly end of the daemon: serve_drain.py PROGRAM. Each case has daemons of its own, and all
cases run side by side, because most of them wait. Prints TAP.
"""

import concurrent.futures
import os
import signal
import sys
import time

from serve_kit import (Cases, Closed, Daemon, Pipes, WAIT_S, encode, folder, pairs, until, waiters)

PROGRAM = os.path.realpath(sys.argv[1])
HOUR = 3600000
STOPPING = "unavailable: the daemon is stopping; try another one"
PROMPT_S = 3  # "at once" on a slow machine with sanitizers
files = iter(range(1000))


def file_store():
    return f"file:{folder}/{next(files)}.log"


def store_of(kind):
    return "memory:" if kind == "memory" else file_store()


def signalled(daemon, number=signal.SIGTERM):
    """Sends the signal; when."""
    daemon.process.send_signal(number)
    return time.monotonic()


def ended(daemon):
    """Waits for the end of the daemon, which must be an orderly one; when."""
    status = daemon.process.wait(WAIT_S)
    assert status == 0, (status, daemon.logged()[-2000:])
    return time.monotonic()


def refused(reply):
    reply = pairs(reply)
    assert reply["outcome"] == "unavailable" and reply["text"] == STOPPING, reply
    assert reply["refusal"] == "api_error" and reply["retry_after_ms"] > 0, reply


def status(daemon, key):
    with daemon.connect() as asker:
        return asker.call("LOCK.STATUS", key)


# ---- waiters ----


def waiters_are_refused(kind):
    store = store_of(kind)
    daemon = Daemon(PROGRAM, store)
    with daemon.connect() as holder, daemon.connect() as plain, daemon.connect() as named, \
            daemon.connect(3) as pushed:
        holder.ok("LOCK.ACQUIRE", "k", "h", HOUR)
        plain.send(encode("LOCK.ACQUIRE", "k", "w", HOUR, "WAIT", -1))
        named.send(encode("LOCK.ACQUIRE", "k", "w", HOUR, "WAIT", 60000, "ID", "n"))
        assert pushed.call("LOCK.ACQUIRE", "k", "w", HOUR, "WAIT", -1, "ASYNC", "ID",
                           "p")["outcome"] == "waiting"
        with daemon.connect() as gone:
            gone.send(encode("LOCK.ACQUIRE", "k", "w", HOUR, "WAIT", -1, "ID", "g"))
            waiters(holder, "k", 4)
        began = signalled(daemon)
        refused(plain.read())
        refused(named.read())
        kind, name, result = pushed.push()
        assert (kind, name) == ("lock.result", "p"), (kind, name)
        refused(result)
        for client in (holder, plain, named, pushed):
            assert client.ends() == []
        assert ended(daemon) - began < PROMPT_S
    if store.startswith("file:"):  # D1, and the queue entry of the daemon has gone
        view = status(Daemon(PROGRAM, store), "k")
        assert (view["holder"], view["waiters"]) == ("h", 0), view


def a_thousand_waiters_are_refused(kind):
    store = store_of(kind)
    daemon = Daemon(PROGRAM, store)
    alone, together, each = 200, 8, 100
    with daemon.connect() as holder:
        holder.ok("LOCK.ACQUIRE", "k", "h", HOUR)
        single = [daemon.connect() for _ in range(alone)]
        several = [daemon.connect(3) for _ in range(together)]
        for client in single:
            client.send(encode("LOCK.ACQUIRE", "k", "w", HOUR, "WAIT", -1))
        for number, client in enumerate(several):
            client.send(b"".join(
                encode("LOCK.ACQUIRE", "k", "w", HOUR, "WAIT", -1, "ASYNC", "ID", f"{number}/{i}")
                for i in range(each)))
            for _ in range(each):
                assert client.read()["outcome"] == "waiting"
        waiters(holder, "k", alone + together * each)
        began = signalled(daemon)
        for client in single:
            refused(client.read())
            client.close()
        for client in several:
            for _ in range(each):
                refused(client.push()[2])
            client.close()
    assert ended(daemon) - began < 2 * PROMPT_S


def no_waiter_is_granted_instead_of_a_released_grant(kind):
    """The end of a bound connection, in the drain, releases its grant to nobody here."""
    store = store_of(kind)
    daemon = Daemon(PROGRAM, store)
    holder, waiter = daemon.connect(), daemon.connect()
    holder.ok("LOCK.ACQUIRE", "k", "h", HOUR, "BIND")
    waiter.send(encode("LOCK.ACQUIRE", "k", "w", HOUR, "WAIT", -1))
    waiters(holder, "k", 1)
    signalled(daemon)
    holder.close()
    refused(waiter.read())
    assert waiter.ends() == []
    ended(daemon)
    if store.startswith("file:"):
        view = status(Daemon(PROGRAM, store), "k")
        assert view["state"] == "free", view


# ---- bound grants ----


def bound_grants_are_kept_and_renewed(kind):
    store = store_of(kind)
    daemon, other = Daemon(PROGRAM, store), None
    with daemon.connect(3) as bound, daemon.connect() as unbound:
        bound.ok("LOCK.ACQUIRE", "k", "b", 2000, "BIND")
        token = bound.token("LOCK.ACQUIRE", "mine", "b", 60000)
        once = bound.token("ONCE.BEGIN", "job", "b", 60000)
        unbound.ok("LOCK.ACQUIRE", "u", "u", 2000)
        signalled(daemon)
        assert unbound.ends() == []
        assert bound.quiet(5), bound.push()  # neither an end nor lock.lost
        assert bound.call("LOCK.STATUS", "k")["holder"] == "b"
        assert bound.call("LOCK.STATUS", "u")["state"] == "free"
        for call in (("LOCK.ACQUIRE", "new", "b", HOUR), ("ONCE.BEGIN", "new", "b", HOUR),
                     ("LOCK.ACQUIRE", "new", "b", HOUR, "WAIT", 5000), ("ONCE.MARK", "new"),
                     ("LOCK.ACQUIRE_ALL", 2, "new", "newer", "b", HOUR), ("LOCK.WATCH", "")):
            refused(bound.call(*call))
        bound.ok("LOCK.RENEW", "mine", token, 60000)
        bound.ok("LOCK.RELEASE", "mine", token)
        bound.ok("ONCE.FINISH", "job", once)
        assert [view["key"] for view in bound.ok("LOCK.LIST")["keys"]].count("k") == 1
        if store.startswith("file:"):
            other = Daemon(PROGRAM, store)
            assert status(other, "k")["holder"] == "b"
        assert daemon.process.poll() is None
    closed = time.monotonic()
    assert ended(daemon) - closed < PROMPT_S
    if other is not None:
        view = status(other, "k")
        assert view["state"] == "free", view


def after_ten_seconds_grants_are_left_to_their_ttl(kind):
    store = store_of(kind)
    daemon = Daemon(PROGRAM, store)
    with daemon.connect() as bound:
        token = bound.token("LOCK.ACQUIRE", "k", "b", 60000, "BIND")
        began = signalled(daemon)
        assert bound.ends() == []
        took = ended(daemon) - began
        assert 9.5 < took < 10 + PROMPT_S, took
    if store.startswith("file:"):
        other = Daemon(PROGRAM, store)
        view = status(other, "k")
        assert (view["holder"], view["token"]) == ("b", token), view
        with other.connect() as again:  # as D1 says
            again.ok("LOCK.RENEW", "k", token, 60000, "BIND")


def a_new_daemon_takes_over(kind):
    """The address is free while the old daemon drains."""
    store = store_of(kind)
    path = f"{folder}/{next(files)}.sock"
    old = Daemon(PROGRAM, store, listen="off", unix=path)
    bound = old.connect(unix=True)
    bound.ok("LOCK.ACQUIRE", "k", "b", 60000, "BIND")
    signalled(old)
    until(lambda: not os.path.exists(path))
    new = Daemon(PROGRAM, store, listen="off", unix=path)
    with new.connect(unix=True) as client:
        assert client.call("LOCK.ACQUIRE", "k", "c", HOUR)["outcome"] == (
            "ok" if kind == "memory" else "busy")
    bound.close()
    ended(old)
    assert os.path.exists(path), "the old daemon has removed the socket of the new one"


# ---- the end ----


def an_idle_daemon_ends_at_once(kind):
    daemon = Daemon(PROGRAM, store_of(kind))
    with daemon.connect() as client, daemon.connect():
        client.ok("LOCK.ACQUIRE", "k", "h", HOUR)
        began = signalled(daemon, signal.SIGINT)
        assert ended(daemon) - began < PROMPT_S


def a_peer_that_always_sends_does_not_delay_the_end(kind):
    daemon = Daemon(PROGRAM, store_of(kind))
    with daemon.connect() as client:
        token = client.token("LOCK.ACQUIRE", "k", "h", HOUR)
        began = signalled(daemon)
        try:
            while time.monotonic() < began + WAIT_S:
                client.send(encode("LOCK.RENEW", "k", token) * 20)
                for _ in range(20):
                    assert pairs(client.read())["outcome"] == "ok"
        except Closed:
            pass
        assert ended(daemon) - began < 2 * PROMPT_S


def watches_end(kind):
    daemon = Daemon(PROGRAM, store_of(kind))
    with daemon.connect(3) as pushed, daemon.connect() as old:
        pushed.ok("LOCK.WATCH", "p/")
        assert old.call("SUBSCRIBE", "p/") == ["subscribe", "p/", 1]
        signalled(daemon)
        kind, prefix, report = pushed.push()
        assert (kind, prefix) == ("lock.watch_ended", "p/"), (kind, prefix)
        refused(report)
        assert old.push() == ["unsubscribe", "p/", 0]
        assert pushed.ends() == [] and old.ends() == []
        ended(daemon)


def a_second_signal_ends_at_once(kind):
    daemon = Daemon(PROGRAM, store_of(kind))
    with daemon.connect() as bound:
        bound.ok("LOCK.ACQUIRE", "k", "b", HOUR, "BIND")
        signalled(daemon)
        until(lambda: "SIGTERM" in daemon.logged())
        began = signalled(daemon, signal.SIGINT)
        assert daemon.process.wait(WAIT_S) == 1
        assert time.monotonic() - began < PROMPT_S


def pipes_drain_too(kind):
    daemon = Pipes(PROGRAM, store_of(kind))
    client = daemon.connect(3)
    client.ok("LOCK.ACQUIRE", "k", "b", 2000, "BIND")
    assert client.call("LOCK.ACQUIRE", "k", "w", HOUR, "WAIT", -1, "ASYNC", "ID",
                       "p")["outcome"] == "waiting"
    signalled(daemon)
    refused(client.push()[2])
    assert client.quiet(3), client.push()
    assert client.call("LOCK.STATUS", "k")["holder"] == "b"
    client.close()  # and the daemon ends with status 0
    idle = Pipes(PROGRAM, store_of(kind))
    with idle.connect() as client:
        assert client.call("PING") == "PONG"
        began = signalled(idle)
        assert client.ends() == []
        assert ended(idle) - began < PROMPT_S


CASES = (
    after_ten_seconds_grants_are_left_to_their_ttl, bound_grants_are_kept_and_renewed,
    pipes_drain_too, a_thousand_waiters_are_refused, waiters_are_refused,
    no_waiter_is_granted_instead_of_a_released_grant, a_new_daemon_takes_over,
    an_idle_daemon_ends_at_once, a_peer_that_always_sends_does_not_delay_the_end, watches_end,
    a_second_signal_ends_at_once,
)


def main():
    cases = Cases()
    with concurrent.futures.ThreadPoolExecutor(max_workers=10) as pool:
        started = [(f"{function.__name__.replace('_', ' ')}, {kind}", pool.submit(function, kind))
                   for function in CASES for kind in ("memory", "file")]
        for name, future in started:
            cases.run(name, future.result)
    cases.finish()


main()
