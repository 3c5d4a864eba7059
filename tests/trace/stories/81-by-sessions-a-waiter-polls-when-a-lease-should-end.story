# A store with sessions tells no time, so Bob cannot know that a lease has ended. He knows its length,
# reads when he has seen it for that long, and then at growing intervals: this store notices an end
# 700 ms late.
store sessions late
0 ann asks db ttl=2000 unbound
100 ann dies
500 bob asks db look=60000
5000 bob lets go
---
      0       * ann asks db ttl=2000 unbound
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 1333, kill 1666
    100       * ann dies
    100 ann   dies
    500       * bob asks db look=60000
    500 bob   idle + start -> acquiring; verdict granted; swap if absent
    502 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
    504 bob   acquiring + answer ok -> waiting; told waiting
   2502 bob   waiting + timer -> waiting; read
   2504 bob   waiting + answer ok -> waiting; verdict waiting
   2514 bob   waiting + timer -> waiting; read
   2516 bob   waiting + answer ok -> waiting; verdict waiting
   2530 bob   waiting + timer -> waiting; read
   2532 bob   waiting + answer ok -> waiting; verdict waiting
   2562 bob   waiting + timer -> waiting; read
   2564 bob   waiting + answer ok -> waiting; verdict waiting
   2626 bob   waiting + timer -> waiting; read
   2628 bob   waiting + answer ok -> waiting; verdict waiting
   2754 bob   waiting + timer -> waiting; read
   2756 bob   waiting + answer ok -> acquiring; verdict granted, expired 1; swap if revision 2
   2758 bob   acquiring + answer ok -> held; told held, token 3072; deadline 22756, kill 27756
   5000       * bob lets go
   5000 bob   held + let go -> releasing; verdict done; delete if revision 3
   5002 bob   releasing + answer ok -> ended; told ok
