# One place per process: Bob gave up while the store was away, so his place stayed. He asks again and
# goes on with it, before Cem.
store time
0 ann asks db
10 bob asks db wait=200 timeout=1000
20 cem asks db
100 store goes
3000 store comes
3100 bob asks db
3200 store shows db
3300 ann lets go
3400 bob lets go
3500 cem lets go
---
      0       * ann asks db
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
     10       * bob asks db wait=200 timeout=1000
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
     14 bob   acquiring + answer ok -> waiting; told waiting
     20       * cem asks db
     20 cem   idle + start -> acquiring; verdict granted; swap if absent
     22 cem   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 2
     24 cem   acquiring + answer ok -> waiting; told waiting
    100       * store goes
    210 bob   waiting + timer -> leaving; verdict done; swap if revision 2
    552 bob   leaving + timer -> leaving
    613 bob   leaving + timer -> leaving; read
   1210 bob   leaving + timer -> ended; told unavailable (the store does not answer)
   3000       * store comes
   3100       * bob asks db
   3100 bob   idle + start -> acquiring; verdict granted; swap if absent
   3102 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 3
   3104 bob   acquiring + answer ok -> waiting; told waiting
   3200       * store shows db
   3200 store {"leasehold":1,"key":"db","next":4000000000021001,"grants":[{"holder":"ann","request":"r1","session":"2","mode":"exclusive","bound":true,"granted":[0,1,1],"ttl_ms":30000}],"places":[{"holder":"bob","request":"r4","session":"3","mode":"exclusive","bound":true,"ticket":4000000000011000,"ttl_ms":30000},{"holder":"cem","request":"r3","session":"4","mode":"exclusive","bound":true,"ticket":4000000000021000,"ttl_ms":30000}]}
   3300       * ann lets go
   3300 ann   held + let go -> releasing; verdict done; delete if revision 1
   3302 ann   releasing + answer conflict -> releasing; verdict done, named 1; swap if revision 4, wakes 1
   3304 ann   releasing + answer ok -> ended; told ok
   3304 bob   waiting + notice -> waiting; read
   3306 bob   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 5
   3308 bob   offered + answer ok -> held; told held, token 6144; deadline 23306, kill 28306
   3400       * bob lets go
   3400 bob   held + let go -> releasing; verdict done, named 1; swap if revision 6, wakes 1
   3402 bob   releasing + answer ok -> ended; told ok
   3402 cem   waiting + notice -> waiting; read
   3404 cem   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 7
   3406 cem   offered + answer ok -> held; told held, token 8192; deadline 23404, kill 28404
   3500       * cem lets go
   3500 cem   held + let go -> releasing; verdict done; delete if revision 8
   3502 cem   releasing + answer ok -> ended; told ok
