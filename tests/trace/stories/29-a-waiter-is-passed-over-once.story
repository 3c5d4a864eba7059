# Rule 4: Bob is far away: each of his notices takes 400 ms. Cem takes over his first offer. Bob
# returns with his ticket, and now has the whole grace: Dot, who could be faster, leaves it to him.
store time tells takeover=150
0 ann asks db
10 bob asks db
20 cem asks db
30 dot asks db
90 bob holds notice 400
100 ann lets go
590 bob holds notice 400
600 cem lets go
1200 bob lets go
1300 dot lets go
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
     90       * bob holds notice 400
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
    502 bob   waiting + notice -> offered; verdict granted (accepts); swap if revision 5
    504 bob   offered + answer conflict -> acquiring; verdict waiting; swap if revision 6, wakes 1
    506 bob   acquiring + answer ok -> waiting
    506 cem   held + notice -> held; deadline 20259
    590       * bob holds notice 400
    600       * cem lets go
    600 cem   held + let go -> releasing; verdict done, named 1; swap if revision 7, wakes 2
    602 cem   releasing + answer ok -> ended; told ok
    602 dot   waiting + notice -> waiting
   1002 bob   waiting + notice -> offered; verdict granted (accepts); swap if revision 8
   1004 bob   offered + answer ok -> held; told held, token 9216; deadline 21002, kill 26002
   1200       * bob lets go
   1200 bob   held + let go -> releasing; verdict done, named 1; swap if revision 9, wakes 1
   1202 bob   releasing + answer ok -> ended; told ok
   1202 dot   waiting + notice -> offered; verdict granted (accepts); swap if revision 10
   1204 dot   offered + answer ok -> held; told held, token 11264; deadline 21202, kill 26202
   1300       * dot lets go
   1300 dot   held + let go -> releasing; verdict done; delete if revision 11
   1302 dot   releasing + answer ok -> ended; told ok
