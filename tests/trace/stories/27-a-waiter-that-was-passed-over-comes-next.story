# Rule 4: Bob is alive but stands still when he is offered the key, and Cem takes it. Bob finds his
# offer gone and returns with his ticket, ahead of Dot, who came after him; he has risen by one step.
store time tells takeover=150
0 ann asks db
10 bob asks db
20 cem asks db
30 dot asks db
90 bob stands still 300
100 ann lets go
450 store shows db
500 cem lets go
600 bob lets go
700 dot lets go
---
      0       * ann asks db
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
     10       * bob asks db
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1, wakes 1
     14 bob   acquiring + answer ok -> waiting; told waiting
     14 ann   held + notice -> held; deadline 20000
     20       * cem asks db
     20 cem   idle + start -> acquiring; verdict granted; swap if absent
     22 cem   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 2, wakes 1
     24 cem   acquiring + answer ok -> waiting; told waiting
     24 ann   held + notice -> held; deadline 20000
     30       * dot asks db
     30 dot   idle + start -> acquiring; verdict granted; swap if absent
     32 dot   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 3, wakes 1
     34 dot   acquiring + answer ok -> waiting; told waiting
     34 ann   held + notice -> held; deadline 20000
     90       * bob stands still 300
     90 bob   stands still
    100       * ann lets go
    100 ann   held + let go -> releasing; verdict done, named 1; swap if revision 4, wakes 3
    102 ann   releasing + answer ok -> ended; told ok
    102 cem   waiting + notice -> waiting
    102 dot   waiting + notice -> waiting
    257 cem   waiting + timer -> waiting; read
    259 cem   waiting + answer ok -> acquiring; verdict granted, passed on 1; swap if revision 5
    261 cem   acquiring + answer ok -> held; told held, token 6144; deadline 20259, kill 25259
    296 dot   waiting + timer -> waiting; read
    298 dot   waiting + answer ok -> waiting; verdict waiting
    390 bob   goes on
    390 bob   waiting + timer -> waiting
    390 bob   waiting + notice -> offered; verdict granted (accepts); swap if revision 5
    392 bob   offered + answer conflict -> acquiring; verdict waiting; swap if revision 6, wakes 1
    394 bob   acquiring + answer ok -> waiting
    394 cem   held + notice -> held; deadline 20259
    450       * store shows db
    450 store {"leasehold":1,"key":"db","next":4000000000031001,"grants":[{"holder":"cem","request":"r3","session":"4","mode":"exclusive","bound":true,"granted":[0,6,260],"ttl_ms":30000}],"places":[{"holder":"bob","request":"r2","session":"3","mode":"exclusive","bound":true,"ticket":4000000000011000,"passed":1,"ttl_ms":30000},{"holder":"dot","request":"r4","session":"5","mode":"exclusive","bound":true,"ticket":4000000000031000,"ttl_ms":30000}]}
    500       * cem lets go
    500 cem   held + let go -> releasing; verdict done, named 1; swap if revision 7, wakes 2
    502 cem   releasing + answer ok -> ended; told ok
    502 bob   waiting + notice -> offered; verdict granted (accepts); swap if revision 8
    502 dot   waiting + notice -> waiting
    504 bob   offered + answer ok -> held; told held, token 9216; deadline 20502, kill 25502
    600       * bob lets go
    600 bob   held + let go -> releasing; verdict done, named 1; swap if revision 9, wakes 1
    602 bob   releasing + answer ok -> ended; told ok
    602 dot   waiting + notice -> offered; verdict granted (accepts); swap if revision 10
    604 dot   offered + answer ok -> held; told held, token 11264; deadline 20602, kill 25602
    700       * dot lets go
    700 dot   held + let go -> releasing; verdict done; delete if revision 11
    702 dot   releasing + answer ok -> ended; told ok
