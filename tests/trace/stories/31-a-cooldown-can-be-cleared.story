# Rule 5: an operator ends a cooldown early. Clearing a key that does not cool says so.
store time
0 ann asks db cooldown=300000
100 ann lets go
1000 op clears db
1100 bob asks db nowait
1200 bob lets go
1300 op clears db
---
      0       * ann asks db cooldown=300000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
    100       * ann lets go
    100 ann   held + let go -> releasing; verdict done; swap if revision 1
    102 ann   releasing + answer ok -> ended; told ok
   1000       * op clears db
   1000 op    idle + start -> operation; read
   1002 op    operation + answer ok -> operation; verdict done; delete if revision 2
   1004 op    operation + answer ok -> ended; told ok
   1100       * bob asks db nowait
   1100 bob   idle + start -> acquiring; verdict granted; swap if absent
   1102 bob   acquiring + answer ok -> held; told held, token 4096; deadline 21100, kill 26100
   1200       * bob lets go
   1200 bob   held + let go -> releasing; verdict done; delete if revision 4
   1202 bob   releasing + answer ok -> ended; told ok
   1300       * op clears db
   1300 op    idle + start -> operation; read
   1302 op    operation + answer ok -> ended; verdict done; told ok (it is not cooling)
