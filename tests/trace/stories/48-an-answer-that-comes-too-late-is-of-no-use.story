# The grant's answer takes longer than the deadline allows. Ann is not told held with a dead lease: she
# looks again, finds her own grant and renews it, and that write's send time counts.
store time
0 ann holds answer 220
1 ann asks db ttl=300
280 ann lets go
---
      0       * ann holds answer 220
      1       * ann asks db ttl=300
      1 ann   idle + start -> acquiring; verdict granted; swap if absent
    223 ann   acquiring + answer ok -> acquiring; read
    225 ann   acquiring + answer ok -> acquiring; verdict granted; swap if revision 1
    227 ann   acquiring + answer ok -> held; told held, token 1024; deadline 425, kill 475
    280       * ann lets go
    280 ann   held + let go -> releasing; verdict done; delete if revision 2
    282 ann   releasing + answer ok -> ended; told ok
