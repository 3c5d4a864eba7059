# SPDX-License-Identifier: Apache-2.0
"""`leasehold serve` as a process of a test: started, killed, stopped, continued."""

import os
import signal
import subprocess

from resp_client import Connection


class Daemon:
    def __init__(self, program, store, log):
        self.arguments = [program, "serve", "--store", store, "--listen", "127.0.0.1:0", "--http", "off",
                          "--unix", "off"]
        self.log_path = log
        self.process, self.port = None, 0
        self.start()

    def start(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.arguments, stdout=subprocess.PIPE, stderr=log)
        line = self.process.stdout.readline().decode()
        if not line.startswith("listening on "):
            with open(self.log_path, encoding="utf-8") as log:
                raise RuntimeError(f"the daemon does not start: {log.read()[-500:]}")
        self.port = int(line.rsplit(":", 1)[1])

    def connect(self):
        return Connection(self.port)

    def signal(self, number):
        os.kill(self.process.pid, number)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def end(self):
        """False: it did not end by SIGTERM with status 0."""
        self.signal(signal.SIGCONT)
        self.process.terminate()
        try:
            status = self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        self.process.stdout.close()
        return status == 0
