# Rule 8: Ann names db first, Bob names cache first. Both take cache first, so one waits for the other
# and nobody for ever.
store time
0 ann takes db,cache
1 bob takes cache,db
500 ann gives back
1000 bob gives back
---
      0       * ann takes db,cache
      0 ann-1 idle + start -> acquiring; verdict granted; swap if absent
      1       * bob takes cache,db
      1 bob-1 idle + start -> acquiring; verdict granted; swap if absent
      2 ann-1 acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
      2 ann-2 idle + start -> acquiring; verdict granted; swap if absent
      3 bob-1 acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
      4 ann-2 acquiring + answer ok -> held; told held, token 2048; deadline 20002, kill 25002
      4 ann-1 all keys: told held
      5 bob-1 acquiring + answer ok -> waiting; told waiting
    500       * ann gives back
    500 ann-2 held + let go -> releasing; verdict done; delete if revision 2
    502 ann-2 releasing + answer ok -> ended; told ok
    502 ann-1 held + let go -> releasing; verdict done; delete if revision 1
    504 ann-1 releasing + answer conflict -> releasing; verdict done, named 1; swap if revision 3, wakes 1
    506 ann-1 releasing + answer ok -> ended; told ok
    506 ann-1 all keys: told ok
    506 bob-1 waiting + notice -> waiting; read
    508 bob-1 waiting + answer ok -> offered; verdict granted (accepts); swap if revision 5
    510 bob-1 offered + answer ok -> held; told held, token 6144; deadline 20508, kill 25508
    510 bob-2 idle + start -> acquiring; verdict granted; swap if absent
    512 bob-2 acquiring + answer ok -> held; told held, token 7168; deadline 20510, kill 25510
    512 bob-1 all keys: told held
   1000       * bob gives back
   1000 bob-2 held + let go -> releasing; verdict done; delete if revision 7
   1002 bob-2 releasing + answer ok -> ended; told ok
   1002 bob-1 held + let go -> releasing; verdict done; delete if revision 6
   1004 bob-1 releasing + answer ok -> ended; told ok
   1004 bob-1 all keys: told ok
