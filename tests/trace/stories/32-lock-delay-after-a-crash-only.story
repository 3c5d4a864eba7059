# After a crash, and only after a crash, the lock-delay keeps everybody out a little longer: writes
# of the dead may still be on their way.
store time
0 ann asks db ttl=1000 lock-delay=2000
100 ann lets go
200 ann asks db ttl=1000 lock-delay=2000
300 ann dies
1300 bob asks db nowait
1400 cem asks db
3400 cem lets go
---
      0       * ann asks db ttl=1000 lock-delay=2000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 666, kill 833
    100       * ann lets go
    100 ann   held + let go -> releasing; verdict done; delete if revision 1
    102 ann   releasing + answer ok -> ended; told ok
    200       * ann asks db ttl=1000 lock-delay=2000
    200 ann   idle + start -> acquiring; verdict granted; swap if absent
    202 ann   acquiring + answer ok -> held; told held, token 3072; deadline 866, kill 1033
    300       * ann dies
    300 ann   dies
   1300       * bob asks db nowait
   1300 bob   idle + start -> acquiring; verdict granted; swap if absent
   1302 bob   acquiring + answer conflict -> acquiring; verdict busy, expired 1; swap if revision 3
   1304 bob   acquiring + answer ok -> ended; told busy
   1400       * cem asks db
   1400 cem   idle + start -> acquiring; verdict granted; swap if absent
   1402 cem   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 4
   1404 cem   acquiring + answer ok -> waiting; told waiting
   3202 cem   waiting + timer -> waiting; read
   3204 cem   waiting + answer ok -> acquiring; verdict granted; swap if revision 5
   3206 cem   acquiring + answer ok -> held; told held, token 6144; deadline 23204, kill 28204
   3400       * cem lets go
   3400 cem   held + let go -> releasing; verdict done; delete if revision 6
   3402 cem   releasing + answer ok -> ended; told ok
