# Rule 11: a renewal by token from another process takes the grant home there. It can only make the
# lease longer: the old home may still count on the old length.
store time
0 ann asks db ttl=5000 unbound
10 ann dies
100 bob renews db unbound ttl=1000 1024
200 store shows db
300 bob releases db 1024
400 store shows db
---
      0       * ann asks db ttl=5000 unbound
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 3333, kill 4166
     10       * ann dies
     10 ann   dies
    100       * bob renews db unbound ttl=1000 1024
    100 bob   idle + start -> operation; read
    102 bob   operation + answer ok -> operation; verdict done; swap if revision 1
    104 bob   operation + answer ok -> ended; told ok
    200       * store shows db
    200 store {"leasehold":1,"key":"db","next":2,"grants":[{"holder":"ann","request":"r1","session":"3","mode":"exclusive","granted":[0,1,1],"renewed":"this","ttl_ms":5000}]}
    300       * bob releases db 1024
    300 bob   idle + start -> operation; read
    302 bob   operation + answer ok -> operation; verdict done; delete if revision 2
    304 bob   operation + answer ok -> ended; told ok
    400       * store shows db
    400 store absent
