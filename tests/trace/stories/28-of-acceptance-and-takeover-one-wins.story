# Rule 4: acceptance and takeover of one offer meet in the store, which carries out the first of the two
# writes. Bob's acceptance is 149 ms late, just before Cem's takeover: Cem waits on. Cem's own is later
# than Dot's takeover: Cem finds his offer gone, and returns with his ticket.
store time tells takeover=150
0 ann asks db
10 bob asks db
20 cem asks db
30 dot asks db
90 bob holds request 149
100 ann lets go
490 cem holds request 155
500 bob lets go
900 dot lets go
1000 cem lets go
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
     90       * bob holds request 149
    100       * ann lets go
    100 ann   held + let go -> releasing; verdict done, named 1; swap if revision 4, wakes 3
    102 ann   releasing + answer ok -> ended; told ok
    102 bob   waiting + notice -> offered; verdict granted (accepts); swap if revision 5
    102 cem   waiting + notice -> waiting
    102 dot   waiting + notice -> waiting
    253 bob   offered + answer ok -> held; told held, token 6144; deadline 20102, kill 25102
    257 cem   waiting + timer -> waiting; read
    259 cem   waiting + answer ok -> waiting; verdict waiting
    296 dot   waiting + timer -> waiting; read
    298 dot   waiting + answer ok -> waiting; verdict waiting
    490       * cem holds request 155
    500       * bob lets go
    500 bob   held + let go -> releasing; verdict done, named 1; swap if revision 6, wakes 2
    502 bob   releasing + answer ok -> ended; told ok
    502 cem   waiting + notice -> offered; verdict granted (accepts); swap if revision 7
    502 dot   waiting + notice -> waiting
    654 dot   waiting + timer -> waiting; read
    656 dot   waiting + answer ok -> acquiring; verdict granted, passed on 1; swap if revision 7
    658 dot   acquiring + answer ok -> held; told held, token 8192; deadline 20656, kill 25656
    659 cem   offered + answer conflict -> acquiring; verdict waiting; swap if revision 8, wakes 1
    661 cem   acquiring + answer ok -> waiting
    661 dot   held + notice -> held; deadline 20656
    900       * dot lets go
    900 dot   held + let go -> releasing; verdict done, named 1; swap if revision 9, wakes 1
    902 dot   releasing + answer ok -> ended; told ok
    902 cem   waiting + notice -> offered; verdict granted (accepts); swap if revision 10
    904 cem   offered + answer ok -> held; told held, token 11264; deadline 20902, kill 25902
   1000       * cem lets go
   1000 cem   held + let go -> releasing; verdict done; delete if revision 11
   1002 cem   releasing + answer ok -> ended; told ok
