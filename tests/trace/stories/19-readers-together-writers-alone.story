# Rule 1: readers hold together. A writer waits for them, and readers that come later wait behind the
# writer. They are offered together, in steps of at most eight.
store time
0 ann asks db shared
10 bob asks db shared
20 cem asks db
30 dot asks db shared
40 eve asks db shared
100 ann lets go
200 bob lets go
300 cem lets go
400 store shows db
500 dot lets go
600 eve lets go
---
      0       * ann asks db shared
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
     10       * bob asks db shared
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict granted; swap if revision 1
     14 bob   acquiring + answer ok -> held; told held, token 2048; deadline 20012, kill 25012
     20       * cem asks db
     20 cem   idle + start -> acquiring; verdict granted; swap if absent
     22 cem   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 2
     24 cem   acquiring + answer ok -> waiting; told waiting
     30       * dot asks db shared
     30 dot   idle + start -> acquiring; verdict granted; swap if absent
     32 dot   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 3
     34 dot   acquiring + answer ok -> waiting; told waiting
     40       * eve asks db shared
     40 eve   idle + start -> acquiring; verdict granted; swap if absent
     42 eve   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 4
     44 eve   acquiring + answer ok -> waiting; told waiting
    100       * ann lets go
    100 ann   held + let go -> releasing; verdict done; delete if revision 1
    102 ann   releasing + answer conflict -> releasing; verdict done; swap if revision 5
    104 ann   releasing + answer ok -> ended; told ok
    200       * bob lets go
    200 bob   held + let go -> releasing; verdict done; swap if revision 2
    202 bob   releasing + answer conflict -> releasing; verdict done, named 1; swap if revision 6, wakes 1
    204 bob   releasing + answer ok -> ended; told ok
    204 cem   waiting + notice -> waiting; read
    206 cem   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 7
    208 cem   offered + answer ok -> held; told held, token 8192; deadline 20206, kill 25206
    300       * cem lets go
    300 cem   held + let go -> releasing; verdict done, named 2; swap if revision 8, wakes 2
    302 cem   releasing + answer ok -> ended; told ok
    302 dot   waiting + notice -> waiting; read
    302 eve   waiting + notice -> waiting; read
    304 dot   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 9
    304 eve   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 9
    306 dot   offered + answer ok -> held; told held, token 10240; deadline 20304, kill 25304
    306 eve   offered + answer conflict -> offered; verdict granted (accepts); swap if revision 10
    308 eve   offered + answer ok -> held; told held, token 11264; deadline 20306, kill 25306
    400       * store shows db
    400 store {"leasehold":1,"key":"db","next":4000000000041001,"grants":[{"holder":"dot","request":"r4","session":"5","mode":"shared","bound":true,"granted":[0,10,305],"ttl_ms":30000},{"holder":"eve","request":"r5","session":"6","mode":"shared","bound":true,"granted":"this","ttl_ms":30000}]}
    500       * dot lets go
    500 dot   held + let go -> releasing; verdict done; swap if revision 10
    502 dot   releasing + answer conflict -> releasing; verdict done; swap if revision 11
    504 dot   releasing + answer ok -> ended; told ok
    600       * eve lets go
    600 eve   held + let go -> releasing; verdict done; swap if revision 11
    602 eve   releasing + answer conflict -> releasing; verdict done; delete if revision 12
    604 eve   releasing + answer ok -> ended; told ok
