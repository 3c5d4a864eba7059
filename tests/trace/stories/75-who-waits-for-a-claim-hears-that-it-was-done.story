# Rules 5 and 6: who waits for a claim wants the result, not the claim. When it is done, all who
# wait are sent home with that answer; when it is abandoned, the next one gets it.
store time
0 ann claims once:x keep=5000 result=fine
10 bob claims once:x keep=5000
100 ann lets go
6000 ann claims once:x keep=5000
6010 bob claims once:x keep=5000
6100 ann abandons
6200 bob abandons
---
      0       * ann claims once:x keep=5000 result=fine
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
     10       * bob claims once:x keep=5000
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
     14 bob   acquiring + answer ok -> waiting; told waiting
    100       * ann lets go
    100 ann   held + let go -> releasing; verdict done; swap if revision 1
    102 ann   releasing + answer conflict -> releasing; verdict done; swap if revision 2, wakes 1
    104 ann   releasing + answer ok -> ended; told ok
    104 bob   waiting + notice -> waiting; read
    106 bob   waiting + answer ok -> ended; verdict cooling; told cooling
   6000       * ann claims once:x keep=5000
   6000 ann   idle + start -> acquiring; verdict granted; swap if absent
   6002 ann   acquiring + answer ok -> held; told held, token 5120; deadline 26000, kill 31000
   6010       * bob claims once:x keep=5000
   6010 bob   idle + start -> acquiring; verdict granted; swap if absent
   6012 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 5
   6014 bob   acquiring + answer ok -> waiting; told waiting
   6100       * ann abandons
   6100 ann   held + let go -> releasing; verdict done; delete if revision 5
   6102 ann   releasing + answer conflict -> releasing; verdict done, named 1; swap if revision 6, wakes 1
   6104 ann   releasing + answer ok -> ended; told ok
   6104 bob   waiting + notice -> waiting; read
   6106 bob   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 7
   6108 bob   offered + answer ok -> held; told held, token 8192; deadline 26106, kill 31106
   6200       * bob abandons
   6200 bob   held + let go -> releasing; verdict done; delete if revision 8
   6202 bob   releasing + answer ok -> ended; told ok
