# Rule 3: the store is away for good. Ann is told lost at her deadline, two thirds of the TTL after her
# last renewal was sent; her work is dead by the kill time; only then can the lease run out.
store time
0 ann asks db ttl=3000
10 bob asks db look=60000
100 store goes
2500 ann lets go
2900 store comes
3600 bob lets go
---
      0       * ann asks db ttl=3000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 2000, kill 2500
     10       * bob asks db look=60000
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
     14 bob   acquiring + answer ok -> waiting; told waiting
    100       * store goes
    911 ann   held + timer -> renewing; verdict done; swap if revision 1
   1231 ann   renewing + timer -> renewing
   1304 ann   renewing + timer -> renewing; read
   1907 ann   renewing + timer -> renewing
   2000 ann   renewing + timer -> lost; told lost (deadline), kill 2500
   2500       * ann lets go
   2500 ann   lost + let go -> releasing; verdict done; delete if revision 1
   2833 ann   releasing + timer -> releasing
   2896 ann   releasing + timer -> releasing; read
   2900       * store comes
   3002 bob   waiting + timer -> waiting; read
   3004 bob   waiting + answer ok -> acquiring; verdict granted, expired 1; swap if revision 2
   3006 bob   acquiring + answer ok -> held; told held, token 3072; deadline 23004, kill 28004
   3457 ann   releasing + timer -> releasing
   3588 ann   releasing + timer -> releasing; read
   3590 ann   releasing + answer ok -> ended; verdict stale; told lost
   3600       * bob lets go
   3600 bob   held + let go -> releasing; verdict done; delete if revision 3
   3602 bob   releasing + answer ok -> ended; told ok
