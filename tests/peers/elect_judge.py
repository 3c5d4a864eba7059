# SPDX-License-Identifier: Apache-2.0
"""Did two lead at the same time? elect_judge.py LEASE_MS FOLDER, for elect.sh: reads `beats`, one
line of a leader with the time it was written at, and `notes`, what was done to whom and when.
Prints figures; the exit status says whether all is well.

Whoever writes after somebody newer did, led beside it. What may not happen at all:
- one of ours beside anybody, or anybody beside one of ours;
- one of ours writes a whole lease after it was cut off from the server.
What is counted apart, since nobody can promise more:
- who was stopped by a signal cannot know at the moment it is woken; tokens are for that. The
  library is asked before each line, so it gets no such lines. `run` ends its command at once;
  client-go finds out when its next renewal fails, a RenewDeadline and a request later.
- client-go that fails to renew gives the Lease back before it tells its own callback.
- two of client-go among themselves.
"""
import collections
import glob
import sys

LEASE_MS = int(sys.argv[1])
FOLDER = sys.argv[2]
AFTER_WAKING_MS = {"library": 0, "run": 1000, "client-go": LEASE_MS + 1000}
OUTAGES = ("cut-off", "unanswered", "server-stopped", "server-killed")


def face_of(name):
    return name.rsplit("-", 1)[0]


def is_ours(name):
    return face_of(name) != "client-go"


def read_lines(name):
    with open(f"{FOLDER}/{name}") as lines:
        return [line.split() for line in lines]


beats = sorted(((int(at), name) for name, at in read_lines("beats")), key=lambda beat: beat[0])
woken, struck, rounds = {}, {}, collections.defaultdict(list)
for *words, at in read_lines("notes"):
    if words[0] == "woken":
        woken[words[1]] = int(at)
    elif words[0] != "round":
        struck[words[1]] = (words[0], int(at))
    else:
        rounds[words[1]].append((words[2], words[3]))

first, last, newest = {}, {}, None
beside, late = [], collections.Counter()
for at, name in beats:
    last[name] = at
    if name not in first:
        first[name], newest = at, name
    elif name != newest:
        kind = face_of(name)
        if name in woken and 0 <= at - woken[name] <= AFTER_WAKING_MS[kind]:
            late[f"just woken, {kind}"] += 1
        elif not is_ours(name) and not is_ours(newest):
            late["two of client-go"] += 1
        else:
            beside.append((name, newest, at - first[newest]))

# client-go that is asked to stop while it renews does not know its own last write, and is refused.
unreleased = set()
for path in glob.glob(f"{FOLDER}/client-go-*.log"):
    with open(path) as log:
        if "Failed to release lock" in log.read():
            unreleased.add(path.rsplit("/", 1)[1].removesuffix(".log"))

gaps, told = collections.defaultdict(list), collections.defaultdict(list)
order = sorted(first, key=first.get)
for name, following in zip(order, order[1:]):
    if name in struck:
        kind, at = struck[name]
        if kind == "released" and name in unreleased:
            kind = "released in vain"
        gaps[kind].append(first[following] - at)
        if kind in OUTAGES:
            told["ours" if is_ours(name) else "client-go"].append(last[name] - at)

for kind, ways in sorted(rounds.items()):
    counted = collections.Counter("->".join(way) for way in ways)
    print(f"{kind}: {len(ways)} ({', '.join(f'{n} {way}' for way, n in sorted(counted.items()))})")
for kind, spans in sorted(gaps.items()):
    print(f"{kind}: the next one led {min(spans)} to {max(spans)} ms later ({len(spans)})")
for who, spans in sorted(told.items()):
    print(f"without a server {who} led on for {max(spans)} ms at most, its lease had {LEASE_MS}")
for why, count in sorted(late.items()):
    print(f"lines of one that was not the newest: {why}: {count}")
for name, newer, at in beside[:20]:
    print(f"{name} led beside {newer}, {at} ms after it had begun")
too_long = [span for span in told["ours"] if span >= LEASE_MS]
print(f"{len(first)} terms, {len(beats)} lines; of two leaders at once: {len(beside)}; "
      f"ours without a server for a whole lease: {len(too_long)}")
sys.exit(1 if beside or too_long else 0)
