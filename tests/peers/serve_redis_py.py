#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""redis-py of Debian on the daemon, unmodified: serve_redis_py.py PORT. Prints TAP."""

import json
import sys
import threading
import time

import redis

PORT = int(sys.argv[1])
client = redis.Redis(port=PORT, decode_responses=True)


def pairs(reply):
    return dict(zip(reply[::2], reply[1::2]))


def call(*args):
    return pairs(client.execute_command(*args))


def calls():
    assert client.ping() and client.echo("x") == "x"
    grant = call("LOCK.ACQUIRE", "py/k", "py", 60000, "META", '{"a b": "c"}')
    assert grant["outcome"] == "ok" and grant["token"].isdecimal(), grant
    assert call("LOCK.ACQUIRE", "py/k", "other", 60000)["outcome"] == "busy"
    assert call("LOCK.STATUS", "py/k")["holder"] == "py"
    assert call("LOCK.RELEASE", "py/k", grant["token"])["outcome"] == "ok"
    assert call("LOCK.RELEASE", "py/k", grant["token"])["outcome"] == "stale"
    try:
        client.execute_command("LOCK.ACQUIR", "x")
    except redis.ResponseError as error:
        assert "did you mean LOCK.ACQUIRE" in str(error), error
    else:
        raise AssertionError("no error")
    assert client.info()["server"] == "leasehold"
    assert client.client_setname("me") and client.client_getname() == "me"


def pipelines():
    pipeline = client.pipeline(transaction=False)
    for i in range(100):
        pipeline.execute_command("LOCK.ACQUIRE", f"py/p{i}", f"w{i}", 60000)
    replies = pipeline.execute()
    assert [pairs(reply)["holder"] for reply in replies] == [f"w{i}" for i in range(100)]


def waits():
    token, results = call("LOCK.ACQUIRE", "py/w", "first", 60000)["token"], []
    waiter = threading.Thread(target=lambda: results.append(
        call("LOCK.ACQUIRE", "py/w", "second", 60000, "WAIT", 60000)))
    waiter.start()
    time.sleep(0.1)
    call("LOCK.RELEASE", "py/w", token)
    waiter.join(60)
    assert results[0]["outcome"] == "ok", results


def subscriptions():
    with client.pubsub() as watcher:
        watcher.subscribe("py/watched/", "py/too/")
        assert [watcher.get_message(timeout=60)["data"] for _ in range(2)] == [1, 2]
        call("LOCK.ACQUIRE", "py/watched/k", "py", 60000)
        message = watcher.get_message(timeout=60)
        event = json.loads(message["data"])
        assert (message["type"], message["channel"]) == ("message", "py/watched/"), message
        assert (event["key"], event["state"], event["holder"]) == ("py/watched/k", "held", "py")
        watcher.ping()
        assert watcher.get_message(timeout=60)["type"] == "pong"
        watcher.unsubscribe()
        kinds = [watcher.get_message(timeout=60)["type"] for _ in range(2)]
        assert kinds == ["unsubscribe"] * 2, kinds


wrong = False
for number, function in enumerate((calls, pipelines, waits, subscriptions), 1):
    try:
        function()
        print(f"ok {number} - {function.__name__}")
    except Exception as error:  # every failure is a failed case
        print(f"not ok {number} - {function.__name__}\n# {error!r}")
        wrong = True
print("1..4")
sys.exit(wrong)
