# SPDX-License-Identifier: Apache-2.0
"""A proxy between clients and one daemon that cuts connections without FIN: it discards bytes of
one or both directions, or holds replies back. A cut connection ends at the daemon by RST some
seconds later, as if keep-alive had failed. One thread.
"""

import selectors
import socket
import struct
import threading
import time

BOTH, REPLIES, REQUESTS, DELAY = "both", "replies", "requests", "delay"


class Pair:
    def __init__(self, client, daemon):
        self.client, self.daemon = client, daemon
        self.mode, self.until, self.held = None, 0.0, []


class Proxy(threading.Thread):
    def __init__(self, port):
        super().__init__(daemon=True)
        self.target = port
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        self.selector = selectors.DefaultSelector()
        self.pairs, self.orders, self.lock, self.ending = set(), [], threading.Lock(), False
        self.cut_count = 0
        self.selector.register(self.listener, selectors.EVENT_READ)

    def cut(self, mode, seconds):
        """All connections of now: for `delay`, replies are held back that long; otherwise the
        connections are silent that long, and then reset."""
        with self.lock:
            self.orders.append((mode, seconds))

    def end(self):
        self.ending = True
        self.join()
        for pair in list(self.pairs):
            self.drop(pair)
        self.listener.close()

    def drop(self, pair):
        self.pairs.discard(pair)
        for one in (pair.client, pair.daemon):
            try:
                self.selector.unregister(one)
            except (KeyError, ValueError):
                pass
            one.close()

    def accept(self):
        client, _ = self.listener.accept()
        try:
            daemon = socket.create_connection(("127.0.0.1", self.target), 1)
        except OSError:
            client.close()
            return
        pair = Pair(client, daemon)
        for one in (client, daemon):
            one.setblocking(False)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.selector.register(one, selectors.EVENT_READ, pair)
        self.pairs.add(pair)

    def forward(self, pair, source):
        from_daemon = source is pair.daemon
        try:
            received = source.recv(65536)
        except OSError:
            received = b""
        if not received:
            if pair.mode in (None, DELAY):
                self.drop(pair)
            else:  # the other side must not see it
                self.selector.unregister(source)
            return
        if pair.mode == BOTH or pair.mode == (REPLIES if from_daemon else REQUESTS):
            return
        if pair.mode == DELAY and from_daemon:
            pair.held.append(received)
            return
        self.send(pair, pair.client if from_daemon else pair.daemon, received)

    def send(self, pair, target, data):
        try:
            target.sendall(data)
        except OSError:
            if pair.mode in (None, DELAY):
                self.drop(pair)

    def obey(self):
        with self.lock:
            orders, self.orders = self.orders, []
        for mode, seconds in orders:
            for pair in self.pairs:
                if pair.mode is None:
                    pair.mode, pair.until = mode, time.monotonic() + seconds
                    self.cut_count += 1

    def expire(self):
        now = time.monotonic()
        for pair in [pair for pair in self.pairs if pair.mode and pair.until <= now]:
            if pair.mode == DELAY:
                pair.mode, held, pair.held = None, pair.held, []
                for data in held:
                    self.send(pair, pair.client, data)
                continue
            pair.daemon.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.drop(pair)

    def run(self):
        while not self.ending:
            for key, _ in self.selector.select(0.01):
                if key.data is None:
                    self.accept()
                elif key.data in self.pairs:
                    self.forward(key.data, key.fileobj)
            self.obey()
            self.expire()
