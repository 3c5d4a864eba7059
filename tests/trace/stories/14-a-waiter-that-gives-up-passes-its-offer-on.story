# Rule 4: Bob gives up without knowing that he was offered. His leaving write finds the offer and
# passes it on in the same write.
store time
0 ann asks db
10 bob asks db look=60000
15 bob loses notices
20 cem asks db
100 ann lets go
200 bob lets go
300 cem lets go
---
      0       * ann asks db
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
     10       * bob asks db look=60000
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
     14 bob   acquiring + answer ok -> waiting; told waiting
     15       * bob loses notices
     20       * cem asks db
     20 cem   idle + start -> acquiring; verdict granted; swap if absent
     22 cem   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 2
     24 cem   acquiring + answer ok -> waiting; told waiting
    100       * ann lets go
    100 ann   held + let go -> releasing; verdict done; delete if revision 1
    102 ann   releasing + answer conflict -> releasing; verdict done, named 1; swap if revision 3, wakes 1
    104 ann   releasing + answer ok -> ended; told ok
    200       * bob lets go
    200 bob   waiting + let go -> leaving; verdict done; swap if revision 2
    202 bob   leaving + answer conflict -> leaving; verdict done, named 1; swap if revision 4, wakes 1
    204 bob   leaving + answer ok -> ended; told busy (cancelled)
    204 cem   waiting + notice -> waiting; read
    206 cem   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 5
    208 cem   offered + answer ok -> held; told held, token 6144; deadline 20206, kill 25206
    300       * cem lets go
    300 cem   held + let go -> releasing; verdict done; delete if revision 6
    302 cem   releasing + answer ok -> ended; told ok
