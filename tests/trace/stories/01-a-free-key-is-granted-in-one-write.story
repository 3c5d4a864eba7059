# A free key is granted in one write.
# Ann bets that nobody holds it: "swap if absent". The bet is right, so one round trip is enough. Her
# deadline is two thirds of the TTL, counted from before the write was sent; the rest is margin.
# A release with nobody waiting deletes the record: a free key costs nothing.
store time
0 ann asks db ttl=30000
5 store shows db
100 ann lets go
200 store shows db
---
      0       * ann asks db ttl=30000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
      5       * store shows db
      5 store {"leasehold":1,"key":"db","next":2,"grants":[{"holder":"ann","request":"r1","session":"2","mode":"exclusive","bound":true,"granted":"this","ttl_ms":30000}]}
    100       * ann lets go
    100 ann   held + let go -> releasing; verdict done; delete if revision 1
    102 ann   releasing + answer ok -> ended; told ok
    200       * store shows db
    200 store absent
