# SPDX-License-Identifier: Apache-2.0
"""Takes one lock again and again, as programs do that know nothing of leasehold.

locker.py HOW PORT KEY ROUNDS FOLDER: `lock` is redis-py's own Lock, `bare` is SET NX PX and a
script that deletes what is still ours. Inside it makes the folder's file `inside`, which must not
be there. Prints the rounds and the longest wait in milliseconds.
"""
import os
import sys
import time
import uuid

import redis

LEASE_MS = 10000
COMPARE_AND_DELETE = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0
"""


class Bare:
    def __init__(self, server, key):
        self.server, self.key, self.mine = server, key, None

    def acquire(self):
        self.mine = uuid.uuid4().hex
        while not self.server.set(self.key, self.mine, nx=True, px=LEASE_MS):
            time.sleep(0.02)

    def release(self):
        if self.server.eval(COMPARE_AND_DELETE, 1, self.key, self.mine) != 1:
            raise RuntimeError("the lock was not ours any more")


def work(folder, who):
    path = os.path.join(folder, "inside")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        with open(os.path.join(folder, "violations"), "a") as out:
            out.write(f"{who} was not alone\n")
        return
    time.sleep(0.003)
    os.unlink(path)


def main():
    how, port, key, rounds, folder = sys.argv[1:]
    server = redis.Redis(port=int(port))
    lock = (Bare(server, key) if how == "bare"
            else redis.lock.Lock(server, key, timeout=LEASE_MS / 1000))
    longest = 0.0
    for _ in range(int(rounds)):
        began = time.monotonic()
        lock.acquire()
        longest = max(longest, time.monotonic() - began)
        work(folder, how)
        lock.release()
        time.sleep(0.005)
    print(rounds, round(longest * 1000))


main()
