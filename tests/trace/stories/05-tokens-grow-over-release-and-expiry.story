# Rule 2: tokens grow per key, whether the last holder gave back or died. The count of writes is the
# store's and goes on over deletes.
store time
0 ann asks db ttl=1000
10 ann lets go
20 bob asks db ttl=1000
100 bob dies
1200 cem asks db ttl=1000 nowait
1300 cem lets go
1400 dot asks db nowait
1450 dot lets go
---
      0       * ann asks db ttl=1000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 666, kill 833
     10       * ann lets go
     10 ann   held + let go -> releasing; verdict done; delete if revision 1
     12 ann   releasing + answer ok -> ended; told ok
     20       * bob asks db ttl=1000
     20 bob   idle + start -> acquiring; verdict granted; swap if absent
     22 bob   acquiring + answer ok -> held; told held, token 3072; deadline 686, kill 853
    100       * bob dies
    100 bob   dies
   1200       * cem asks db ttl=1000 nowait
   1200 cem   idle + start -> acquiring; verdict granted; swap if absent
   1202 cem   acquiring + answer conflict -> acquiring; verdict granted, expired 1; swap if revision 3
   1204 cem   acquiring + answer ok -> held; told held, token 4096; deadline 1868, kill 2035
   1300       * cem lets go
   1300 cem   held + let go -> releasing; verdict done; delete if revision 4
   1302 cem   releasing + answer ok -> ended; told ok
   1400       * dot asks db nowait
   1400 dot   idle + start -> acquiring; verdict granted; swap if absent
   1402 dot   acquiring + answer ok -> held; told held, token 6144; deadline 21400, kill 26400
   1450       * dot lets go
   1450 dot   held + let go -> releasing; verdict done; delete if revision 6
   1452 dot   releasing + answer ok -> ended; told ok
