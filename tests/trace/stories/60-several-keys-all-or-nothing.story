# Rule 8: several keys are taken in sorted order, whatever order they were named in, and given back in
# reverse. The caller is told once, when all are held.
store time
0 ann takes db,cache
100 ann gives back
---
      0       * ann takes db,cache
      0 ann-1 idle + start -> acquiring; verdict granted; swap if absent
      2 ann-1 acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
      2 ann-2 idle + start -> acquiring; verdict granted; swap if absent
      4 ann-2 acquiring + answer ok -> held; told held, token 2048; deadline 20002, kill 25002
      4 ann-1 all keys: told held
    100       * ann gives back
    100 ann-2 held + let go -> releasing; verdict done; delete if revision 2
    102 ann-2 releasing + answer ok -> ended; told ok
    102 ann-1 held + let go -> releasing; verdict done; delete if revision 1
    104 ann-1 releasing + answer ok -> ended; told ok
    104 ann-1 all keys: told ok
