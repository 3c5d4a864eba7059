# Rule 2 after a restored backup: the store has lost a write, and its epoch is raised. Ann keeps her grant and its token,
# and renews and releases by it. Bob's write was prepared in the old epoch and fits the number of the current revision:
# it is refused, Bob reads again, and gets a token above all earlier ones.
store time
0 ann asks db ttl=300
10 bob asks db
11 bob holds request 100
50 store raises 1
500 ann lets go
600 bob lets go
---
      0       * ann asks db ttl=300
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 200, kill 250
     10       * bob asks db
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     11       * bob holds request 100
     12 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
     50       * store raises 1
     93 ann   held + timer -> renewing; verdict done; swap if revision 1
     95 ann   renewing + answer ok -> held; deadline 293
    114 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1 of epoch 1
    116 bob   acquiring + answer ok -> waiting; told waiting
    187 ann   held + timer -> renewing; verdict done; swap if revision 1 of epoch 1
    189 ann   renewing + answer conflict -> renewing; verdict done; swap if revision 2 of epoch 1
    191 ann   renewing + answer ok -> held; deadline 389
    287 ann   held + timer -> renewing; verdict done; swap if revision 3 of epoch 1
    289 ann   renewing + answer ok -> held; deadline 487
    387 ann   held + timer -> renewing; verdict done; swap if revision 4 of epoch 1
    389 ann   renewing + answer ok -> held; deadline 587
    395 bob   waiting + timer -> waiting; read
    397 bob   waiting + answer ok -> waiting; verdict waiting
    483 ann   held + timer -> renewing; verdict done; swap if revision 5 of epoch 1
    485 ann   renewing + answer ok -> held; deadline 683
    500       * ann lets go
    500 ann   held + let go -> releasing; verdict done, named 1; swap if revision 6 of epoch 1, wakes 1
    502 ann   releasing + answer ok -> ended; told ok
    502 bob   waiting + notice -> waiting; read
    504 bob   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 7 of epoch 1
    506 bob   offered + answer ok -> held; told held, token 36028797018972160; deadline 20504, kill 25504
    600       * bob lets go
    600 bob   held + let go -> releasing; verdict done; delete if revision 8 of epoch 1
    602 bob   releasing + answer ok -> ended; told ok
