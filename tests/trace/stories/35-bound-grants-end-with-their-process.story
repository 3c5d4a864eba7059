# Rule 11: where the store knows who lives, a bound grant ends with its process. An unbound one, as of
# `T=$(leasehold acquire k)`, lives by its TTL alone.
store time liveness
0 ann asks db ttl=5000
100 ann dies
200 bob asks db nowait ttl=5000 unbound
300 bob dies
400 cem asks db nowait
5300 cem asks db nowait
5400 cem lets go
---
      0       * ann asks db ttl=5000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 3333, kill 4166
    100       * ann dies
    100 ann   dies
    200       * bob asks db nowait ttl=5000 unbound
    200 bob   idle + start -> acquiring; verdict granted; swap if absent
    202 bob   acquiring + answer conflict -> acquiring; verdict granted, expired 1; swap if revision 1
    204 bob   acquiring + answer ok -> held; told held, token 2048; deadline 3535, kill 4368
    300       * bob dies
    300 bob   dies
    400       * cem asks db nowait
    400 cem   idle + start -> acquiring; verdict granted; swap if absent
    402 cem   acquiring + answer conflict -> ended; verdict busy; told busy
   5300       * cem asks db nowait
   5300 cem   idle + start -> acquiring; verdict granted; swap if absent
   5302 cem   acquiring + answer conflict -> acquiring; verdict granted, expired 1; swap if revision 2
   5304 cem   acquiring + answer ok -> held; told held, token 3072; deadline 25302, kill 30302
   5400       * cem lets go
   5400 cem   held + let go -> releasing; verdict done; delete if revision 3
   5402 cem   releasing + answer ok -> ended; told ok
