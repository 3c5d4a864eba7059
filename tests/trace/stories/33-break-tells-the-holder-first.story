# An operator breaks the lock: renewals are refused from then on and the holder is told. The key is
# free when the holder confirms.
store time
0 ann asks db ttl=3000
10 bob asks db
500 op breaks db
600 store shows db
800 ann lets go
900 bob lets go
---
      0       * ann asks db ttl=3000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 2000, kill 2500
     10       * bob asks db
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
     14 bob   acquiring + answer ok -> waiting; told waiting
    500       * op breaks db
    500 op    idle + start -> operation; read
    502 op    operation + answer ok -> operation; verdict done; swap if revision 2, wakes 1
    504 op    operation + answer ok -> ended; told ok
    504 ann   held + notice -> renewing; read
    506 ann   renewing + answer ok -> lost; verdict broken; told lost (broken by an operator), kill 1006
    600       * store shows db
    600 store {"leasehold":1,"key":"db","next":4000000000011001,"grants":[{"holder":"ann","request":"r1","session":"2","mode":"exclusive","bound":true,"broken":true,"granted":[0,1,1],"ttl_ms":3000}],"places":[{"holder":"bob","request":"r2","session":"3","mode":"exclusive","bound":true,"ticket":4000000000011000,"ttl_ms":30000}],"reason":"maintenance"}
    800       * ann lets go
    800 ann   lost + let go -> releasing; verdict done, named 1; swap if revision 3, wakes 1
    802 ann   releasing + answer ok -> ended; told lost
    802 bob   waiting + notice -> waiting; read
    804 bob   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 4
    806 bob   offered + answer ok -> held; told held, token 5120; deadline 20804, kill 25804
    900       * bob lets go
    900 bob   held + let go -> releasing; verdict done; delete if revision 5
    902 bob   releasing + answer ok -> ended; told ok
