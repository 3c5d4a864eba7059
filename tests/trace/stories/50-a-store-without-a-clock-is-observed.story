# Some stores tell no usable time. Then a lease has run out when an observer has seen it unchanged for
# its whole length, on the observer's own clock. Never another host's clock against ours.
store no-clock
0 ann asks db ttl=2000
100 ann dies
500 bob asks db look=60000
2700 bob lets go
---
      0       * ann asks db ttl=2000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 1333, kill 1666
    100       * ann dies
    100 ann   dies
    500       * bob asks db look=60000
    500 bob   idle + start -> acquiring; verdict granted; swap if absent
    502 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
    504 bob   acquiring + answer ok -> waiting; told waiting
   2502 bob   waiting + timer -> waiting; read
   2504 bob   waiting + answer ok -> acquiring; verdict granted, expired 1; swap if revision 2
   2506 bob   acquiring + answer ok -> held; told held, token 3072; deadline 22504, kill 27504
   2700       * bob lets go
   2700 bob   held + let go -> releasing; verdict done; delete if revision 3
   2702 bob   releasing + answer ok -> ended; told ok
