# A copy of Bob's create was held up in the network and lands after Ann's release. It grants a lease
# that nobody uses. Its cost is stated: one TTL, then Cem is in.
store time
0 ann asks db ttl=2000
10 bob doubles request
11 bob holds request 300
12 bob asks db nowait ttl=2000
100 ann lets go
400 store shows db
500 cem asks db
2600 cem lets go
---
      0       * ann asks db ttl=2000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 1333, kill 1666
     10       * bob doubles request
     11       * bob holds request 300
     12       * bob asks db nowait ttl=2000
     12 bob   idle + start -> acquiring; verdict granted; swap if absent
     14 bob   acquiring + answer conflict -> ended; verdict busy; told busy
    100       * ann lets go
    100 ann   held + let go -> releasing; verdict done; delete if revision 1
    102 ann   releasing + answer ok -> ended; told ok
    400       * store shows db
    400 store {"leasehold":1,"key":"db","next":2,"grants":[{"holder":"bob","request":"r2","session":"3","mode":"exclusive","bound":true,"granted":"this","ttl_ms":2000}]}
    500       * cem asks db
    500 cem   idle + start -> acquiring; verdict granted; swap if absent
    502 cem   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 3
    504 cem   acquiring + answer ok -> waiting; told waiting
   2314 cem   waiting + timer -> waiting; read
   2316 cem   waiting + answer ok -> acquiring; verdict granted, expired 1; swap if revision 4
   2318 cem   acquiring + answer ok -> held; told held, token 5120; deadline 22316, kill 27316
   2600       * cem lets go
   2600 cem   held + let go -> releasing; verdict done; delete if revision 5
   2602 cem   releasing + answer ok -> ended; told ok
