# Ann dies while Bob's write is on its way: the reply that puts Bob into the queue also says that the
# holder is dead. Bob does not wait for his next poll.
store time liveness
0 ann asks db ttl=30000
100 bob asks db look=20000
101 bob holds request 200
150 ann dies
1000 bob lets go
---
      0       * ann asks db ttl=30000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
    100       * bob asks db look=20000
    100 bob   idle + start -> acquiring; verdict granted; swap if absent
    101       * bob holds request 200
    102 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
    150       * ann dies
    150 ann   dies
    304 bob   acquiring + answer ok -> waiting; read; told waiting
    306 bob   waiting + answer ok -> acquiring; verdict granted, expired 1; swap if revision 2
    308 bob   acquiring + answer ok -> held; told held, token 3072; deadline 20306, kill 25306
   1000       * bob lets go
   1000 bob   held + let go -> releasing; verdict done; delete if revision 3
   1002 bob   releasing + answer ok -> ended; told ok
