# `--now` frees the key at once, although its holder does not know yet. Its next renewal tells it;
# until then only the token protects what it writes.
store time overlaps
0 ann asks db ttl=3000
10 bob asks db
500 op breaks db now
800 bob lets go
1100 ann lets go
---
      0       * ann asks db ttl=3000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 2000, kill 2500
     10       * bob asks db
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
     14 bob   acquiring + answer ok -> waiting; told waiting
    500       * op breaks db now
    500 op    idle + start -> operation; read
    502 op    operation + answer ok -> operation; verdict done, named 1; swap if revision 2, wakes 2
    504 op    operation + answer ok -> ended; told ok
    504 ann   held + notice -> renewing; read
    504 bob   waiting + notice -> waiting; read
    506 ann   renewing + answer ok -> lost; verdict stale; told lost (the grant is gone), kill 1006
    506 bob   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 3
    508 bob   offered + answer ok -> held; told held, token 4096; deadline 20506, kill 25506
    800       * bob lets go
    800 bob   held + let go -> releasing; verdict done; delete if revision 4
    802 bob   releasing + answer ok -> ended; told ok
   1100       * ann lets go
   1100 ann   lost + let go -> releasing; verdict stale; read
   1102 ann   releasing + answer ok -> ended; verdict stale; told lost
