# Rule 4: two waiters arrive just as Ann renews. They break her swap; the conflict carries the
# record that stands, with her grant in it, and she tries again at once.
store time
0 ann asks db ttl=3000
890 ann holds request 30
905 bob asks db
907 cem asks db
1200 ann lets go
1300 bob lets go
1400 cem lets go
---
      0       * ann asks db ttl=3000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 2000, kill 2500
    890       * ann holds request 30
    905       * bob asks db
    905 bob   idle + start -> acquiring; verdict granted; swap if absent
    907       * cem asks db
    907 cem   idle + start -> acquiring; verdict granted; swap if absent
    907 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
    909 cem   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
    909 bob   acquiring + answer ok -> waiting; told waiting
    911 ann   held + timer -> renewing; verdict done; swap if revision 1
    911 cem   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 2
    913 cem   acquiring + answer ok -> waiting; told waiting
    943 ann   renewing + answer conflict -> renewing; verdict done; swap if revision 3
    945 ann   renewing + answer ok -> held; deadline 2943
   1200       * ann lets go
   1200 ann   held + let go -> releasing; verdict done, named 1; swap if revision 4, wakes 1
   1202 ann   releasing + answer ok -> ended; told ok
   1202 bob   waiting + notice -> waiting; read
   1204 bob   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 5
   1206 bob   offered + answer ok -> held; told held, token 6144; deadline 21204, kill 26204
   1300       * bob lets go
   1300 bob   held + let go -> releasing; verdict done, named 1; swap if revision 6, wakes 1
   1302 bob   releasing + answer ok -> ended; told ok
   1302 cem   waiting + notice -> waiting; read
   1304 cem   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 7
   1306 cem   offered + answer ok -> held; told held, token 8192; deadline 21304, kill 26304
   1400       * cem lets go
   1400 cem   held + let go -> releasing; verdict done; delete if revision 8
   1402 cem   releasing + answer ok -> ended; told ok
