#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""LOCK.CLAIM on an emulated GitHub: serve_claim.py URL PROGRAM, which github_claim.sh runs. Each
case has a label of its own, and all run side by side, because they mostly wait. Prints TAP.
"""

import concurrent.futures
import itertools
import json
import os
import subprocess
import sys
import time
import urllib.parse
import urllib.request

from serve_kit import Cases, Daemon, Error, encode, pairs, until

URL, PROGRAM = sys.argv[1], os.path.realpath(sys.argv[2])
TTL = 60000
LONG = 366 * 24 * 3600 * 1000  # the longest cooldown: the issue is done
numbers = itertools.count()
daemon = Daemon(PROGRAM, URL)


def api(method, path, body=None):
    base = os.environ["GITHUB_API_URL"] + ("" if path.startswith("/") else "/repos/alice/locks/")
    request = urllib.request.Request(base + path, json.dumps(body).encode() if body else None,
                                     {"Authorization": "Bearer tok_alice"}, method=method)
    with urllib.request.urlopen(request) as reply:
        data = reply.read()
    return json.loads(data) if data else None


def label():
    return f"resp {next(numbers)}"


def issue(title, *labels):
    return api("POST", "issues", {"title": title, "labels": list(labels)})["number"]


def unlabel(number, name):
    api("DELETE", f"issues/{number}/labels/{urllib.parse.quote(name)}")


def labels(number):
    return [one["name"] for one in api("GET", f"issues/{number}")["labels"]]


def claim(client, name, *words, holder="w"):
    return client.call("LOCK.CLAIM", name, holder, TTL, *words)


def claimed(client, name, *words):
    reply = claim(client, name, *words)
    assert reply["outcome"] == "ok", reply
    return reply


def finish(client, reply, name):
    unlabel(reply["issue"], name)
    client.ok("LOCK.RELEASE", reply["key"], reply["token"])


# ---- one issue after the other ----


def two_clients_get_different_issues():
    name = label()
    first, second = issue('"one"', name), issue("two", name)
    with daemon.connect() as a, daemon.connect(3) as b:
        for client in (a, b):
            client.send(encode("LOCK.CLAIM", name, "w", TTL, "META", '{"a":"b"}'))
        one, two = sorted((pairs(a.read()), b.read()), key=lambda reply: reply["issue"])
        assert [one["issue"], two["issue"]] == [first, second], (one, two)
        assert one["title"] == '"one"' and one["url"].endswith(f"/issues/{first}"), one
        assert (one["key"], one["holder"], one["ends_in_ms"]) == (str(first), "w", TTL), one
        view = a.call("LOCK.STATUS", str(first))
        assert (view["state"], view["token"]) == ("held", one["token"]), view
        assert pairs(view["meta"]) == {"a": "b"}, view
        reply = claim(a, name)
        assert (reply["outcome"], reply["refusal"]) == ("busy", "contention"), reply
        assert "no open issue" in reply["text"], reply
        status = subprocess.run([PROGRAM, "--store", URL, "claim", "-n", "--label", name, "--",
                                 "true"], capture_output=True).returncode
        assert status == 75, status
        a.ok("LOCK.RELEASE", one["key"], one["token"])  # it failed: it stays in the queue
        assert claimed(b, name)["issue"] == first
        finish(a, two, name)
        assert claim(a, name)["outcome"] == "busy"
        assert labels(second) == []


def issues_come_in_order():
    name = label()
    none, high = issue("none", name), issue("high", name, "priority:high")
    with daemon.connect(3) as a:
        reply = claimed(a, name, "ORDER", "priority-label")
        assert reply["issue"] == high, reply
        assert claimed(a, name, "ORDER", "number")["issue"] == none


def an_issue_without_its_label_is_skipped():
    """The label is removed after the daemon has listed the issue."""
    name = label()
    number, other = issue("gone", name), issue("stays", name)
    api("POST", "/_front/fault", {"match": f"^GET .*/issues/{number}$", "times": 2,
                                  "delay_ms": 1500})
    with daemon.connect() as a:
        a.send(encode("LOCK.CLAIM", name, "w", TTL))
        time.sleep(0.7)
        unlabel(number, name)
        reply = pairs(a.read())
        assert reply["issue"] == other, reply
        assert a.call("LOCK.STATUS", str(number))["state"] == "free"


def a_closed_issue_is_skipped():
    name = label()
    number = issue("closed", name)
    api("PATCH", f"issues/{number}", {"state": "closed"})
    with daemon.connect() as a:
        assert claim(a, name)["outcome"] == "busy"


# ---- issues that were done ----


def a_done_issue_loses_its_label():
    """Its worker was killed before it removed the label."""
    name = label()
    number = issue("done", name)
    with daemon.connect() as a:
        token = a.token("LOCK.ACQUIRE", str(number), "w", TTL)
        time.sleep(1.1)  # times are whole seconds
        a.ok("LOCK.RELEASE", str(number), token, "COOLDOWN", LONG)
        assert claim(a, name)["outcome"] == "busy"
        assert labels(number) == [], labels(number)


def a_done_issue_with_a_new_label_is_claimed():
    name = label()
    number = issue("again", name)
    with daemon.connect(3) as a:
        token = a.token("LOCK.ACQUIRE", str(number), "w", TTL)
        a.ok("LOCK.RELEASE", str(number), token, "COOLDOWN", LONG)
        time.sleep(1.1)
        unlabel(number, name)
        api("POST", f"issues/{number}/labels", {"labels": [name]})
        assert claimed(a, name)["issue"] == number


# ---- waits and ids ----


def a_claim_waits_for_an_issue():
    name = label()
    with daemon.connect() as a, daemon.connect() as b:
        reply = claim(b, name, "WAIT", 1200)
        assert (reply["outcome"], reply["refusal"]) == ("busy", "timeout"), reply
        a.send(encode("LOCK.CLAIM", name, "w", TTL, "WAIT", -1, "BIND"))
        time.sleep(1.2)
        number = issue("late", name)
        reply = pairs(a.read())
        assert reply["issue"] == number, reply
        a.close()  # and it is released
        until(lambda: b.call("LOCK.STATUS", str(number))["state"] == "free")
        assert claimed(b, name)["issue"] == number


def a_client_that_has_gone_gets_nothing():
    name = label()
    with daemon.connect() as b:
        with daemon.connect() as a:
            a.send(encode("LOCK.CLAIM", name, "w", TTL, "WAIT", -1))
            time.sleep(0.5)
        time.sleep(0.5)
        number = issue("later", name)
        time.sleep(2.5)  # more than a poll
        assert b.call("LOCK.STATUS", str(number))["state"] == "free"
        assert claimed(b, name)["issue"] == number


def a_repeat_gets_the_same_issue():
    name = label()
    first, second = issue("one", name), issue("two", name)
    with daemon.connect() as a, daemon.connect(3) as b:
        lower = claimed(a, name)
        reply = claimed(a, name, "ID", name)
        assert (lower["issue"], reply["issue"]) == (first, second), (lower, reply)
        a.ok("LOCK.RELEASE", lower["key"], lower["token"])  # and yet:
        again = claimed(b, name, "ID", name)
        assert (again["issue"], again["token"]) == (second, reply["token"]), (again, reply)
        assert claim(a, name, "ID", name, holder="v")["outcome"] == "mismatch"
        assert a.call("LOCK.ACQUIRE", "k", "w", TTL, "ID", name)["outcome"] == "mismatch"


# ---- the end ----


def wrong_calls_are_errors():
    with daemon.connect() as a, Daemon(PROGRAM, "memory:").connect() as other:
        for call, text in (((other, "LOCK.CLAIM", "l", "w", TTL), "needs a github:// store"),
                           ((a, "LOCK.CLAIM", "a,b", "w", TTL), "label"),
                           ((a, "LOCK.CLAIM", "l", "w", TTL, "ORDER", "x"), "ORDER needs"),
                           ((a, "LOCK.CLAIM", "l", "w", 0), "ttl_ms")):
            reply = call[0].call(*call[1:])
            assert isinstance(reply, Error) and text in reply, reply
    denied = Daemon(PROGRAM, URL.replace("alice/locks", "alice/nowhere"))
    with denied.connect() as a:
        assert claim(a, "l")["outcome"] == "denied"


def a_drain_ends_claims():
    name = label()
    stopped = Daemon(PROGRAM, URL)
    with stopped.connect() as a, stopped.connect() as b:
        a.send(encode("LOCK.CLAIM", name, "w", TTL, "WAIT", -1))
        until(lambda: "blocked_clients:1" in b.call("INFO"))
        time.sleep(0.5)
        stopped.process.terminate()
        reply = pairs(a.read())
        assert reply["outcome"] == "unavailable" and "stopping" in reply["text"], reply
        assert a.ends() == []
    assert stopped.process.wait(30) == 0


CASES = (
    two_clients_get_different_issues, issues_come_in_order, an_issue_without_its_label_is_skipped,
    a_closed_issue_is_skipped, a_done_issue_loses_its_label,
    a_done_issue_with_a_new_label_is_claimed, a_claim_waits_for_an_issue,
    a_client_that_has_gone_gets_nothing, a_repeat_gets_the_same_issue, wrong_calls_are_errors,
    a_drain_ends_claims,
)


def main():
    cases = Cases()
    with concurrent.futures.ThreadPoolExecutor(max_workers=len(CASES)) as pool:
        started = [(function.__name__.replace("_", " "), pool.submit(function))
                   for function in CASES]
        for name, future in started:
            cases.run(name, future.result)
    status = daemon.kill(15)
    cases.tell(status == 0, "SIGTERM ends the daemon", f"{status}\n{daemon.logged()[-3000:]}")
    cases.finish()


main()
