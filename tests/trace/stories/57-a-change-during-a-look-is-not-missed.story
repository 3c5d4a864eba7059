# Bob's look is on its way when Ann's release offers to him. The notice arrives before the old answer does: he
# looks again, instead of sleeping over it.
store time
0 ann asks db
10 bob asks db look=2000
2400 bob holds answer 200
2650 ann lets go
5000 bob lets go
---
      0       * ann asks db
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
     10       * bob asks db look=2000
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
     14 bob   acquiring + answer ok -> waiting; told waiting
   2400       * bob holds answer 200
   2477 bob   waiting + timer -> waiting; read
   2650       * ann lets go
   2650 ann   held + let go -> releasing; verdict done; delete if revision 1
   2652 ann   releasing + answer conflict -> releasing; verdict done, named 1; swap if revision 2, wakes 1
   2654 ann   releasing + answer ok -> ended; told ok
   2654 bob   waiting + notice -> waiting
   2679 bob   waiting + answer ok -> waiting; verdict waiting; read
   2681 bob   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 3
   2683 bob   offered + answer ok -> held; told held, token 4096; deadline 22681, kill 27681
   5000       * bob lets go
   5000 bob   held + let go -> releasing; verdict done; delete if revision 4
   5002 bob   releasing + answer ok -> ended; told ok
