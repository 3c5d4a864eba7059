# The record still has Ann's grant, but her second heartbeat is lost: reading the record renews nothing. She
# reads at a distance of a thirtieth of the TTL, and is told in time; the store ends the grant one TTL after
# the heartbeat that arrived.
store sessions heartbeats
0 ann asks db ttl=3000
500 ann beats
1600 store goes
1601 ann beats
1605 store comes
2550 ann dies
3400 bob asks db nowait ttl=3000
3600 bob asks db nowait ttl=3000
3700 bob lets go
---
      0       * ann asks db ttl=3000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 2000, kill 2500
    500       * ann beats
    911 ann   held + timer -> renewing; read
    913 ann   renewing + answer ok -> held; verdict done; deadline 2500
   1430 ann   held + timer -> renewing; read
   1432 ann   renewing + answer ok -> held; verdict done; deadline 2500
   1532 ann   held + timer -> renewing; read
   1534 ann   renewing + answer ok -> held; verdict done; deadline 2500
   1600       * store goes
   1601       * ann beats
   1605       * store comes
   1634 ann   held + timer -> renewing; read
   1636 ann   renewing + answer ok -> held; verdict done; deadline 2500
   1736 ann   held + timer -> renewing; read
   1738 ann   renewing + answer ok -> held; verdict done; deadline 2500
   1838 ann   held + timer -> renewing; read
   1840 ann   renewing + answer ok -> held; verdict done; deadline 2500
   1940 ann   held + timer -> renewing; read
   1942 ann   renewing + answer ok -> held; verdict done; deadline 2500
   2042 ann   held + timer -> renewing; read
   2044 ann   renewing + answer ok -> held; verdict done; deadline 2500
   2144 ann   held + timer -> renewing; read
   2146 ann   renewing + answer ok -> held; verdict done; deadline 2500
   2246 ann   held + timer -> renewing; read
   2248 ann   renewing + answer ok -> held; verdict done; deadline 2500
   2348 ann   held + timer -> renewing; read
   2350 ann   renewing + answer ok -> held; verdict done; deadline 2500
   2450 ann   held + timer -> renewing; read
   2452 ann   renewing + answer ok -> held; verdict done; deadline 2500
   2500 ann   held + timer -> lost; told lost (deadline), kill 3000
   2550       * ann dies
   2550 ann   dies
   3400       * bob asks db nowait ttl=3000
   3400 bob   idle + start -> acquiring; verdict granted; swap if absent
   3402 bob   acquiring + answer conflict -> ended; verdict busy; told busy
   3600       * bob asks db nowait ttl=3000
   3600 bob   idle + start -> acquiring; verdict granted; swap if absent
   3602 bob   acquiring + answer conflict -> acquiring; verdict granted, expired 1; swap if revision 1
   3604 bob   acquiring + answer ok -> held; told held, token 2048; deadline 5602, kill 6102
   3700       * bob lets go
   3700 bob   held + let go -> releasing; verdict done; delete if revision 2
   3702 bob   releasing + answer ok -> ended; told ok
