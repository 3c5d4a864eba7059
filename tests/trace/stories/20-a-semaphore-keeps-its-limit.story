# Rule 1: at most `limit` hold a semaphore. The limit is stored; asking with another is refused.
store time
0 ann asks db slots=2
10 bob asks db slots=2
20 cem asks db slots=2
30 dot asks db slots=3 nowait
40 eve asks db nowait
100 ann lets go
200 bob lets go
300 cem lets go
---
      0       * ann asks db slots=2
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
     10       * bob asks db slots=2
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict granted; swap if revision 1
     14 bob   acquiring + answer ok -> held; told held, token 2048; deadline 20012, kill 25012
     20       * cem asks db slots=2
     20 cem   idle + start -> acquiring; verdict granted; swap if absent
     22 cem   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 2
     24 cem   acquiring + answer ok -> waiting; told waiting
     30       * dot asks db slots=3 nowait
     30 dot   idle + start -> acquiring; verdict granted; swap if absent
     32 dot   acquiring + answer conflict -> ended; verdict mismatch; told mismatch (the key is in use with another limit)
     40       * eve asks db nowait
     40 eve   idle + start -> acquiring; verdict granted; swap if absent
     42 eve   acquiring + answer conflict -> ended; verdict mismatch; told mismatch (the key is in use with another limit)
    100       * ann lets go
    100 ann   held + let go -> releasing; verdict done; delete if revision 1
    102 ann   releasing + answer conflict -> releasing; verdict done, named 1; swap if revision 3, wakes 1
    104 ann   releasing + answer ok -> ended; told ok
    104 cem   waiting + notice -> waiting; read
    106 cem   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 4
    108 cem   offered + answer ok -> held; told held, token 5120; deadline 20106, kill 25106
    200       * bob lets go
    200 bob   held + let go -> releasing; verdict done; swap if revision 2
    202 bob   releasing + answer conflict -> releasing; verdict done; swap if revision 5
    204 bob   releasing + answer ok -> ended; told ok
    300       * cem lets go
    300 cem   held + let go -> releasing; verdict done; swap if revision 5
    302 cem   releasing + answer conflict -> releasing; verdict done; delete if revision 6
    304 cem   releasing + answer ok -> ended; told ok
