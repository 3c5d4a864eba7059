# Rule 2: renew and release need the token. A stale one says stale and changes nothing, and giving
# back twice is safe.
store time
0 ann asks db
100 ann lets go
200 bob asks db
300 eve renews db 1024
400 eve releases db 1024
500 store shows db
600 bob lets go
700 eve releases db 3072
---
      0       * ann asks db
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
    100       * ann lets go
    100 ann   held + let go -> releasing; verdict done; delete if revision 1
    102 ann   releasing + answer ok -> ended; told ok
    200       * bob asks db
    200 bob   idle + start -> acquiring; verdict granted; swap if absent
    202 bob   acquiring + answer ok -> held; told held, token 3072; deadline 20200, kill 25200
    300       * eve renews db 1024
    300 eve   idle + start -> operation; read
    302 eve   operation + answer ok -> ended; verdict stale; told stale
    400       * eve releases db 1024
    400 eve   idle + start -> operation; read
    402 eve   operation + answer ok -> ended; verdict stale; told stale
    500       * store shows db
    500 store {"leasehold":1,"key":"db","next":2,"grants":[{"holder":"bob","request":"r2","session":"3","mode":"exclusive","bound":true,"granted":"this","ttl_ms":30000}]}
    600       * bob lets go
    600 bob   held + let go -> releasing; verdict done; delete if revision 3
    602 bob   releasing + answer ok -> ended; told ok
    700       * eve releases db 3072
    700 eve   idle + start -> operation; read
    702 eve   operation + answer ok -> ended; verdict stale; told stale
