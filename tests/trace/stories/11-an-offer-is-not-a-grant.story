# Rule 4: a release only offers. Until the next in line accepts by a write of its own, nobody holds,
# and a newcomer hears busy. The acceptance is the grant: its revision makes the token, its send time
# starts the deadline. Bob finds his offer late, by his own look, and loses nothing by it.
store time
0 ann asks db
10 bob asks db look=500
50 bob loses notices
100 ann lets go
200 store shows db
210 cem asks db nowait
900 bob lets go
---
      0       * ann asks db
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
     10       * bob asks db look=500
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
     14 bob   acquiring + answer ok -> waiting; told waiting
     50       * bob loses notices
    100       * ann lets go
    100 ann   held + let go -> releasing; verdict done; delete if revision 1
    102 ann   releasing + answer conflict -> releasing; verdict done, named 1; swap if revision 2, wakes 1
    104 ann   releasing + answer ok -> ended; told ok
    200       * store shows db
    200 store {"leasehold":1,"key":"db","next":4000000000011001,"places":[{"holder":"bob","request":"r2","session":"3","mode":"exclusive","bound":true,"ticket":4000000000011000,"offered":"this","ttl_ms":30000}]}
    210       * cem asks db nowait
    210 cem   idle + start -> acquiring; verdict granted; swap if absent
    212 cem   acquiring + answer conflict -> ended; verdict busy; told busy
    611 bob   waiting + timer -> waiting; read
    613 bob   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 3
    615 bob   offered + answer ok -> held; told held, token 4096; deadline 20613, kill 25613
    900       * bob lets go
    900 bob   held + let go -> releasing; verdict done; delete if revision 4
    902 bob   releasing + answer ok -> ended; told ok
