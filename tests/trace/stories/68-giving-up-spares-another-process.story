# Rule 9: Bob waits under a request id. Another process repeats the request and gets his place, then
# the grant. When Bob gives up late, nothing of the other process is removed: neither a grant …
store one-clock liveness
0 ann asks db ttl=3000
100 bob asks db id=job-1 unbound as=pod waits ttl=3000
200 bob stands still 400
300 cem asks db id=job-1 unbound as=pod waits ttl=3000
400 ann lets go
700 bob lets go
800 store shows db
900 cem lets go
# … nor a queue position.
1000 ann asks db ttl=3000
1100 dot asks db id=job-2 unbound as=pod waits ttl=3000
1200 dot stands still 100
1250 eve asks db id=job-2 unbound as=pod waits ttl=3000
1400 dot lets go
1500 store shows db
1600 ann lets go
1700 eve lets go
---
      0       * ann asks db ttl=3000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 2000, kill 2500
    100       * bob asks db id=job-1 unbound as=pod waits ttl=3000
    100 bob   idle + start -> acquiring; verdict granted; swap if absent
    102 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
    104 bob   acquiring + answer ok -> waiting; told waiting
    200       * bob stands still 400
    200 bob   stands still
    300       * cem asks db id=job-1 unbound as=pod waits ttl=3000
    300 cem   idle + start -> acquiring; verdict granted; swap if absent
    302 cem   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 2
    304 cem   acquiring + answer ok -> waiting; told waiting
    400       * ann lets go
    400 ann   held + let go -> releasing; verdict done; delete if revision 1
    402 ann   releasing + answer conflict -> releasing; verdict done, named 1; swap if revision 3, wakes 1
    404 ann   releasing + answer ok -> ended; told ok
    404 cem   waiting + notice -> waiting; read
    406 cem   waiting + answer ok -> held; verdict granted; told held, token 4096; deadline 2402, kill 2902
    600 bob   goes on
    600 bob   waiting + timer -> waiting
    700       * bob lets go
    700 bob   waiting + let go -> leaving; verdict done; swap if revision 2
    702 bob   leaving + answer conflict -> ended; verdict done; told busy (cancelled)
    800       * store shows db
    800 store {"leasehold":1,"key":"db","next":4000000000101001,"grants":[{"holder":"pod","request":"job-1","session":"4","mode":"exclusive","granted":"this","ttl_ms":3000}]}
    900       * cem lets go
    900 cem   held + let go -> releasing; verdict done; delete if revision 4
    902 cem   releasing + answer ok -> ended; told ok
   1000       * ann asks db ttl=3000
   1000 ann   idle + start -> acquiring; verdict granted; swap if absent
   1002 ann   acquiring + answer ok -> held; told held, token 6144; deadline 3000, kill 3500
   1100       * dot asks db id=job-2 unbound as=pod waits ttl=3000
   1100 dot   idle + start -> acquiring; verdict granted; swap if absent
   1102 dot   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 6
   1104 dot   acquiring + answer ok -> waiting; told waiting
   1200       * dot stands still 100
   1200 dot   stands still
   1250       * eve asks db id=job-2 unbound as=pod waits ttl=3000
   1250 eve   idle + start -> acquiring; verdict granted; swap if absent
   1252 eve   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 7
   1254 eve   acquiring + answer ok -> waiting; told waiting
   1300 dot   goes on
   1300 dot   waiting + timer -> waiting
   1400       * dot lets go
   1400 dot   waiting + let go -> leaving; verdict done; swap if revision 7
   1402 dot   leaving + answer conflict -> ended; verdict done; told busy (cancelled)
   1500       * store shows db
   1500 store {"leasehold":1,"key":"db","next":4000000001101001,"grants":[{"holder":"ann","request":"r3","session":"2","mode":"exclusive","bound":true,"granted":[0,6,1001],"ttl_ms":3000}],"places":[{"holder":"pod","request":"job-2","session":"6","mode":"exclusive","ticket":4000000001101000,"ttl_ms":3000}]}
   1600       * ann lets go
   1600 ann   held + let go -> releasing; verdict done; delete if revision 6
   1602 ann   releasing + answer conflict -> releasing; verdict done, named 1; swap if revision 8, wakes 1
   1604 ann   releasing + answer ok -> ended; told ok
   1604 eve   waiting + notice -> waiting; read
   1606 eve   waiting + answer ok -> held; verdict granted; told held, token 9216; deadline 3602, kill 4102
   1700       * eve lets go
   1700 eve   held + let go -> releasing; verdict done; delete if revision 9
   1702 eve   releasing + answer ok -> ended; told ok
