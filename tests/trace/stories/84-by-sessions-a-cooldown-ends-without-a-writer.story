# Nobody is alive to end the cooldown. The store says that it is over, to the next one who asks. The
# other slot is held all the time, so the record stays.
store sessions
0 ann asks db slots=3 ttl=30000
100 bob asks db slots=3 cooldown=1000
200 bob lets go
400 cem asks db slots=3 nowait
1100 cem asks db slots=3 nowait
1300 cem asks db slots=3 nowait
1400 cem lets go
1500 ann lets go
---
      0       * ann asks db slots=3 ttl=30000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
    100       * bob asks db slots=3 cooldown=1000
    100 bob   idle + start -> acquiring; verdict granted; swap if absent
    102 bob   acquiring + answer conflict -> acquiring; verdict granted; swap if revision 1
    104 bob   acquiring + answer ok -> held; told held, token 2048; deadline 20102, kill 25102
    200       * bob lets go
    200 bob   held + let go -> releasing; verdict done; swap if revision 2
    202 bob   releasing + answer ok -> ended; told ok
    400       * cem asks db slots=3 nowait
    400 cem   idle + start -> acquiring; verdict granted; swap if absent
    402 cem   acquiring + answer conflict -> ended; verdict cooling; told cooling
   1100       * cem asks db slots=3 nowait
   1100 cem   idle + start -> acquiring; verdict granted; swap if absent
   1102 cem   acquiring + answer conflict -> ended; verdict cooling; told cooling
   1300       * cem asks db slots=3 nowait
   1300 cem   idle + start -> acquiring; verdict granted; swap if absent
   1302 cem   acquiring + answer conflict -> acquiring; verdict granted; swap if revision 3
   1304 cem   acquiring + answer ok -> held; told held, token 4096; deadline 21302, kill 26302
   1400       * cem lets go
   1400 cem   held + let go -> releasing; verdict done; swap if revision 4
   1402 cem   releasing + answer ok -> ended; told ok
   1500       * ann lets go
   1500 ann   held + let go -> releasing; verdict done; delete if revision 1
   1502 ann   releasing + answer conflict -> releasing; verdict done; delete if revision 5
   1504 ann   releasing + answer ok -> ended; told ok
