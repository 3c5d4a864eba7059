# A lease is renewed at a third of its TTL; each renewal is one write and moves the deadline.
store time
0 ann asks db ttl=3000
2500 ann lets go
---
      0       * ann asks db ttl=3000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 2000, kill 2500
    911 ann   held + timer -> renewing; verdict done; swap if revision 1
    913 ann   renewing + answer ok -> held; deadline 2911
   1841 ann   held + timer -> renewing; verdict done; swap if revision 2
   1843 ann   renewing + answer ok -> held; deadline 3841
   2500       * ann lets go
   2500 ann   held + let go -> releasing; verdict done; delete if revision 3
   2502 ann   releasing + answer ok -> ended; told ok
