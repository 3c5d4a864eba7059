# Rule 5: after a clean release with a cooldown the key answers cooling until the stored end. Those
# who wait are sent home with that answer: what they waited for was just done.
store time
0 ann asks db cooldown=5000
10 bob asks db
100 ann lets go
200 store shows db
1000 cem asks db nowait
6000 cem asks db nowait
6100 cem lets go
---
      0       * ann asks db cooldown=5000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
     10       * bob asks db
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
     14 bob   acquiring + answer ok -> waiting; told waiting
    100       * ann lets go
    100 ann   held + let go -> releasing; verdict done; swap if revision 1
    102 ann   releasing + answer conflict -> releasing; verdict done; swap if revision 2, wakes 1
    104 ann   releasing + answer ok -> ended; told ok
    104 bob   waiting + notice -> waiting; read
    106 bob   waiting + answer ok -> ended; verdict cooling; told cooling
    200       * store shows db
    200 store {"leasehold":1,"key":"db","next":4000000000011001,"cooling":{"since":"this","length_ms":5000,"by":"ann"}}
   1000       * cem asks db nowait
   1000 cem   idle + start -> acquiring; verdict granted; swap if absent
   1002 cem   acquiring + answer conflict -> ended; verdict cooling; told cooling
   6000       * cem asks db nowait
   6000 cem   idle + start -> acquiring; verdict granted; swap if absent
   6002 cem   acquiring + answer ok -> held; told held, token 5120; deadline 26000, kill 31000
   6100       * cem lets go
   6100 cem   held + let go -> releasing; verdict done; delete if revision 5
   6102 cem   releasing + answer ok -> ended; told ok
