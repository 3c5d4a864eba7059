# Rule 4: higher priority goes first; being passed over counts one step, so nobody waits for ever.
# Bob (0) is passed by Cem (1), rises to 1, and is then before Dot (1), who came later.
store time
0 ann asks db
10 bob asks db
20 cem asks db priority=1
30 dot asks db priority=1
100 ann lets go
200 store shows db
300 cem lets go
400 bob lets go
500 dot lets go
---
      0       * ann asks db
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
     10       * bob asks db
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
     14 bob   acquiring + answer ok -> waiting; told waiting
     20       * cem asks db priority=1
     20 cem   idle + start -> acquiring; verdict granted; swap if absent
     22 cem   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 2
     24 cem   acquiring + answer ok -> waiting; told waiting
     30       * dot asks db priority=1
     30 dot   idle + start -> acquiring; verdict granted; swap if absent
     32 dot   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 3
     34 dot   acquiring + answer ok -> waiting; told waiting
    100       * ann lets go
    100 ann   held + let go -> releasing; verdict done; delete if revision 1
    102 ann   releasing + answer conflict -> releasing; verdict done, named 1; swap if revision 4, wakes 1
    104 ann   releasing + answer ok -> ended; told ok
    104 cem   waiting + notice -> waiting; read
    106 cem   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 5
    108 cem   offered + answer ok -> held; told held, token 6144; deadline 20106, kill 25106
    200       * store shows db
    200 store {"leasehold":1,"key":"db","next":4000000000031001,"grants":[{"holder":"cem","request":"r3","session":"4","mode":"exclusive","bound":true,"granted":"this","ttl_ms":30000}],"places":[{"holder":"bob","request":"r2","session":"3","mode":"exclusive","bound":true,"ticket":4000000000011000,"passed":1,"ttl_ms":30000},{"holder":"dot","request":"r4","session":"5","mode":"exclusive","bound":true,"ticket":4000000000031000,"priority":1,"ttl_ms":30000}]}
    300       * cem lets go
    300 cem   held + let go -> releasing; verdict done, named 1; swap if revision 6, wakes 1
    302 cem   releasing + answer ok -> ended; told ok
    302 bob   waiting + notice -> waiting; read
    304 bob   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 7
    306 bob   offered + answer ok -> held; told held, token 8192; deadline 20304, kill 25304
    400       * bob lets go
    400 bob   held + let go -> releasing; verdict done, named 1; swap if revision 8, wakes 1
    402 bob   releasing + answer ok -> ended; told ok
    402 dot   waiting + notice -> waiting; read
    404 dot   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 9
    406 dot   offered + answer ok -> held; told held, token 10240; deadline 20404, kill 25404
    500       * dot lets go
    500 dot   held + let go -> releasing; verdict done; delete if revision 10
    502 dot   releasing + answer ok -> ended; told ok
