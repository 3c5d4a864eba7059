# The seam: a record cannot contain its own revision, so the grant says "this". Bob's write replaces
# the mark by what he read before he adds himself: neither Ann's token nor her expiry moves, and her
# renewal meets a conflict, not a loss.
store time
0 ann asks db ttl=3000
5 store shows db
10 bob asks db
20 store shows db
1500 ann lets go
1600 bob lets go
---
      0       * ann asks db ttl=3000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 2000, kill 2500
      5       * store shows db
      5 store {"leasehold":1,"key":"db","next":2,"grants":[{"holder":"ann","request":"r1","session":"2","mode":"exclusive","bound":true,"granted":"this","ttl_ms":3000}]}
     10       * bob asks db
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
     14 bob   acquiring + answer ok -> waiting; told waiting
     20       * store shows db
     20 store {"leasehold":1,"key":"db","next":4000000000011001,"grants":[{"holder":"ann","request":"r1","session":"2","mode":"exclusive","bound":true,"granted":[0,1,1],"ttl_ms":3000}],"places":[{"holder":"bob","request":"r2","session":"3","mode":"exclusive","bound":true,"ticket":4000000000011000,"ttl_ms":30000}]}
    911 ann   held + timer -> renewing; verdict done; swap if revision 1
    913 ann   renewing + answer conflict -> renewing; verdict done; swap if revision 2
    915 ann   renewing + answer ok -> held; deadline 2913
   1500       * ann lets go
   1500 ann   held + let go -> releasing; verdict done, named 1; swap if revision 3, wakes 1
   1502 ann   releasing + answer ok -> ended; told ok
   1502 bob   waiting + notice -> waiting; read
   1504 bob   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 4
   1506 bob   offered + answer ok -> held; told held, token 5120; deadline 21504, kill 26504
   1600       * bob lets go
   1600 bob   held + let go -> releasing; verdict done; delete if revision 5
   1602 bob   releasing + answer ok -> ended; told ok
