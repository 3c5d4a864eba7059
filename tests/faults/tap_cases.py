# SPDX-License-Identifier: Apache-2.0
"""Cases of a suite in TAP."""


class Tap:
    def __init__(self):
        self.number, self.failed = 0, False

    def case(self, good, name, notes=()):
        self.number += 1
        for note in () if good else notes:
            print("# " + note)
        print(f"{'ok' if good else 'not ok'} {self.number} - {name}", flush=True)
        self.failed |= not good

    def end(self):
        """The status of the program."""
        print(f"1..{self.number}")
        return 1 if self.failed else 0
