# SPDX-License-Identifier: Apache-2.0
"""Reads the logs of the clients of remote_holder.py and says what was broken. It knows the rules
and nothing of the daemon.
"""

import collections
import glob
import json


class Audit:
    def __init__(self):
        self.counts = collections.Counter()
        self.problems = []

    def problem(self, kind, text):
        self.counts[kind] += 1
        self.problems.append(f"{kind}: {text}")


def read_logs(folder):
    events = []
    for path in sorted(glob.glob(folder + "/log-*")):
        with open(path, encoding="ascii") as log:
            events.append([json.loads(line) for line in log])
    return events


class Section:
    """A stay inside: from `enter_ms` until the client left or its deadline came."""

    def __init__(self, event):
        self.client, self.key, self.token = event["client"], event["key"], event["token"]
        self.enter_ms, self.end_ms, self.released = event["now"], None, False


def sections_of(events):
    current, found = None, []
    for event in events:
        if event["event"] == "enter":
            current = Section(event)
            found.append(current)
        elif event["event"] == "leave":
            current.end_ms = min(event["now"], event["deadline"])
        elif event["event"] == "released" and current and current.token == event["token"]:
            current.released = True
    return [one for one in found if one.end_ms is not None]


def check_sections(sections, audit):
    by_key = collections.defaultdict(list)
    for one in sections:
        by_key[one.key].append(one)
    for key, stays in by_key.items():
        stays.sort(key=lambda one: one.enter_ms)
        latest = stays[0]
        for one in stays[1:]:
            if one.enter_ms < latest.end_ms:
                audit.problem("overlaps", f"{key}: {one.client} with {one.token} entered "
                              f"{latest.end_ms - one.enter_ms:.1f} ms before {latest.client} "
                              f"with {latest.token} had to be out")
            if one.token <= latest.token:
                audit.problem("tokens", f"{key}: {one.token} after {latest.token}")
            audit.counts["takeovers"] += not latest.released
            latest = one if one.end_ms > latest.end_ms else latest
    audit.counts["sections"] += len(sections)


def check_grants(events, audit):
    """Two requests never get the same grant."""
    owners = {}
    for event in events:
        if event["event"] != "acquire" or event["token"] is None:
            continue
        grant = (event["key"], event["token"])
        if owners.setdefault(grant, event["id"]) != event["id"]:
            audit.problem("shared", f"{grant} went to {owners[grant]} and {event['id']}")


def check_client(events, audit):
    counts = audit.counts
    for event in events:
        kind = event["event"]
        if kind == "acquire":
            counts["grants"] += event["token"] is not None
            counts["unanswered"] += event["outcome"] == "unknown"
            counts["repeats"] += event["repeats"]
            counts["repeats granted"] += event["repeats"] > 0 and event["token"] is not None
        elif kind == "load":
            counts["load pairs"] += event["pairs"]
        elif kind in ("renewed", "stop", "late", "unavailable"):
            counts[kind] += 1
        elif kind == "gone" and event["now"] < event["deadline"]:
            audit.problem("lost grants", f"{event['client']}: {event['verb']} of {event['key']} "
                          f"{event['token']} is {event['outcome']} "
                          f"{event['deadline'] - event['now']:.0f} ms before its deadline")
    if not events or events[-1]["event"] != "end":
        audit.problem("ended early", f"the last event of a client is {events[-1:]}")


def check_ids(events, audit):
    """At most one FINISH of an id succeeds; the ids that are done."""
    finished = {}
    for event in events:
        if event["event"] != "finish" or event["outcome"] != "ok":
            continue
        if event["id"] in finished:
            audit.problem("done twice", f"{event['id']}: {event['client']}")
        finished[event["id"]] = event["client"]
    audit.counts["finished ids"] += len(finished)
    return finished


def check_logs(folder, audit):
    """The ids that must be done at every daemon."""
    logs = read_logs(folder)
    for events in logs:
        check_client(events, audit)
    together = [event for events in logs for event in events]
    check_sections([one for events in logs for one in sections_of(events)], audit)
    check_grants(together, audit)
    return check_ids(together, audit)
