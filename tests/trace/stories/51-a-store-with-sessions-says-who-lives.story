# A store with sessions (etcd) has no clock to read, but says which leases are over. Nobody else judges.
store sessions
0 ann asks db ttl=2000 unbound
100 ann dies
500 bob asks db look=1000
3500 bob lets go
---
      0       * ann asks db ttl=2000 unbound
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 1333, kill 1666
    100       * ann dies
    100 ann   dies
    500       * bob asks db look=1000
    500 bob   idle + start -> acquiring; verdict granted; swap if absent
    502 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
    504 bob   acquiring + answer ok -> waiting; told waiting
   1622 bob   waiting + timer -> waiting; read
   1624 bob   waiting + answer ok -> waiting; verdict waiting
   2502 bob   waiting + timer -> waiting; read
   2504 bob   waiting + answer ok -> acquiring; verdict granted, expired 1; swap if revision 2
   2506 bob   acquiring + answer ok -> held; told held, token 3072; deadline 22504, kill 27504
   3500       * bob lets go
   3500 bob   held + let go -> releasing; verdict done; delete if revision 3
   3502 bob   releasing + answer ok -> ended; told ok
