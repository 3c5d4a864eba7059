# Rule 9: the answer to Ann's grant is lost. Asking again she finds her own request id and does not
# wait for herself. Nobody knows when the lost write was sent, so she renews: that starts the deadline.
store time
0 ann loses answer
1 ann asks db ttl=3000
10 store shows db
800 store shows db
900 ann lets go
---
      0       * ann loses answer
      1       * ann asks db ttl=3000
      1 ann   idle + start -> acquiring; verdict granted; swap if absent
     10       * store shows db
     10 store {"leasehold":1,"key":"db","next":2,"grants":[{"holder":"ann","request":"r1","session":"2","mode":"exclusive","bound":true,"granted":"this","ttl_ms":3000}]}
    307 ann   acquiring + timer -> acquiring
    379 ann   acquiring + timer -> acquiring; read
    381 ann   acquiring + answer ok -> acquiring; verdict granted; swap if revision 1
    383 ann   acquiring + answer ok -> held; told held, token 1024; deadline 2381, kill 2881
    800       * store shows db
    800 store {"leasehold":1,"key":"db","next":2,"grants":[{"holder":"ann","request":"r1","session":"2","mode":"exclusive","bound":true,"granted":[0,1,2],"renewed":"this","ttl_ms":3000}]}
    900       * ann lets go
    900 ann   held + let go -> releasing; verdict done; delete if revision 2
    902 ann   releasing + answer ok -> ended; told ok
