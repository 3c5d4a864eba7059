# A server whose times are whole seconds: their error is added before anything is over.
store time whole-seconds
0 ann asks db ttl=2000
100 ann dies
2100 bob asks db nowait
4500 bob asks db nowait
4600 bob lets go
---
      0       * ann asks db ttl=2000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 1333, kill 1666
    100       * ann dies
    100 ann   dies
   2100       * bob asks db nowait
   2100 bob   idle + start -> acquiring; verdict granted; swap if absent
   2102 bob   acquiring + answer conflict -> ended; verdict busy; told busy
   4500       * bob asks db nowait
   4500 bob   idle + start -> acquiring; verdict granted; swap if absent
   4502 bob   acquiring + answer conflict -> acquiring; verdict granted, expired 1; swap if revision 1
   4504 bob   acquiring + answer ok -> held; told held, token 2048; deadline 24502, kill 29502
   4600       * bob lets go
   4600 bob   held + let go -> releasing; verdict done; delete if revision 2
   4602 bob   releasing + answer ok -> ended; told ok
