# Rules 3 and 11 where one heartbeat keeps all bound grants of a process alive. A renewal only reads: the
# lease counts from before the heartbeat was sent, not from the read. Ann's last one arrives at 1101: Bob's
# turn is one TTL later.
store sessions heartbeats
0 ann asks db ttl=3000
100 bob asks db ttl=3000 look=1000
600 ann beats
1100 ann beats
1900 ann dies
4500 bob lets go
---
      0       * ann asks db ttl=3000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 2000, kill 2500
    100       * bob asks db ttl=3000 look=1000
    100 bob   idle + start -> acquiring; verdict granted; swap if absent
    102 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
    104 bob   acquiring + answer ok -> waiting; told waiting
    600       * ann beats
    911 ann   held + timer -> renewing; read
    913 ann   renewing + answer ok -> held; verdict done; deadline 2600
   1100       * ann beats
   1222 bob   waiting + timer -> waiting; read
   1224 bob   waiting + answer ok -> waiting; verdict waiting
   1530 ann   held + timer -> renewing; read
   1532 ann   renewing + answer ok -> held; verdict done; deadline 3100
   1900       * ann dies
   1900 ann   dies
   2271 bob   waiting + timer -> waiting; read
   2273 bob   waiting + answer ok -> waiting; verdict waiting
   3295 bob   waiting + timer -> waiting; read
   3297 bob   waiting + answer ok -> waiting; verdict waiting
   4351 bob   waiting + timer -> waiting; read
   4353 bob   waiting + answer ok -> acquiring; verdict granted, expired 1; swap if revision 2
   4355 bob   acquiring + answer ok -> held; told held, token 3072; deadline 6353, kill 6853
   4500       * bob lets go
   4500 bob   held + let go -> releasing; verdict done; delete if revision 3
   4502 bob   releasing + answer ok -> ended; told ok
