# SPDX-License-Identifier: Apache-2.0
"""A guarded resource: a number in a file. Reads and writes carry a token, and one below the highest
token seen is refused. Every call is logged, in the order in which the resource executes them.
"""

import fcntl
import json
import os


class GuardedValue:
    def __init__(self, folder, key):
        self.path = f"{folder}/value-{key}"
        self.log_path = f"{folder}/calls-{key}"

    def run(self, verb, token, value):
        file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        log = os.open(self.log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            highest, current = json.loads(os.pread(file, 200, 0) or b"[0, 0]")
            accepted = token >= highest
            os.write(log, json.dumps([verb, token, accepted]).encode() + b"\n")
            if accepted:
                current = current if value is None else value
                os.pwrite(file, json.dumps([token, current]).encode().ljust(80), 0)
            return accepted, current
        finally:
            os.close(file)
            os.close(log)

    def read(self, token):
        """The value; None: refused."""
        accepted, current = self.run("read", token, None)
        return current if accepted else None

    def write(self, token, value):
        return self.run("write", token, value)[0]

    def audit(self):
        """Counts of the log: stale writes tried, stale writes accepted, updates lost."""
        highest = tried = stale = writes = 0
        if not os.path.exists(self.log_path):
            return 0, 0, 0, 0
        with open(self.log_path, encoding="ascii") as log:
            for verb, token, accepted in map(json.loads, log):
                is_write = verb == "write"
                tried += is_write and token < highest
                stale += is_write and token < highest and accepted
                writes += is_write and accepted
                highest = max(highest, token)
        with open(self.path, encoding="ascii") as file:
            return tried, stale, writes - json.loads(file.read())[1], writes
