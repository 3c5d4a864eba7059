# Rule 8: the second key is busy, so the first is given back: all or nothing.
store time
0 bob asks db
10 ann takes db,cache nowait
100 cem asks cache nowait
200 cem lets go
300 bob lets go
---
      0       * bob asks db
      0 bob   idle + start -> acquiring; verdict granted; swap if absent
      2 bob   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
     10       * ann takes db,cache nowait
     10 ann-1 idle + start -> acquiring; verdict granted; swap if absent
     12 ann-1 acquiring + answer ok -> held; told held, token 2048; deadline 20010, kill 25010
     12 ann-2 idle + start -> acquiring; verdict granted; swap if absent
     14 ann-2 acquiring + answer conflict -> ended; verdict busy; told busy
     14 ann-1 held + let go -> releasing; verdict done; delete if revision 2
     16 ann-1 releasing + answer ok -> ended; told ok
     16 ann-1 all keys: told busy
    100       * cem asks cache nowait
    100 cem   idle + start -> acquiring; verdict granted; swap if absent
    102 cem   acquiring + answer ok -> held; told held, token 4096; deadline 20100, kill 25100
    200       * cem lets go
    200 cem   held + let go -> releasing; verdict done; delete if revision 4
    202 cem   releasing + answer ok -> ended; told ok
    300       * bob lets go
    300 bob   held + let go -> releasing; verdict done; delete if revision 1
    302 bob   releasing + answer ok -> ended; told ok
