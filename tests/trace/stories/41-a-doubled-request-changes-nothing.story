# Every write names its condition, so the second copy of a message finds another revision.
store time
0 ann doubles request
1 ann asks db ttl=3000
50 ann doubles request
60 ann lets go
100 store shows db
---
      0       * ann doubles request
      1       * ann asks db ttl=3000
      1 ann   idle + start -> acquiring; verdict granted; swap if absent
      3 ann   acquiring + answer ok -> held; told held, token 1024; deadline 2001, kill 2501
      3 ann   held + answer conflict -> held; deadline 2001
     50       * ann doubles request
     60       * ann lets go
     60 ann   held + let go -> releasing; verdict done; delete if revision 1
     62 ann   releasing + answer ok -> ended; told ok
    100       * store shows db
    100 store absent
