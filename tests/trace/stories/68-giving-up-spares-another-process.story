# Rule 9: Bob waits under a request id. Another process repeats the request and gets his place, then
# the grant. When Bob gives up late, nothing of the other process is removed.
store one-clock liveness
0 ann asks db ttl=3000
100 bob asks db id=job-1 unbound as=pod waits ttl=3000
200 bob stands still 400
300 cem asks db id=job-1 unbound as=pod waits ttl=3000
400 ann lets go
700 bob lets go
800 store shows db
900 cem lets go
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
