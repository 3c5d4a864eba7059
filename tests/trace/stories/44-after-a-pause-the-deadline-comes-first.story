# Ann's host sleeps past her deadline. The clock ran on, and the first thing she does is to look at it:
# lost, whatever else has arrived meanwhile. Bob was granted in between; Ann's blind write at wake-up
# carries an old token, and the guarded side refuses it.
store time
0 ann asks db ttl=3000
10 bob asks db
100 ann stands still 4000
4200 ann lets go
4300 bob lets go
---
      0       * ann asks db ttl=3000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 2000, kill 2500
     10       * bob asks db
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
     14 bob   acquiring + answer ok -> waiting; told waiting
    100       * ann stands still 4000
    100 ann   stands still
   3002 bob   waiting + timer -> waiting; read
   3004 bob   waiting + answer ok -> acquiring; verdict granted, expired 1; swap if revision 2
   3006 bob   acquiring + answer ok -> held; told held, token 3072; deadline 23004, kill 28004
   4100 ann   goes on
   4100 ann   held + timer -> lost; told lost (deadline), kill 2500
   4200       * ann lets go
   4200 ann   lost + let go -> releasing; verdict done; delete if revision 1
   4202 ann   releasing + answer conflict -> ended; verdict stale; told lost
   4300       * bob lets go
   4300 bob   held + let go -> releasing; verdict done; delete if revision 3
   4302 bob   releasing + answer ok -> ended; told ok
