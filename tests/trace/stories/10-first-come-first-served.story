# Rule 4: those who wait have places, in order of arrival. A release names the next in the same
# write; only that one is woken.
store time
0 ann asks db
10 bob asks db
20 cem asks db
100 store shows db
200 ann lets go
300 bob lets go
400 cem lets go
500 store shows db
---
      0       * ann asks db
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
     10       * bob asks db
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
     14 bob   acquiring + answer ok -> waiting; told waiting
     20       * cem asks db
     20 cem   idle + start -> acquiring; verdict granted; swap if absent
     22 cem   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 2
     24 cem   acquiring + answer ok -> waiting; told waiting
    100       * store shows db
    100 store {"leasehold":1,"key":"db","next":4000000000021001,"grants":[{"holder":"ann","request":"r1","session":"2","mode":"exclusive","bound":true,"granted":[0,1,1],"ttl_ms":30000}],"places":[{"holder":"bob","request":"r2","session":"3","mode":"exclusive","bound":true,"ticket":4000000000011000,"ttl_ms":30000},{"holder":"cem","request":"r3","session":"4","mode":"exclusive","bound":true,"ticket":4000000000021000,"ttl_ms":30000}]}
    200       * ann lets go
    200 ann   held + let go -> releasing; verdict done; delete if revision 1
    202 ann   releasing + answer conflict -> releasing; verdict done, named 1; swap if revision 3, wakes 1
    204 ann   releasing + answer ok -> ended; told ok
    204 bob   waiting + notice -> waiting; read
    206 bob   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 4
    208 bob   offered + answer ok -> held; told held, token 5120; deadline 20206, kill 25206
    300       * bob lets go
    300 bob   held + let go -> releasing; verdict done, named 1; swap if revision 5, wakes 1
    302 bob   releasing + answer ok -> ended; told ok
    302 cem   waiting + notice -> waiting; read
    304 cem   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 6
    306 cem   offered + answer ok -> held; told held, token 7168; deadline 20304, kill 25304
    400       * cem lets go
    400 cem   held + let go -> releasing; verdict done; delete if revision 7
    402 cem   releasing + answer ok -> ended; told ok
    500       * store shows db
    500 store absent
