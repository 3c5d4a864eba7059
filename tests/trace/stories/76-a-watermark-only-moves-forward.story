# Rule 7: a watermark moves from what its mover expects, and only forward. Bob polled beside ann: his
# move is stale, and he begins again. A lost answer is no second move. An operator may set it back.
store time
0 ann advances watermark:w to=9
100 ann advances watermark:w from=9 to=12
110 bob advances watermark:w from=9 to=11
200 ann advances watermark:w from=12 to=100
203 ann loses answer
1000 bob advances watermark:w from=100 to=99
1100 cem sets watermark:w to=5
1200 store shows watermark:w
---
      0       * ann advances watermark:w to=9
      0 ann   idle + start -> operation; read
      2 ann   operation + answer ok -> operation; verdict done; swap if absent
      4 ann   operation + answer ok -> ended; told ok
    100       * ann advances watermark:w from=9 to=12
    100 ann   idle + start -> operation; read
    102 ann   operation + answer ok -> operation; verdict done; swap if revision 1
    104 ann   operation + answer ok -> ended; told ok
    110       * bob advances watermark:w from=9 to=11
    110 bob   idle + start -> operation; read
    112 bob   operation + answer ok -> ended; verdict stale; told stale (the watermark is not what was expected)
    200       * ann advances watermark:w from=12 to=100
    200 ann   idle + start -> operation; read
    202 ann   operation + answer ok -> operation; verdict done; swap if revision 2
    203       * ann loses answer
    563 ann   operation + timer -> operation
    623 ann   operation + timer -> operation; read
    625 ann   operation + answer ok -> ended; verdict done; told ok (this request has moved it already)
   1000       * bob advances watermark:w from=100 to=99
   1000 bob   idle + start -> operation; read
   1002 bob   operation + answer ok -> ended; verdict stale; told stale (a watermark only moves forward)
   1100       * cem sets watermark:w to=5
   1100 cem   idle + start -> operation; read
   1102 cem   operation + answer ok -> operation; verdict done; swap if revision 3
   1104 cem   operation + answer ok -> ended; told ok
   1200       * store shows watermark:w
   1200 store {"leasehold":2,"key":"watermark:w","reason":"maintenance","watermark":{"order":"number","value":"5","moved":"this","by":"cem"}}
