# The release happened, its answer was lost. Asking again Ann finds nothing of hers, as it should be: ok. With
# a cooldown she looks for it, and finds it.
store time
0 ann asks db
100 ann loses answer
101 ann lets go
1000 bob asks db cooldown=60000
1100 bob loses answer
1101 bob lets go
2000 store shows db
---
      0       * ann asks db
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
    100       * ann loses answer
    101       * ann lets go
    101 ann   held + let go -> releasing; verdict done; delete if revision 1
    421 ann   releasing + timer -> releasing
    494 ann   releasing + timer -> releasing; read
    496 ann   releasing + answer ok -> ended; verdict stale; told ok
   1000       * bob asks db cooldown=60000
   1000 bob   idle + start -> acquiring; verdict granted; swap if absent
   1002 bob   acquiring + answer ok -> held; told held, token 3072; deadline 21000, kill 26000
   1100       * bob loses answer
   1101       * bob lets go
   1101 bob   held + let go -> releasing; verdict done; swap if revision 3
   1391 bob   releasing + timer -> releasing
   1452 bob   releasing + timer -> releasing; read
   1454 bob   releasing + answer ok -> ended; verdict stale; told ok
   2000       * store shows db
   2000 store {"leasehold":1,"key":"db","next":2,"cooling":{"since":"this","length_ms":60000,"by":"bob"}}
