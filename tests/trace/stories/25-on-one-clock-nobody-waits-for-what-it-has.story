# The writer died, and Ann's process stands still. Cem comes, and in one write he makes room, grants to Ann, who
# is first, and to himself, for both only read. He is told so at once.
store one-clock
0 bob asks db ttl=1000
10 bob dies
20 ann asks db shared ttl=2000 look=9000
500 ann stands still 700
1100 cem asks db shared ttl=2000 look=9000
1110 store shows db
1300 cem lets go
1400 ann lets go
---
      0       * bob asks db ttl=1000
      0 bob   idle + start -> acquiring; verdict granted; swap if absent
      2 bob   acquiring + answer ok -> held; told held, token 1024; deadline 666, kill 833
     10       * bob dies
     10 bob   dies
     20       * ann asks db shared ttl=2000 look=9000
     20 ann   idle + start -> acquiring; verdict granted; swap if absent
     22 ann   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
     24 ann   acquiring + answer ok -> waiting; told waiting
    500       * ann stands still 700
    500 ann   stands still
   1100       * cem asks db shared ttl=2000 look=9000
   1100 cem   idle + start -> acquiring; verdict granted; swap if absent
   1102 cem   acquiring + answer conflict -> acquiring; verdict granted, expired 1, named 2; swap if revision 2, wakes 1
   1104 cem   acquiring + answer ok -> held; told held, token 3136; deadline 2435, kill 2768
   1110       * store shows db
   1110 store {"leasehold":1,"key":"db","next":4000000001101001,"grants":[{"holder":"ann","request":"r2","session":"3","mode":"shared","bound":true,"granted":"this","ttl_ms":2000},{"holder":"cem","request":"r3","session":"4","mode":"shared","bound":true,"n":64,"granted":"this","ttl_ms":2000}]}
   1200 ann   goes on
   1200 ann   waiting + timer -> waiting; read
   1200 ann   waiting + notice -> waiting
   1202 ann   waiting + answer ok -> held; verdict granted; told held, token 3072; deadline 2435, kill 2768
   1300       * cem lets go
   1300 cem   held + let go -> releasing; verdict done; swap if revision 3
   1302 cem   releasing + answer ok -> ended; told ok
   1400       * ann lets go
   1400 ann   held + let go -> releasing; verdict done; swap if revision 3
   1402 ann   releasing + answer conflict -> releasing; verdict done; delete if revision 4
   1404 ann   releasing + answer ok -> ended; told ok
