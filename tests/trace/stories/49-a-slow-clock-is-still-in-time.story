# Ann's clock runs 1.15 times slower than the store's. Her deadline and kill time come late, and still
# before the lease ends in the store's time. (The log shows Ann's clock in deadline and kill.)
store time
0 ann clock=870
1 ann asks db ttl=3000
10 bob asks db look=60000
20 store goes
2900 ann lets go
2950 store comes
3400 bob lets go
---
      0       * ann clock=870
      1       * ann asks db ttl=3000
      1 ann   idle + start -> acquiring; verdict granted; swap if absent
      3 ann   acquiring + answer ok -> held; told held, token 1024; deadline 2000, kill 2500
     10       * bob asks db look=60000
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
     14 bob   acquiring + answer ok -> waiting; told waiting
     20       * store goes
   1048 ann   held + timer -> renewing; verdict done; swap if revision 1
   1416 ann   renewing + timer -> renewing
   1500 ann   renewing + timer -> renewing; read
   2194 ann   renewing + timer -> renewing
   2300 ann   renewing + timer -> lost; told lost (deadline), kill 2500
   2900       * ann lets go
   2900 ann   lost + let go -> releasing; verdict done; delete if revision 1
   2950       * store comes
   3003 bob   waiting + timer -> waiting; read
   3005 bob   waiting + answer ok -> acquiring; verdict granted, expired 1; swap if revision 2
   3007 bob   acquiring + answer ok -> held; told held, token 3072; deadline 23005, kill 28005
   3283 ann   releasing + timer -> releasing
   3356 ann   releasing + timer -> releasing; read
   3358 ann   releasing + answer ok -> ended; verdict stale; told lost
   3400       * bob lets go
   3400 bob   held + let go -> releasing; verdict done; delete if revision 3
   3402 bob   releasing + answer ok -> ended; told ok
