# The lock-delay begins with the write that notices the crash, because nobody can say when the lease
# ended. Cem knows its length and reads when it should be over; the store alone says that it is.
store sessions
0 ann asks db ttl=1000 lock-delay=2000
300 ann dies
1300 bob asks db nowait
1400 cem asks db look=60000
4000 cem lets go
---
      0       * ann asks db ttl=1000 lock-delay=2000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 666, kill 833
    300       * ann dies
    300 ann   dies
   1300       * bob asks db nowait
   1300 bob   idle + start -> acquiring; verdict granted; swap if absent
   1302 bob   acquiring + answer conflict -> acquiring; verdict busy, expired 1; swap if revision 1
   1304 bob   acquiring + answer ok -> ended; told busy
   1400       * cem asks db look=60000
   1400 cem   idle + start -> acquiring; verdict granted; swap if absent
   1402 cem   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 2
   1404 cem   acquiring + answer ok -> waiting; told waiting
   3402 cem   waiting + timer -> waiting; read
   3404 cem   waiting + answer ok -> acquiring; verdict granted; swap if revision 3
   3406 cem   acquiring + answer ok -> held; told held, token 4096; deadline 23404, kill 28404
   4000       * cem lets go
   4000 cem   held + let go -> releasing; verdict done; delete if revision 4
   4002 cem   releasing + answer ok -> ended; told ok
