# The notice with Bob's offer is held back until the offer has lapsed and Cem holds. Bob believes it, and the store does
# not: nobody is in beside Cem, and Bob gets in line again.
store time tests-grant tells
0 ann asks db
10 bob asks db look=60000
20 cem asks db look=300
90 bob holds notice 1500
100 ann lets go
2000 cem lets go
2100 bob lets go
---
      0       * ann asks db
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
     10       * bob asks db look=60000
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1, wakes 1
     14 bob   acquiring + answer ok -> waiting; told waiting
     14 ann   held + notice -> held; deadline 20000
     20       * cem asks db look=300
     20 cem   idle + start -> acquiring; verdict granted; swap if absent
     22 cem   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 2, wakes 1
     24 cem   acquiring + answer ok -> waiting; told waiting
     24 ann   held + notice -> held; deadline 20000
     90       * bob holds notice 1500
    100       * ann lets go
    100 ann   held + let go -> releasing; verdict done, named 1; swap if revision 3, wakes 1
    102 ann   releasing + answer ok -> ended; told ok
    400 cem   waiting + timer -> waiting; read
    402 cem   waiting + answer ok -> waiting; verdict waiting
    779 cem   waiting + timer -> waiting; read
    781 cem   waiting + answer ok -> waiting; verdict waiting
   1094 cem   waiting + timer -> waiting; read
   1096 cem   waiting + answer ok -> waiting; verdict waiting
   1402 cem   waiting + timer -> waiting; read
   1404 cem   waiting + answer ok -> acquiring; verdict granted, passed on 1; swap if revision 4
   1406 cem   acquiring + answer ok -> held; told held, token 5120; deadline 21404, kill 26404
   1602 bob   waiting + notice -> offered; verdict granted (accepts); swap if revision 4
   1604 bob   offered + answer conflict -> acquiring; verdict waiting; swap if revision 5, wakes 1
   1606 bob   acquiring + answer ok -> waiting
   1606 cem   held + notice -> held; deadline 21404
   2000       * cem lets go
   2000 cem   held + let go -> releasing; verdict done, named 1; swap if revision 6, wakes 1
   2002 cem   releasing + answer ok -> ended; told ok
   2002 bob   waiting + notice -> offered; verdict granted (accepts); swap if revision 7
   2004 bob   offered + answer ok -> held; told held, token 8192; deadline 22002, kill 27002
   2100       * bob lets go
   2100 bob   held + let go -> releasing; verdict done; delete if revision 8
   2102 bob   releasing + answer ok -> ended; told ok
