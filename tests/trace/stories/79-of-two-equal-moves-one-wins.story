# Rule 7: ann and bob both want to move the watermark from 9 to 12. One of them did it, the other is
# told that it is stale: it did not move anything. Ann's answer is lost; her repeated request finds
# that the last move was her own. Positions compare by their order: 12.0 is 12.
store time
0 ann advances watermark:w to=9
100 ann advances watermark:w from=9 to=12
101 bob advances watermark:w from=9 to=12
103 ann loses answer
1000 bob advances watermark:w from=12.0 to=13
1100 bob advances watermark:w from=13 to=13.0
1200 store shows watermark:w
---
      0       * ann advances watermark:w to=9
      0 ann   idle + start -> operation; read
      2 ann   operation + answer ok -> operation; verdict done; swap if absent
      4 ann   operation + answer ok -> ended; told ok
    100       * ann advances watermark:w from=9 to=12
    100 ann   idle + start -> operation; read
    101       * bob advances watermark:w from=9 to=12
    101 bob   idle + start -> operation; read
    102 ann   operation + answer ok -> operation; verdict done; swap if revision 1
    103       * ann loses answer
    103 bob   operation + answer ok -> operation; verdict done; swap if revision 1
    105 bob   operation + answer conflict -> ended; verdict stale; told stale (the watermark is not what was expected)
    359 ann   operation + timer -> operation
    424 ann   operation + timer -> operation; read
    426 ann   operation + answer ok -> ended; verdict done; told ok (this request has moved it already)
   1000       * bob advances watermark:w from=12.0 to=13
   1000 bob   idle + start -> operation; read
   1002 bob   operation + answer ok -> operation; verdict done; swap if revision 2
   1004 bob   operation + answer ok -> ended; told ok
   1100       * bob advances watermark:w from=13 to=13.0
   1100 bob   idle + start -> operation; read
   1102 bob   operation + answer ok -> ended; verdict done; told ok (it stands there already)
   1200       * store shows watermark:w
   1200 store {"leasehold":3,"key":"watermark:w","watermark":{"order":"number","value":"13","moved":"this","by":"bob","request":"r4","from":"12.0"}}
