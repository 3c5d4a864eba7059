# Rule 11 without a clock: the reply names the dead session. Ann's bound grant is over at once; Bob's,
# which is not bound, is over only when the store says so.
store sessions
0 ann asks db ttl=5000
100 ann dies
200 bob asks db nowait ttl=2000 unbound
300 bob dies
400 cem asks db nowait
2300 cem asks db nowait
2400 cem lets go
---
      0       * ann asks db ttl=5000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 3333, kill 4166
    100       * ann dies
    100 ann   dies
    200       * bob asks db nowait ttl=2000 unbound
    200 bob   idle + start -> acquiring; verdict granted; swap if absent
    202 bob   acquiring + answer conflict -> acquiring; verdict granted, expired 1; swap if revision 1
    204 bob   acquiring + answer ok -> held; told held, token 2048; deadline 1535, kill 1868
    300       * bob dies
    300 bob   dies
    400       * cem asks db nowait
    400 cem   idle + start -> acquiring; verdict granted; swap if absent
    402 cem   acquiring + answer conflict -> ended; verdict busy; told busy
   2300       * cem asks db nowait
   2300 cem   idle + start -> acquiring; verdict granted; swap if absent
   2302 cem   acquiring + answer conflict -> acquiring; verdict granted, expired 1; swap if revision 2
   2304 cem   acquiring + answer ok -> held; told held, token 3072; deadline 22302, kill 27302
   2400       * cem lets go
   2400 cem   held + let go -> releasing; verdict done; delete if revision 3
   2402 cem   releasing + answer ok -> ended; told ok
