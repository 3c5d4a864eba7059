# Bob looked while the key was cooling, and keeps that copy. When he asks again, the copy is enough to
# remove Ann's expired grant, but not to say that the key is still cooling: that was long ago.
store time copies
0 ann asks db slots=3 ttl=1000 unbound
10 ann dies
100 bob asks db slots=3 cooldown=2000
200 bob lets go
1500 bob looks db
3000 bob asks db slots=3 nowait
3100 bob lets go
---
      0       * ann asks db slots=3 ttl=1000 unbound
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 666, kill 833
     10       * ann dies
     10 ann   dies
    100       * bob asks db slots=3 cooldown=2000
    100 bob   idle + start -> acquiring; verdict granted; swap if absent
    102 bob   acquiring + answer conflict -> acquiring; verdict granted; swap if revision 1
    104 bob   acquiring + answer ok -> held; told held, token 2048; deadline 20102, kill 25102
    200       * bob lets go
    200 bob   held + let go -> releasing; verdict done; swap if revision 2
    202 bob   releasing + answer ok -> ended; told ok
   1500       * bob looks db
   1500 bob   idle + start -> operation; verdict done; read
   1502 bob   operation + answer ok -> ended; verdict done; told ok
   3000       * bob asks db slots=3 nowait
   3000 bob   idle + start -> acquiring; verdict cooling, expired 1; read
   3002 bob   acquiring + answer ok -> acquiring; verdict granted, expired 1; swap if revision 3
   3004 bob   acquiring + answer ok -> held; told held, token 4096; deadline 23002, kill 28002
   3100       * bob lets go
   3100 bob   held + let go -> releasing; verdict done; delete if revision 4
   3102 bob   releasing + answer ok -> ended; told ok
