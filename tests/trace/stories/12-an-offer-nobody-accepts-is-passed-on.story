# Rule 4: Bob died in the queue. His offer is open for a second, then any waiter's write passes it
# on; here the next in line takes it for herself.
store time
0 ann asks db
10 bob asks db
20 cem asks db
50 bob dies
100 ann lets go
9000 cem lets go
---
      0       * ann asks db
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
     10       * bob asks db
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
     14 bob   acquiring + answer ok -> waiting; told waiting
     20       * cem asks db
     20 cem   idle + start -> acquiring; verdict granted; swap if absent
     22 cem   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 2
     24 cem   acquiring + answer ok -> waiting; told waiting
     50       * bob dies
     50 bob   dies
    100       * ann lets go
    100 ann   held + let go -> releasing; verdict done; delete if revision 1
    102 ann   releasing + answer conflict -> releasing; verdict done, named 1; swap if revision 3, wakes 1
    104 ann   releasing + answer ok -> ended; told ok
   6092 cem   waiting + timer -> waiting; read
   6094 cem   waiting + answer ok -> acquiring; verdict granted, passed on 1; swap if revision 4
   6096 cem   acquiring + answer ok -> held; told held, token 5120; deadline 26094, kill 31094
   9000       * cem lets go
   9000 cem   held + let go -> releasing; verdict done; delete if revision 5
   9002 cem   releasing + answer ok -> ended; told ok
