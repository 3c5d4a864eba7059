# Rule 1: a held key is busy for everybody else, and hearing so takes one round trip.
# The conflict carries the record that stands, so Bob need not read it.
store time
0 ann asks db
100 bob asks db nowait
200 ann lets go
300 bob asks db nowait
400 bob lets go
---
      0       * ann asks db
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
    100       * bob asks db nowait
    100 bob   idle + start -> acquiring; verdict granted; swap if absent
    102 bob   acquiring + answer conflict -> ended; verdict busy; told busy
    200       * ann lets go
    200 ann   held + let go -> releasing; verdict done; delete if revision 1
    202 ann   releasing + answer ok -> ended; told ok
    300       * bob asks db nowait
    300 bob   idle + start -> acquiring; verdict granted; swap if absent
    302 bob   acquiring + answer ok -> held; told held, token 3072; deadline 20300, kill 25300
    400       * bob lets go
    400 bob   held + let go -> releasing; verdict done; delete if revision 3
    402 bob   releasing + answer ok -> ended; told ok
