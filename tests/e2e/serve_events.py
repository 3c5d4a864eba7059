# SPDX-License-Identifier: Apache-2.0
"""Cases of serve_http.py for GET /v1/watch: server-sent events. Each takes the program."""

import re
import socket
import subprocess
import tempfile

from serve_kit import WAIT_S, Closed, Daemon, encode, pairs, until
from serve_http_kit import Http, Stream, request

HOUR = 3600000
RING = 4096
daemons = {}


def daemon_of(program):
    """One daemon for all cases that leave it as it is."""
    if program not in daemons:
        daemons[program] = Daemon(program, "memory:", http="127.0.0.1:0")
    return daemons[program]


def renew(client, key, token, count):
    """So many changes of the key."""
    while count > 0:
        step = min(count, 500)
        client.send(encode("LOCK.RENEW", key, token) * step)
        for _ in range(step):
            assert pairs(client.read())["outcome"] == "ok"
        count -= step


def watches(client, count):
    def counted():
        return f"\r\nwatches:{count}\r\n" in client.call("INFO")
    until(counted)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def answers(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def changes_come_after_ready(program):
    daemon = daemon_of(program)
    with daemon.connect(3) as client, Stream(daemon.web, "sse/a%20b%2F") as stream, \
            Stream(daemon.web) as all_keys:
        token = client.token("LOCK.ACQUIRE", "sse/a b/é\"", "me", HOUR)
        client.token("LOCK.ACQUIRE", "sse/other", "me", HOUR)
        client.ok("LOCK.RELEASE", "sse/a b/é\"", token)
        held, free = stream.events(2)
        assert (held.name, held.data["key"], held.data["state"]) == ("change", "sse/a b/é\"", "held")
        assert held.data["token"] == token and held.data["holder"] == "me", held
        assert held.data["kind"] == "lock" and free.data["state"] == "free", (held, free)
        assert stream.ready.data["outcome"] == "ok"
        events = [all_keys.ready, *all_keys.events(3)]
        assert [event.data.get("key") for event in events[1:]] == ["sse/a b/é\"", "sse/other",
                                                                  "sse/a b/é\""]
        numbers = [event.number for event in events]
        assert numbers == list(range(numbers[0], numbers[0] + 4)), numbers
        assert held.id == events[1].id and free.id == events[3].id, events
        watches(client, 2)
    with daemon.connect(3) as client:
        watches(client, 0)


def the_last_id_goes_on(program):
    daemon = daemon_of(program)
    with daemon.connect(3) as client:
        token = client.token("LOCK.ACQUIRE", "resume/k", "me", HOUR)
        with Stream(daemon.web, "resume/") as stream:
            renew(client, "resume/k", token, 3)
            seen = stream.events(3)
        renew(client, "resume/k", token, 2)
        client.token("LOCK.ACQUIRE", "elsewhere", "me", HOUR)
        with Stream(daemon.web, "resume/", seen[0].id) as stream:
            assert stream.ready.id == seen[0].id
            again = stream.events(4)
            assert [event.id for event in again[:2]] == [event.id for event in seen[1:]]
            assert again[3].number == seen[0].number + 4, again
            renew(client, "resume/k", token, 1)
            assert stream.event().number == again[3].number + 2  # "elsewhere" has a number too
            assert stream.quiet(0.05)
        with Stream(daemon.web, "resume/", stream.ready.id) as other:  # of ready, too
            assert other.event().id == seen[1].id
        newest = again[3].number + 2
        with Stream(daemon.web, "", f"{seen[0].instance}-{newest}") as stream:
            assert stream.ready.number == newest and stream.quiet(0.05)


def an_unknown_id_missed_changes(program):
    daemon = daemon_of(program)
    with daemon.connect(3) as client:
        client.token("LOCK.ACQUIRE", "unknown/k", "me", HOUR)
        with Stream(daemon.web) as stream:
            ours = stream.ready
        for last in ("x", "-", "0", "5", "-5", f"{ours.instance}", f"{ours.instance}-",
                     f"{ours.instance}-x", f"{ours.instance}-{ours.number + 1}",
                     f"{ours.instance}--1", f"{ours.instance}-{2 ** 64 - 1}",
                     f"{ours.instance}-{2 ** 64}", f"{ours.instance}-{10 ** 40}",
                     f"{ours.instance}-{ours.number} x", "f" * 16 + "-0", "0" * 16 + "-0",
                     f"{ours.instance}{ours.number}", "1" * 5000):
            with Stream(daemon.web, "", last) as stream:
                event = stream.event()
                assert event.name == "missed" and event.id == ours.id, (last, event)
                assert stream.ready.id == ours.id and "list" in event.data["text"], event
                assert stream.quiet(0.01)
        with Stream(daemon.web, "", "") as stream:  # as a browser sends it at first
            assert stream.quiet(0.01)


def the_ring_has_4096_changes(program):
    """With long keys: they are more than an unsent buffer holds."""
    daemon = Daemon(program, "memory:", http="127.0.0.1:0")
    key = "ring/" + "k" * 300
    with daemon.connect(3) as client:
        token = client.token("LOCK.ACQUIRE", key, "me", HOUR)
        with Stream(daemon.web) as stream:
            last = stream.ready
        renew(client, key, token, RING)
        with Stream(daemon.web, "", last.id) as stream:
            numbers = [event.number for event in stream.events(RING)]
            assert numbers == list(range(last.number + 1, last.number + RING + 1))
            renew(client, key, token, 1)
            assert stream.event().number == numbers[-1] + 1
        with Stream(daemon.web, "", last.id) as stream:
            event = stream.event()
            assert event.name == "missed" and event.number == last.number + RING + 1, event
            assert stream.quiet(0.05)


def another_daemon_missed_changes(program):
    first = Daemon(program, "memory:", http="127.0.0.1:0")
    with Stream(first.web) as stream:
        last = stream.ready.id
        assert first.kill() == -9
        assert stream.ends() == b""
    second = Daemon(program, "memory:", http="127.0.0.1:0")
    with Stream(second.web, "", last) as stream:
        assert stream.ready.instance != last[:16] and stream.event().name == "missed"


def a_client_that_reconnects_misses_nothing(program):
    """Like an EventSource, which is cut again and again."""
    daemon = daemon_of(program)
    with daemon.connect(3) as client:
        token = client.token("LOCK.ACQUIRE", "again/k", "me", HOUR)
        numbers, last = [], None
        for round_number in range(12):
            with Stream(daemon.web, "again/", last) as stream:
                renew(client, "again/k", token, 5)
                for event in stream.events(1 + round_number % 5):
                    numbers.append(event.number)
                    last = event.id
        renew(client, "again/k", token, 1)
        with Stream(daemon.web, "again/", last) as stream:
            while numbers[-1] < numbers[0] + 60:
                numbers.append(stream.event().number)
        assert numbers == list(range(numbers[0], numbers[0] + 61)), numbers


def the_number_of_watches_is_limited(program):
    daemon = daemon_of(program)
    with daemon.connect(3) as client, Http(daemon.web) as refused:
        client.ok("LOCK.WATCH", "")
        streams = [Stream(daemon.web) for _ in range(255)]
        for _ in range(3):
            response = refused.call("GET", "/v1/watch")
            assert response.status == 429 and int(response.fields["retry-after"]) > 0, response
            assert not response.closes
        client.token("LOCK.ACQUIRE", "limited", "me", HOUR)
        for stream in streams:
            assert stream.event().data["key"] == "limited"
            stream.close()
        watches(client, 1)
        refused.send(request("GET", "/v1/watch"))
        assert refused.head()[0] == 200


def head_of_a_stream_has_no_events(program):
    daemon = daemon_of(program)
    with daemon.connect(3) as client, Http(daemon.web) as web:
        web.send(request("HEAD", "/v1/watch"))
        status, fields = web.head()
        assert status == 200 and fields["content-type"] == "text/event-stream", fields
        assert web.ends() == b""
        watches(client, 0)


def a_stream_reads_no_further_request(program):
    daemon = daemon_of(program)
    with daemon.connect(3) as client, Stream(daemon.web, "deaf/") as stream:
        stream.send(request("GET", "/healthz") * 1000 + b"\0" * 100000)
        client.token("LOCK.ACQUIRE", "deaf/k", "me", HOUR)
        assert stream.event().data["key"] == "deaf/k"


def a_slow_reader_is_cut(program):
    daemon = Daemon(program, "memory:", http="127.0.0.1:0")
    key = "flood/" + "k" * 400
    with daemon.connect(3) as client, Stream(daemon.web) as good, \
            Stream(daemon.web, receive_buffer=4096) as slow:
        token = client.token("LOCK.ACQUIRE", key, "me", HOUR)
        count = 1
        while "cut_connections:0\r" in client.call("INFO"):
            assert count < 100000, "it is not cut"
            renew(client, key, token, 200)
            count += 200
            last = good.events(200)[-1]
        assert last.number == count - 1 and good.event().number == count
        watches(client, 1)
        seen = []
        try:
            while True:
                seen.append(slow.event())
        except Closed:
            pass
        assert [event.number for event in seen] == list(range(1, len(seen) + 1))
        assert len(seen) < count
        size = int(re.search(r"buffered_bytes:(\d+)", client.call("INFO"))[1])
        assert size < 1 << 20, size


def the_end_of_the_stores_watch_is_reported(program):
    """A Redis that is killed: the stream ends with `missed`."""
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        server = subprocess.Popen(["redis-server", "--port", str(port), "--save", "", "--dir",
                                   folder], stdout=subprocess.DEVNULL)
        try:
            until(lambda: answers(port))
            daemon = Daemon(program, f"redis://127.0.0.1:{port}", http="127.0.0.1:0")
            with daemon.connect(3) as client, Stream(daemon.web) as stream:
                client.token("LOCK.ACQUIRE", "k", "me", HOUR)
                assert stream.event().data["key"] == "k"
                server.kill()
                server.wait(WAIT_S)
                event = stream.event()
                assert event.name == "missed" and event.data["text"], event
                assert stream.ends() == b""
                watches(client, 0)
                with Http(daemon.web) as web:  # also twice on one connection
                    for _ in range(2):
                        response = web.call("GET", "/v1/watch?prefix=a", Last_Event_ID=event.id)
                        assert response.status == 503, response
                        assert int(response.fields["retry-after"]) > 0, response
                        assert not response.closes
        finally:
            server.kill()
            server.wait(WAIT_S)


FAST = (changes_come_after_ready, the_last_id_goes_on, an_unknown_id_missed_changes,
        another_daemon_missed_changes, a_client_that_reconnects_misses_nothing,
        the_number_of_watches_is_limited, head_of_a_stream_has_no_events,
        a_stream_reads_no_further_request)
SLOW = (the_ring_has_4096_changes, a_slow_reader_is_cut, the_end_of_the_stores_watch_is_reported)
