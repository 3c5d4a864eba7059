# Two threads of one pod share its name. The identity is the acquisition's, so the second waits.
store time
0 ann asks db as=pod-1
10 bob asks db as=pod-1 nowait
20 cem asks db as=pod-1
100 ann lets go
200 cem lets go
---
      0       * ann asks db as=pod-1
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
     10       * bob asks db as=pod-1 nowait
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> ended; verdict busy; told busy
     20       * cem asks db as=pod-1
     20 cem   idle + start -> acquiring; verdict granted; swap if absent
     22 cem   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
     24 cem   acquiring + answer ok -> waiting; told waiting
    100       * ann lets go
    100 ann   held + let go -> releasing; verdict done; delete if revision 1
    102 ann   releasing + answer conflict -> releasing; verdict done, named 1; swap if revision 2, wakes 1
    104 ann   releasing + answer ok -> ended; told ok
    104 cem   waiting + notice -> waiting; read
    106 cem   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 3
    108 cem   offered + answer ok -> held; told held, token 4096; deadline 20106, kill 25106
    200       * cem lets go
    200 cem   held + let go -> releasing; verdict done; delete if revision 4
    202 cem   releasing + answer ok -> ended; told ok
