# The answer to the operator's break is lost. Bob has been granted since; the second attempt only means
# what stood at the first, and leaves him alone.
store time overlaps
0 ann asks db
10 bob asks db
101 op breaks db now
103 op loses answer
900 bob lets go
1000 ann lets go
---
      0       * ann asks db
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
     10       * bob asks db
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
     14 bob   acquiring + answer ok -> waiting; told waiting
    101       * op breaks db now
    101 op    idle + start -> operation; read
    103       * op loses answer
    103 op    operation + answer ok -> operation; verdict done, named 1; swap if revision 2, wakes 2
    105 ann   held + notice -> renewing; read
    105 bob   waiting + notice -> waiting; read
    107 ann   renewing + answer ok -> lost; verdict stale; told lost (the grant is gone), kill 5107
    107 bob   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 3
    109 bob   offered + answer ok -> held; told held, token 4096; deadline 20107, kill 25107
    447 op    operation + timer -> operation
    519 op    operation + timer -> operation; read
    521 op    operation + answer ok -> ended; verdict done; told ok (nobody holds it)
    900       * bob lets go
    900 bob   held + let go -> releasing; verdict done; delete if revision 4
    902 bob   releasing + answer ok -> ended; told ok
   1000       * ann lets go
   1000 ann   lost + let go -> releasing; verdict stale; read
   1002 ann   releasing + answer ok -> ended; verdict stale; told lost
