# A store that tells changes: Bob sees the offer in the notice and accepts at once, without a read.
store time watches
0 ann asks db
10 bob asks db
100 ann lets go
200 bob lets go
---
      0       * ann asks db
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
      2 ann   held + notice -> held; deadline 20000
     10       * bob asks db
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
     14 bob   acquiring + answer ok -> waiting; told waiting
     14 ann   held + notice -> held; deadline 20000
     14 bob   waiting + notice -> waiting
    100       * ann lets go
    100 ann   held + let go -> releasing; verdict done, named 1; swap if revision 2, wakes 1
    102 ann   releasing + answer ok -> ended; told ok
    102 bob   waiting + notice -> offered; verdict granted (accepts); swap if revision 3
    104 bob   offered + answer ok -> held; told held, token 4096; deadline 20102, kill 25102
    104 bob   held + notice -> held; deadline 20102
    200       * bob lets go
    200 bob   held + let go -> releasing; verdict done; delete if revision 4
    202 bob   releasing + answer ok -> ended; told ok
