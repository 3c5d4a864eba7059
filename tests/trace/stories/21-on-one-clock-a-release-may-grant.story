# Rule 4: where all processes read the store's own clock, the release writes the grants itself and
# their leases count from that write. Two grants of one write differ in the token's last part.
store one-clock
0 ann asks db
10 bob asks db shared
20 cem asks db shared
100 ann lets go
200 store shows db
300 bob lets go
400 cem lets go
---
      0       * ann asks db
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
     10       * bob asks db shared
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
     14 bob   acquiring + answer ok -> waiting; told waiting
     20       * cem asks db shared
     20 cem   idle + start -> acquiring; verdict granted; swap if absent
     22 cem   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 2
     24 cem   acquiring + answer ok -> waiting; told waiting
    100       * ann lets go
    100 ann   held + let go -> releasing; verdict done; delete if revision 1
    102 ann   releasing + answer conflict -> releasing; verdict done, named 2; swap if revision 3, wakes 2
    104 ann   releasing + answer ok -> ended; told ok
    104 bob   waiting + notice -> waiting; read
    104 cem   waiting + notice -> waiting; read
    106 bob   waiting + answer ok -> held; verdict granted; told held, token 4096; deadline 20102, kill 25102
    106 cem   waiting + answer ok -> held; verdict granted; told held, token 4160; deadline 20102, kill 25102
    200       * store shows db
    200 store {"leasehold":1,"key":"db","next":4000000000021001,"grants":[{"holder":"bob","request":"r2","session":"3","mode":"shared","bound":true,"granted":"this","ttl_ms":30000},{"holder":"cem","request":"r3","session":"4","mode":"shared","bound":true,"n":64,"granted":"this","ttl_ms":30000}]}
    300       * bob lets go
    300 bob   held + let go -> releasing; verdict done; swap if revision 4
    302 bob   releasing + answer ok -> ended; told ok
    400       * cem lets go
    400 cem   held + let go -> releasing; verdict done; swap if revision 4
    402 cem   releasing + answer conflict -> releasing; verdict done; delete if revision 5
    404 cem   releasing + answer ok -> ended; told ok
