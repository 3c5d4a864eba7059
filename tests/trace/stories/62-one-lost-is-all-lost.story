# Rule 8: an operator breaks one of the keys. The caller is told lost once, and gives all back.
store time
0 ann takes db,cache ttl=3000
500 op breaks cache
700 ann gives back
---
      0       * ann takes db,cache ttl=3000
      0 ann-1 idle + start -> acquiring; verdict granted; swap if absent
      2 ann-1 acquiring + answer ok -> held; told held, token 1024; deadline 2000, kill 2500
      2 ann-2 idle + start -> acquiring; verdict granted; swap if absent
      4 ann-2 acquiring + answer ok -> held; told held, token 2048; deadline 2002, kill 2502
      4 ann-1 all keys: told held
    500       * op breaks cache
    500 op    idle + start -> operation; read
    502 op    operation + answer ok -> operation; verdict done; swap if revision 1, wakes 1
    504 op    operation + answer ok -> ended; told ok
    504 ann-1 held + notice -> renewing; read
    506 ann-1 renewing + answer ok -> lost; verdict broken; told lost (broken by an operator), kill 1006
    506 ann-1 all keys: told lost
    700       * ann gives back
    700 ann-2 held + let go -> releasing; verdict done; delete if revision 2
    702 ann-2 releasing + answer ok -> ended; told ok
    702 ann-1 lost + let go -> releasing; verdict done; delete if revision 3
    704 ann-1 releasing + answer ok -> ended; told lost
    704 ann-1 all keys: told lost
