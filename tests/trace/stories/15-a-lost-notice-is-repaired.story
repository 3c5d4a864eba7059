# Every notice to Bob is lost. His slow look finds the offer all the same.
store time
0 ann asks db
10 bob asks db look=2000
20 bob loses notices
500 ann lets go
4000 bob lets go
---
      0       * ann asks db
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
     10       * bob asks db look=2000
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
     14 bob   acquiring + answer ok -> waiting; told waiting
     20       * bob loses notices
    500       * ann lets go
    500 ann   held + let go -> releasing; verdict done; delete if revision 1
    502 ann   releasing + answer conflict -> releasing; verdict done, named 1; swap if revision 2, wakes 1
    504 ann   releasing + answer ok -> ended; told ok
   2477 bob   waiting + timer -> waiting; read
   2479 bob   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 3
   2481 bob   offered + answer ok -> held; told held, token 4096; deadline 22479, kill 27479
   4000       * bob lets go
   4000 bob   held + let go -> releasing; verdict done; delete if revision 4
   4002 bob   releasing + answer ok -> ended; told ok
