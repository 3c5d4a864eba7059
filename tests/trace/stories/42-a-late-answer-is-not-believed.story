# The answer to the first attempt comes after the second attempt was sent. It is not taken for the
# answer to the second: serials tell them apart.
store time
0 ann holds answer 700
1 ann asks db ttl=30000
1200 ann lets go
---
      0       * ann holds answer 700
      1       * ann asks db ttl=30000
      1 ann   idle + start -> acquiring; verdict granted; swap if absent
    307 ann   acquiring + timer -> acquiring
    379 ann   acquiring + timer -> acquiring; read
    381 ann   acquiring + answer ok -> acquiring; verdict granted; swap if revision 1
    383 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20381, kill 25381
    703 ann   held + answer ok -> held; deadline 20381
   1200       * ann lets go
   1200 ann   held + let go -> releasing; verdict done; delete if revision 1
   1202 ann   releasing + answer conflict -> releasing; verdict done; delete if revision 2
   1204 ann   releasing + answer ok -> ended; told ok
