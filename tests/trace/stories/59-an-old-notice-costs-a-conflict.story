# The notice with Bob's offer is held back until the offer has lapsed and Cem holds. Bob believes it, and the store does
# not: nobody is in beside Cem, and Bob gets in line again.
store time tests-grant pokes-tell
0 ann asks db
10 bob asks db look=60000
20 cem asks db look=300
90 bob holds notice 1500
100 ann lets go
2000 cem lets go
2100 bob lets go
---
      0       * ann asks db
      0 ann   idle + start -> asking; verdict granted; swap if absent
      2 ann   asking + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
     10       * bob asks db look=60000
     10 bob   idle + start -> asking; verdict granted; swap if absent
     12 bob   asking + answer conflict -> asking; verdict waiting; swap if revision 1
     14 bob   asking + answer ok -> waiting; told waiting
     20       * cem asks db look=300
     20 cem   idle + start -> asking; verdict granted; swap if absent
     22 cem   asking + answer conflict -> asking; verdict waiting; swap if revision 2
     24 cem   asking + answer ok -> waiting; told waiting
     90       * bob holds notice 1500
    100       * ann lets go
    100 ann   held + let go -> releasing; verdict done; delete if revision 1
    102 ann   releasing + answer conflict -> releasing; verdict done, named 1; swap if revision 3, wakes 1
    104 ann   releasing + answer ok -> ended; told ok
    374 cem   waiting + timer -> waiting; read
    376 cem   waiting + answer ok -> waiting; verdict waiting
    693 cem   waiting + timer -> waiting; read
    695 cem   waiting + answer ok -> waiting; verdict waiting
   1010 cem   waiting + timer -> waiting; read
   1012 cem   waiting + answer ok -> waiting; verdict waiting
   1326 cem   waiting + timer -> waiting; read
   1328 cem   waiting + answer ok -> asking; verdict granted, passed on 1; swap if revision 4
   1330 cem   asking + answer ok -> held; told held, token 5120; deadline 21328, kill 26328
   1604 bob   waiting + notice -> offered; verdict granted (accepts); swap if revision 4
   1606 bob   offered + answer conflict -> asking; verdict waiting; swap if revision 5
   1608 bob   asking + answer ok -> waiting
   2000       * cem lets go
   2000 cem   held + let go -> releasing; verdict done; delete if revision 5
   2002 cem   releasing + answer conflict -> releasing; verdict done, named 1; swap if revision 6, wakes 1
   2004 cem   releasing + answer ok -> ended; told ok
   2004 bob   waiting + notice -> offered; verdict granted (accepts); swap if revision 7
   2006 bob   offered + answer ok -> held; told held, token 8192; deadline 22004, kill 27004
   2100       * bob lets go
   2100 bob   held + let go -> releasing; verdict done; delete if revision 8
   2102 bob   releasing + answer ok -> ended; told ok
