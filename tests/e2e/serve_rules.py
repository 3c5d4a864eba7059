#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of remote grants, order, waits, watches and pages: serve_rules.py STORE PROGRAM

docs/daemon.md has the rules, D1 to D6. STORE "file:" is a folder of its own; on memory: there is no
second daemon. Prints TAP.
"""

import json
import os
import re
import sys
import time

from serve_kit import Cases, Daemon, Pipes, Push, encode, folder, pairs, until, waiters

STORE, PROGRAM = sys.argv[1], os.path.realpath(sys.argv[2])
if STORE == "file:":
    STORE = f"file:{folder}/locks.log"
SHARED = not STORE.startswith("memory:")
SLOW = STORE.startswith("k8s:")  # each write is one of the API server
TTL = 3000 if SLOW else 1500
HOUR = 3600000
RUN = f"r{os.getpid()}/"

one = Daemon(PROGRAM, STORE)
other = Daemon(PROGRAM, STORE) if SHARED else one


def state(client, key):
    return client.call("LOCK.STATUS", RUN + key)["state"]


def until_free(client, key):
    until(lambda: state(client, key) == "free")


# ---- request ids ----


def repeats_get_the_same_grant():
    with one.connect() as a, one.connect(3) as b, other.connect() as c:
        call = ("LOCK.ACQUIRE", RUN + "id", "w", HOUR, "ID", RUN + "one")
        token = a.token(*call)
        for client in (a, b, c, a):
            reply = client.ok(*call)
            assert (reply["token"], reply["holder"]) == (token, "w"), reply
        assert a.call(*call[:-1], RUN + "two")["outcome"] == "busy"
        assert a.call(*call[:-2])["outcome"] == "busy"
        a.ok("LOCK.RELEASE", RUN + "id", token)
        assert c.token(*call) != token


def ids_of_another_key_or_holder_mismatch():
    with one.connect() as a, one.connect(3) as b, other.connect() as c:
        a.ok("LOCK.ACQUIRE", RUN + "mine", "w", HOUR, "ID", RUN + "m")
        for client in (a, b):
            reply = client.call("LOCK.ACQUIRE", RUN + "yours", "w", HOUR, "ID", RUN + "m")
            assert reply["outcome"] == "mismatch", reply
        assert state(a, "yours") == "free"
        for client in (a, b, c):
            reply = client.call("LOCK.ACQUIRE", RUN + "mine", "v", HOUR, "ID", RUN + "m")
            assert reply["outcome"] == "mismatch", reply


def ids_of_several_keys_and_of_once():
    with one.connect() as a, other.connect(3) as b:
        call = ("LOCK.ACQUIRE_ALL", 2, RUN + "a1", RUN + "a2", "w", HOUR, "ID", RUN + "all")
        assert a.ok(*call)["token"] == b.ok(*call)["token"]
        call = ("ONCE.BEGIN", RUN + "once", "w", HOUR, "ID", RUN + "begun")
        token = a.token(*call)
        assert b.token(*call) == token
        assert b.call(*call[:-2])["outcome"] == "busy"


def a_repeat_takes_over_the_wait():
    with one.connect() as holder, one.connect() as a, one.connect() as b:
        token = holder.token("LOCK.ACQUIRE", RUN + "over", "h", HOUR)
        call = encode("LOCK.ACQUIRE", RUN + "over", "w", HOUR, "WAIT", 60000, "ID", RUN + "over")
        a.send(call)
        waiters(holder, RUN + "over", 1)
        b.send(call)
        assert pairs(a.read())["outcome"] == "busy"
        holder.ok("LOCK.RELEASE", RUN + "over", token)
        assert pairs(b.read())["outcome"] == "ok"


def a_repeat_waits_no_longer_than_it_says():
    with one.connect() as holder, one.connect() as a, one.connect() as b:
        holder.ok("LOCK.ACQUIRE", RUN + "repeated", "h", HOUR)
        call = ("LOCK.ACQUIRE", RUN + "repeated", "w", HOUR, "ID", RUN + "repeated")
        a.send(encode(*call, "WAIT", 60000))
        waiters(holder, RUN + "repeated", 1)
        began = time.monotonic()
        assert b.call(*call, "WAIT", 200)["outcome"] == "busy"
        assert 0.15 < time.monotonic() - began < 10


def a_repeat_takes_over_an_asynchronous_wait():
    with one.connect() as holder, one.connect(3) as a, one.connect(3) as b:
        token = holder.token("LOCK.ACQUIRE", RUN + "taken", "h", HOUR)
        call = ("LOCK.ACQUIRE", RUN + "taken", "w", HOUR, "ID", RUN + "taken")
        assert a.call(*call, "WAIT", 60000, "ASYNC")["outcome"] == "waiting"
        assert b.call(*call)["outcome"] == "busy", "it does not wait"
        assert b.call(*call, "WAIT", 60000, "ASYNC")["outcome"] == "waiting"
        kind, name, result = a.push()
        assert (kind, name, result["outcome"]) == ("lock.result", RUN + "taken", "busy"), result
        holder.ok("LOCK.RELEASE", RUN + "taken", token)
        kind, name, result = b.push()
        assert (kind, name, result["outcome"]) == ("lock.result", RUN + "taken", "ok"), result


# ---- waits ----


def a_cached_refusal_is_marked():
    with one.connect() as a:
        token = a.token("LOCK.ACQUIRE", RUN + "cached", "h", HOUR)
        call = ("LOCK.ACQUIRE", RUN + "cached", "w", HOUR, "CACHED")
        reply = until(lambda: (found := a.call(*call)).get("cached_ms", -1) >= 0 and found)
        assert (reply["outcome"], reply["holder"]) == ("busy", "h"), reply
        a.ok("LOCK.RELEASE", RUN + "cached", token)
        until(lambda: a.call(*call)["outcome"] == "ok")


def a_waiter_is_granted_after_a_release():
    with one.connect() as holder, one.connect(3) as waiter:
        token = holder.token("LOCK.ACQUIRE", RUN + "turn", "h", HOUR)
        waiter.send(encode("LOCK.ACQUIRE", RUN + "turn", "w", HOUR, "WAIT", 60000))
        assert waiters(holder, RUN + "turn", 1)["holder"] == "h"
        holder.ok("LOCK.RELEASE", RUN + "turn", token)
        reply = waiter.read()
        assert reply["outcome"] == "ok" and int(reply["token"]) > int(token), reply


def a_waiter_of_another_daemon_is_granted():
    with one.connect() as holder, other.connect() as waiter, other.connect() as asker:
        token = holder.token("LOCK.ACQUIRE", RUN + "far", "h", HOUR)
        waiter.send(encode("LOCK.ACQUIRE", RUN + "far", "w", HOUR, "WAIT", 60000))
        waiters(asker, RUN + "far", 1)
        holder.ok("LOCK.RELEASE", RUN + "far", token)
        assert pairs(waiter.read())["outcome"] == "ok"


def a_wait_ends():
    with one.connect() as a:
        a.ok("LOCK.ACQUIRE", RUN + "ends", "h", HOUR)
        began = time.monotonic()
        reply = a.call("LOCK.ACQUIRE", RUN + "ends", "w", HOUR, "WAIT", 300)
        assert reply["outcome"] == "busy" and reply["refusal"] == "timeout", reply
        assert 0.29 <= time.monotonic() - began, "too early"


def a_wait_holds_back_what_is_behind_it():
    with one.connect() as holder, one.connect() as a:
        token = holder.token("LOCK.ACQUIRE", RUN + "back", "h", HOUR)
        a.send(encode("ECHO", "before") +
               encode("LOCK.ACQUIRE", RUN + "back", "w", HOUR, "WAIT", 60000) +
               encode("ECHO", "behind") + encode("LOCK.STATUS", RUN + "aside"))
        assert a.read() == "before"
        waiters(holder, RUN + "back", 1)
        assert a.quiet(0.2)
        holder.ok("LOCK.RELEASE", RUN + "back", token)
        assert pairs(a.read())["outcome"] == "ok"
        assert a.read() == "behind"
        assert pairs(a.read())["state"] == "free"


def an_asynchronous_wait_is_pushed():
    with one.connect() as holder, one.connect(3) as a:
        token = holder.token("LOCK.ACQUIRE", RUN + "async", "h", HOUR)
        wait = ("LOCK.ACQUIRE", RUN + "async", "w", HOUR, "WAIT", 60000, "ASYNC", "ID")
        assert a.call(*wait, RUN + "x")["outcome"] == "waiting"
        assert a.call(*wait, RUN + "y")["outcome"] == "waiting"
        assert a.call("ECHO", "not held back") == "not held back"
        assert a.ok("LOCK.CANCEL", RUN + "y")
        kind, name, result = a.push()
        assert (kind, name, result["outcome"]) == ("lock.result", RUN + "y", "busy"), result
        holder.ok("LOCK.RELEASE", RUN + "async", token)
        kind, name, result = a.push()
        assert (kind, name, result["outcome"]) == ("lock.result", RUN + "x", "ok"), result
        assert a.call("LOCK.CANCEL", RUN + "x")["outcome"] == "stale"
        a.ok("LOCK.RELEASE", RUN + "async", result["token"])


def cancel_ends_the_wait_of_another_connection():
    with one.connect() as holder, one.connect() as a:
        holder.ok("LOCK.ACQUIRE", RUN + "cancel", "h", HOUR)
        a.send(encode("LOCK.ACQUIRE", RUN + "cancel", "w", HOUR, "WAIT", 60000, "ID", RUN + "c"))
        waiters(holder, RUN + "cancel", 1)
        holder.ok("LOCK.CANCEL", RUN + "c")
        assert pairs(a.read())["outcome"] == "busy"


def a_waiter_that_has_gone_gets_nothing():
    with one.connect() as holder:
        token = holder.token("LOCK.ACQUIRE", RUN + "gone", "h", HOUR)
        with one.connect() as a:
            a.send(encode("LOCK.ACQUIRE", RUN + "gone", "w", HOUR, "WAIT", 60000))
            waiters(holder, RUN + "gone", 1)
        waiters(holder, RUN + "gone", 0)
        holder.ok("LOCK.RELEASE", RUN + "gone", token)
        until_free(holder, "gone")


def queue_up(holder, key, names):
    """One connection per name, waiting in this order; each has an id."""
    clients = {}
    for number, name in enumerate(names, 1):
        clients[name] = one.connect()
        clients[name].send(place(key, name))
        waiters(holder, RUN + key, number)
    return clients


def place(key, name):
    return encode("LOCK.ACQUIRE", RUN + key, name, HOUR, "WAIT", 120000, "ID", f"{RUN}{key}/{name}")


def a_place_is_kept_and_passed_over():
    with one.connect() as holder:
        token = holder.token("LOCK.ACQUIRE", RUN + "place", "h", HOUR)
        clients = queue_up(holder, "place", ("w1", "w2", "w3"))
        clients["w1"].close()
        until(lambda: "connected_clients:3" in holder.call("INFO"))
        holder.ok("LOCK.RELEASE", RUN + "place", token)
        second = pairs(clients["w2"].read())
        assert second["outcome"] == "ok", second
        with one.connect() as again:
            again.send(place("place", "w1"))
            until(lambda: "connected_clients:4" in holder.call("INFO"))
            assert again.quiet(0.3)
            holder.ok("LOCK.RELEASE", RUN + "place", second["token"])
            assert pairs(again.read())["outcome"] == "ok"
            assert clients["w3"].quiet(0.3)
        for name in ("w2", "w3"):
            clients[name].close()


def a_place_is_given_up_after_five_seconds():
    with one.connect() as holder:
        token = holder.token("LOCK.ACQUIRE", RUN + "late", "h", HOUR)
        clients = queue_up(holder, "late", ("w1", "w2"))
        clients["w1"].close()
        waiters(holder, RUN + "late", 1)
        clients["w1"] = one.connect()
        clients["w1"].send(place("late", "w1"))
        waiters(holder, RUN + "late", 2)
        holder.ok("LOCK.RELEASE", RUN + "late", token)
        assert pairs(clients["w2"].read())["outcome"] == "ok"
        assert clients["w1"].quiet(0.3)
        for client in clients.values():
            client.close()


# ---- order ----


def a_thousand_commands_on_different_keys():
    count = 100 if SLOW else 500
    with one.connect() as a:
        a.send(b"".join(encode("LOCK.ACQUIRE", f"{RUN}many/{i}", f"w{i}", HOUR) +
                        encode("ECHO", i) for i in range(count)))
        for i in range(count):
            reply = pairs(a.read())
            assert (reply["outcome"], reply["holder"]) == ("ok", f"w{i}"), (i, reply)
            assert a.read() == str(i)


def a_thousand_commands_on_one_key():
    count = 50 if SLOW else 500
    with one.connect(3) as a:
        a.send(b"".join(encode("WATERMARK.ADVANCE", RUN + "order", i - 1 if i > 1 else "", i) +
                        encode("WATERMARK.GET", RUN + "order") for i in range(1, count + 1)))
        for i in range(1, count + 1):
            assert (reply := a.read())["outcome"] == "ok", (i, reply)
            assert (reply := a.read())["value"] == str(i), (i, reply)


# ---- bound grants ----


def bound_grants_end_with_their_peer():
    with one.connect() as watcher:
        for end in ("close", "QUIT", "RESET"):
            key = "bound-" + end
            a = one.connect()
            a.ok("LOCK.ACQUIRE", RUN + key, "w", TTL, "BIND")
            if end == "close":
                time.sleep(TTL / 1000 * 1.5)
                assert state(watcher, key) == "held", "it is not renewed"
                a.close()
            else:
                assert a.call(end) in ("OK", "RESET")
            until_free(watcher, key)
            if end != "close":
                a.close()


def bound_grants_of_pipes_end_with_them():
    with other.connect() as watcher, Pipes(PROGRAM, STORE).connect(3) as a:
        a.ok("LOCK.ACQUIRE", RUN + "piped", "w", HOUR, "BIND")
        a.close()
        if SHARED:
            assert state(watcher, "piped") == "free"


def a_killed_daemon_leaves_grants_to_their_ttl():
    third = Daemon(PROGRAM, STORE)
    with third.connect() as a, one.connect() as watcher:
        token = a.token("LOCK.ACQUIRE", RUN + "killed", "w", HOUR, "BIND")
        a.ok("LOCK.ACQUIRE", RUN + "short", "w", TTL, "BIND")
        third.kill()
        assert state(watcher, "killed") == "held"
        until_free(watcher, "short")
        watcher.ok("LOCK.RENEW", RUN + "killed", token, HOUR, "BIND")
    with one.connect() as watcher:
        until_free(watcher, "killed")


def renew_binds_again():
    with one.connect() as watcher:
        a, b = one.connect(), one.connect()
        token = a.token("LOCK.ACQUIRE", RUN + "again", "w", HOUR, "BIND")
        b.ok("LOCK.RENEW", RUN + "again", token, "BIND")
        a.close()
        until(lambda: "connected_clients:2" in watcher.call("INFO"))
        assert watcher.call("LOCK.RENEW", RUN + "again", token)["outcome"] == "ok"
        b.close()
        until_free(watcher, "again")


def unbound_grants_outlive_their_connection():
    with one.connect() as watcher:
        with one.connect() as a:
            token = a.token("LOCK.ACQUIRE", RUN + "unbound", "w", HOUR)
        until(lambda: "connected_clients:1" in watcher.call("INFO"))
        assert state(watcher, "unbound") == "held"
        with other.connect() as b:
            b.ok("LOCK.RENEW", RUN + "unbound", token)
            b.ok("LOCK.RELEASE", RUN + "unbound", token)
            assert b.call("LOCK.RELEASE", RUN + "unbound", token)["outcome"] == "stale"


def a_broken_bound_grant_is_pushed_as_lost():
    with one.connect(3) as a, other.connect() as operator:
        token = a.token("LOCK.ACQUIRE", RUN + "broken", "w", TTL, "BIND")
        operator.ok("LOCK.BREAK", RUN + "broken", "test", "NOW")
        kind, lost = a.push()
        assert kind == "lock.lost" and lost["outcome"] == "lost", lost
        assert (lost["key"], lost["token"]) == (RUN + "broken", token), lost


def a_slow_reader_is_cut_and_keeps_its_grants():
    with one.connect() as watcher:
        watcher.ok("LOCK.ACQUIRE", RUN + "flood", "w", HOUR,
                   "META", json.dumps({"a": "x" * 900}))
        a = one.connect(receive_buffer=4096)
        a.ok("LOCK.ACQUIRE", RUN + "slow", "w", HOUR, "BIND")
        flood = encode("LOCK.STATUS", RUN + "flood") * 100
        until_cut(a, flood, watcher)
        assert state(watcher, "slow") == "held"
        a.close()
        time.sleep(0.2)
        assert state(watcher, "slow") == "held"


def cuts(client):
    return re.search(r"cut_connections:(\d+)", client.call("INFO")).group(1)


def until_cut(client, flood, watcher):
    """Sends without reading until the daemon cuts; others are served meanwhile."""
    os.set_blocking(client.write_file, False)
    ends, rest, before = time.monotonic() + 60, b"", cuts(watcher)
    while cuts(watcher) == before:
        assert time.monotonic() < ends, "it is not cut"
        try:
            rest = rest or flood
            rest = rest[os.write(client.write_file, rest):]
        except BlockingIOError:
            time.sleep(0.005)
        except (BrokenPipeError, ConnectionResetError):
            time.sleep(0.02)


# ---- watches ----


def a_watch_pushes_changes():
    with one.connect(3) as a, other.connect() as b:
        a.ok("LOCK.WATCH", RUN + "seen/")
        token = b.token("LOCK.ACQUIRE", RUN + "seen/k", "w", HOUR)
        b.ok("LOCK.ACQUIRE", RUN + "unseen", "w", HOUR)
        kind, prefix, view = a.push()
        assert (kind, prefix, view["state"]) == ("lock.event", RUN + "seen/", "held"), view
        assert (view["key"], view["holder"], view["token"]) == (RUN + "seen/k", "w", token), view
        b.ok("LOCK.RELEASE", RUN + "seen/k", token)
        while view["state"] != "free":
            view = a.push()[2]
            assert view["key"] == RUN + "seen/k", view
        a.ok("LOCK.UNWATCH", RUN + "seen/")
        b.ok("LOCK.ACQUIRE", RUN + "seen/k", "w", HOUR)
        assert a.call("ECHO", "x") == "x" and (SLOW or a.quiet(0.2))


def a_subscription_has_messages():
    for verb in ("SUBSCRIBE", "LOCK.WATCH"):
        prefix = f"{RUN}{verb}/"
        with one.connect() as a, other.connect() as b:
            assert a.call(verb, prefix) == ["subscribe", prefix, 1]
            token = b.token("LOCK.ACQUIRE", prefix + "k", "w", HOUR)
            kind, channel, text = a.push()
            event = json.loads(text)
            assert (kind, channel) == ("message", prefix)
            assert (event["key"], event["state"], event["token"]) == (prefix + "k", "held", token)


def several_subscriptions():
    with one.connect() as a, one.connect(3) as b:
        for client in (a, b):
            client.send(encode("SUBSCRIBE", "x/", "y/", "z/"))
            for number, prefix in enumerate(("x/", "y/", "z/"), 1):
                assert list(client.push()) == ["subscribe", prefix, number]
            client.send(encode("UNSUBSCRIBE"))
            left = sorted(list(client.push()) for _ in range(3))
            assert [item[1] for item in left] == ["x/", "y/", "z/"], left
            assert min(item[2] for item in left) == 0, left
            assert client.call("PING") == "PONG"


# ---- pages and records ----


def a_list_has_every_key_once():
    count = 250
    with one.connect(3) as a:
        wanted = [f"{RUN}list/{i:03}é" for i in range(count)]
        a.send(b"".join(encode("LOCK.ACQUIRE", key, "w", HOUR) for key in wanted))
        for _ in wanted:
            assert a.read()["outcome"] == "ok"
        for size in ((), ("COUNT", 7), ("COUNT", 1000)):
            found, after = [], ()
            while True:
                page = a.ok("LOCK.LIST", RUN + "list/", *size, *after)
                assert len(page["keys"]) <= (size[1] if size else 100)
                found += [view["key"] for view in page["keys"]]
                if page["next"] is None:
                    break
                after = ("AFTER", page["next"])
            assert found == wanted, (size, found)


def a_history_has_pages():
    with one.connect(3) as a:
        for _ in range(10):
            token = a.token("LOCK.ACQUIRE", RUN + "past", "w", HOUR)
            a.ok("LOCK.RELEASE", RUN + "past", token)
        states, after = [], ()
        while True:
            page = a.ok("LOCK.HISTORY", RUN + "past", "COUNT", 3, *after)
            states += [view["state"] for view in page["changes"]]
            if page["next"] is None:
                break
            after = ("AFTER", page["next"])
        assert states == ["free", "held"] * 10, states


def meta_survives():
    meta = {"a b": 'quotes " and \\', "ü": "line\u00e9\U0001f512", "request": ',"request":"x"'}
    with one.connect(3) as a:
        for form in (json.dumps(meta), json.dumps(meta, ensure_ascii=False)):
            key = RUN + f"meta-{len(form)}"
            a.ok("LOCK.ACQUIRE", key, "w", HOUR, "META", form)
            assert a.call("LOCK.STATUS", key)["meta"] == meta


def records_have_no_request_ids():
    with one.connect(3) as a:
        meta = json.dumps({"m": ',"request":"kept"'})
        a.ok("LOCK.ACQUIRE", RUN + "raw/k", "w", HOUR, "ID", "s3cret", "META", meta)
        assert a.call("LOCK.ACQUIRE", RUN + "raw/k", "v", HOUR, "WAIT", 60000, "ASYNC", "ID",
                      RUN + "v")["outcome"] == "waiting"
        views = [a.call("LOCK.STATUS", RUN + "raw/k", "RAW")]
        views += a.ok("LOCK.LIST", RUN + "raw/", "RAW")["keys"]
        if STORE.startswith("file:"):
            views += a.ok("LOCK.HISTORY", RUN + "raw/k", "RAW")["changes"]
        for view in views:
            record = json.loads(view["record"])
            assert record["key"] == RUN + "raw/k" and "d-" not in view["record"], view
            assert record["grants"][0]["meta"] == {"m": ',"request":"kept"'}, record
            assert not any("request" in part for part in record["grants"]), record
        a.ok("LOCK.CANCEL", RUN + "v")
        assert isinstance(a.push(), Push)


def main():
    cases = Cases()
    for function in CASES + (CASES_OF_SHARED if SHARED else CASES_OF_MEMORY):
        cases.run(function.__name__.replace("_", " "), function)
        if one.process.poll() is not None:
            cases.tell(False, "the daemon lives", one.logged()[-3000:])
            break
    if STORE.startswith("file:"):
        cases.run("a history has pages", a_history_has_pages)
    status = one.kill(15)
    cases.tell(status == 0, "SIGTERM ends the daemon", f"exit status {status}\n{one.logged()}")
    cases.finish()


CASES = (
    repeats_get_the_same_grant, ids_of_another_key_or_holder_mismatch,
    ids_of_several_keys_and_of_once, a_repeat_takes_over_the_wait,
    a_repeat_waits_no_longer_than_it_says, a_repeat_takes_over_an_asynchronous_wait,
    a_cached_refusal_is_marked,
    a_waiter_is_granted_after_a_release, a_wait_ends, a_wait_holds_back_what_is_behind_it,
    an_asynchronous_wait_is_pushed, cancel_ends_the_wait_of_another_connection,
    a_waiter_that_has_gone_gets_nothing, a_place_is_kept_and_passed_over,
    a_thousand_commands_on_different_keys, a_thousand_commands_on_one_key,
    bound_grants_end_with_their_peer, bound_grants_of_pipes_end_with_them, renew_binds_again,
    unbound_grants_outlive_their_connection, a_broken_bound_grant_is_pushed_as_lost,
    a_slow_reader_is_cut_and_keeps_its_grants, a_watch_pushes_changes,
    a_subscription_has_messages, several_subscriptions, a_list_has_every_key_once, meta_survives,
    records_have_no_request_ids)
CASES_OF_SHARED = (
    a_waiter_of_another_daemon_is_granted, a_killed_daemon_leaves_grants_to_their_ttl)
CASES_OF_MEMORY = (a_place_is_given_up_after_five_seconds,)

main()
