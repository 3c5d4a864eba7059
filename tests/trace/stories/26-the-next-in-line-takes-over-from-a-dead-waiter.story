# Rule 4: Bob died in the queue. The offer wakes Cem too, the next in line. Bob does not accept within
# a few answer times, so Cem takes the offer over, long before its grace has passed.
store time tells takeover=150
0 ann asks db
10 bob asks db
20 cem asks db
50 bob dies
100 ann lets go
900 cem lets go
---
      0       * ann asks db
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
     10       * bob asks db
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1, wakes 1
     14 bob   acquiring + answer ok -> waiting; told waiting
     14 ann   held + notice -> held; deadline 20000
     20       * cem asks db
     20 cem   idle + start -> acquiring; verdict granted; swap if absent
     22 cem   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 2, wakes 1
     24 cem   acquiring + answer ok -> waiting; told waiting
     24 ann   held + notice -> held; deadline 20000
     50       * bob dies
     50 bob   dies
    100       * ann lets go
    100 ann   held + let go -> releasing; verdict done, named 1; swap if revision 3, wakes 2
    102 ann   releasing + answer ok -> ended; told ok
    102 cem   waiting + notice -> waiting
    257 cem   waiting + timer -> waiting; read
    259 cem   waiting + answer ok -> acquiring; verdict granted, passed on 1; swap if revision 4
    261 cem   acquiring + answer ok -> held; told held, token 5120; deadline 20259, kill 25259
    900       * cem lets go
    900 cem   held + let go -> releasing; verdict done; delete if revision 5
    902 cem   releasing + answer ok -> ended; told ok
