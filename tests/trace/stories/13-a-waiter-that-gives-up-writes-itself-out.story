# Rule 4: a waiter that gives up writes itself out first, so that nobody offers to it.
store time
0 ann asks db
10 bob asks db wait=500
20 cem asks db
600 store shows db
700 ann lets go
800 cem lets go
---
      0       * ann asks db
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
     10       * bob asks db wait=500
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
     14 bob   acquiring + answer ok -> waiting; told waiting
     20       * cem asks db
     20 cem   idle + start -> acquiring; verdict granted; swap if absent
     22 cem   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 2
     24 cem   acquiring + answer ok -> waiting; told waiting
    510 bob   waiting + timer -> leaving; verdict done; swap if revision 2
    512 bob   leaving + answer conflict -> leaving; verdict done; swap if revision 3
    514 bob   leaving + answer ok -> ended; told busy (not granted within the wait)
    600       * store shows db
    600 store {"leasehold":1,"key":"db","next":4000000000021001,"grants":[{"holder":"ann","request":"r1","session":"2","mode":"exclusive","bound":true,"granted":[0,1,1],"ttl_ms":30000}],"places":[{"holder":"cem","request":"r3","session":"4","mode":"exclusive","bound":true,"ticket":4000000000021000,"ttl_ms":30000}]}
    700       * ann lets go
    700 ann   held + let go -> releasing; verdict done; delete if revision 1
    702 ann   releasing + answer conflict -> releasing; verdict done, named 1; swap if revision 4, wakes 1
    704 ann   releasing + answer ok -> ended; told ok
    704 cem   waiting + notice -> waiting; read
    706 cem   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 5
    708 cem   offered + answer ok -> held; told held, token 6144; deadline 20706, kill 25706
    800       * cem lets go
    800 cem   held + let go -> releasing; verdict done; delete if revision 6
    802 cem   releasing + answer ok -> ended; told ok
