# Where the store can test that a token's grant stands, a renewal names the token instead of a revision.
# Waiters may come and go; it meets no conflict.
store time tests-grant
0 ann asks db ttl=3000
100 bob asks db
200 cem asks db
1500 op renews db 1024
2500 ann lets go
2600 bob lets go
2700 cem lets go
---
      0       * ann asks db ttl=3000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 2000, kill 2500
    100       * bob asks db
    100 bob   idle + start -> acquiring; verdict granted; swap if absent
    102 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
    104 bob   acquiring + answer ok -> waiting; told waiting
    200       * cem asks db
    200 cem   idle + start -> acquiring; verdict granted; swap if absent
    202 cem   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 2
    204 cem   acquiring + answer ok -> waiting; told waiting
    911 ann   held + timer -> renewing; swap if token stands 1024
    913 ann   renewing + answer ok -> held; deadline 2911
   1500       * op renews db 1024
   1500 op    idle + start -> operation; swap if token stands 1024
   1502 op    operation + answer ok -> ended; told ok
   1841 ann   held + timer -> renewing; swap if token stands 1024
   1843 ann   renewing + answer ok -> held; deadline 3841
   2500       * ann lets go
   2500 ann   held + let go -> releasing; verdict done, named 1; swap if revision 6, wakes 1
   2502 ann   releasing + answer ok -> ended; told ok
   2502 bob   waiting + notice -> waiting; read
   2504 bob   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 7
   2506 bob   offered + answer ok -> held; told held, token 8192; deadline 22504, kill 27504
   2600       * bob lets go
   2600 bob   held + let go -> releasing; verdict done, named 1; swap if revision 8, wakes 1
   2602 bob   releasing + answer ok -> ended; told ok
   2602 cem   waiting + notice -> waiting; read
   2604 cem   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 9
   2606 cem   offered + answer ok -> held; told held, token 10240; deadline 22604, kill 27604
   2700       * cem lets go
   2700 cem   held + let go -> releasing; verdict done; delete if revision 10
   2702 cem   releasing + answer ok -> ended; told ok
