# Ann dies. Bob is first in line and knows when her lease ends in the store's time: he looks just
# then, and takes over with a new token.
store time
0 ann asks db ttl=2000
10 bob asks db look=60000
100 ann dies
2200 bob lets go
---
      0       * ann asks db ttl=2000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 1333, kill 1666
     10       * bob asks db look=60000
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
     14 bob   acquiring + answer ok -> waiting; told waiting
    100       * ann dies
    100 ann   dies
   2002 bob   waiting + timer -> waiting; read
   2004 bob   waiting + answer ok -> acquiring; verdict granted, expired 1; swap if revision 2
   2006 bob   acquiring + answer ok -> held; told held, token 3072; deadline 22004, kill 27004
   2200       * bob lets go
   2200 bob   held + let go -> releasing; verdict done; delete if revision 3
   2202 bob   releasing + answer ok -> ended; told ok
