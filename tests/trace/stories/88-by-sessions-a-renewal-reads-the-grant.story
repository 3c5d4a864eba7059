# The session lives, but its grant may not: the next renewal finds that it was broken, or that it is gone. A
# grant that another process has renewed is no longer the session's: the holder writes to get it back.
store sessions heartbeats
0 ann asks db ttl=3000
500 ann beats
600 ann loses notices
700 bob breaks db
950 ann lets go
2000 ann asks db ttl=3000
2100 bob renews db 4096
3500 bob breaks db now
4100 ann lets go
---
      0       * ann asks db ttl=3000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 2000, kill 2500
    500       * ann beats
    600       * ann loses notices
    700       * bob breaks db
    700 bob   idle + start -> operation; read
    702 bob   operation + answer ok -> operation; verdict done; swap if revision 1, wakes 1
    704 bob   operation + answer ok -> ended; told ok
    911 ann   held + timer -> renewing; read
    913 ann   renewing + answer ok -> lost; verdict broken; told lost (broken by an operator), kill 1413
    950       * ann lets go
    950 ann   lost + let go -> releasing; verdict done; delete if revision 2
    952 ann   releasing + answer ok -> ended; told lost
   2000       * ann asks db ttl=3000
   2000 ann   idle + start -> acquiring; verdict granted; swap if absent
   2002 ann   acquiring + answer ok -> held; told held, token 4096; deadline 4000, kill 4500
   2100       * bob renews db 4096
   2100 bob   idle + start -> operation; read
   2102 bob   operation + answer ok -> operation; verdict done; swap if revision 4
   2104 bob   operation + answer ok -> ended; told ok
   2935 ann   held + timer -> renewing; read
   2937 ann   renewing + answer ok -> renewing; verdict done; swap if revision 5
   2939 ann   renewing + answer ok -> held; deadline 4937
   3500       * bob breaks db now
   3500 bob   idle + start -> operation; read
   3502 bob   operation + answer ok -> operation; verdict done; delete if revision 6, wakes 1
   3504 bob   operation + answer ok -> ended; told ok
   3926 ann   held + timer -> renewing; read
   3928 ann   renewing + answer ok -> lost; verdict stale; told lost (the grant is gone), kill 4428
   4100       * ann lets go
   4100 ann   lost + let go -> releasing; verdict stale; read
   4102 ann   releasing + answer ok -> ended; verdict stale; told lost
