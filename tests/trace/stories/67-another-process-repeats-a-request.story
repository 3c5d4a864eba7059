# Rule 9: Ann's process dies with an unbound grant. The same request of the same holder from another
# process gets the same token, and the grant moves there (rule 11), by a write although it is young.
store one-clock liveness
0 ann asks db id=job-1 unbound ttl=3000
100 ann dies
200 bob asks db id=job-1 unbound as=ann ttl=3000
210 store shows db
300 bob lets go
400 cem asks db id=job-2 as=pod ttl=3000
450 cem stands still 5000
500 dot asks db id=job-2 as=pod ttl=3000 unbound
600 store shows db
900 dot lets go
---
      0       * ann asks db id=job-1 unbound ttl=3000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 2000, kill 2500
    100       * ann dies
    100 ann   dies
    200       * bob asks db id=job-1 unbound as=ann ttl=3000
    200 bob   idle + start -> acquiring; verdict granted; swap if absent
    202 bob   acquiring + answer conflict -> acquiring; verdict granted; swap if revision 1
    204 bob   acquiring + answer ok -> held; told held, token 1024; deadline 2202, kill 2702
    210       * store shows db
    210 store {"leasehold":1,"key":"db","next":2,"grants":[{"holder":"ann","request":"job-1","session":"3","mode":"exclusive","granted":[0,1,1],"renewed":"this","ttl_ms":3000}]}
    300       * bob lets go
    300 bob   held + let go -> releasing; verdict done; delete if revision 2
    302 bob   releasing + answer ok -> ended; told ok
    400       * cem asks db id=job-2 as=pod ttl=3000
    400 cem   idle + start -> acquiring; verdict granted; swap if absent
    402 cem   acquiring + answer ok -> held; told held, token 4096; deadline 2400, kill 2900
    450       * cem stands still 5000
    450 cem   stands still
    500       * dot asks db id=job-2 as=pod ttl=3000 unbound
    500 dot   idle + start -> acquiring; verdict granted; swap if absent
    502 dot   acquiring + answer conflict -> acquiring; verdict granted; swap if revision 4
    504 dot   acquiring + answer ok -> held; told held, token 4096; deadline 2502, kill 3002
    600       * store shows db
    600 store {"leasehold":1,"key":"db","next":2,"grants":[{"holder":"pod","request":"job-2","session":"5","mode":"exclusive","granted":[0,4,401],"renewed":"this","ttl_ms":3000}]}
    900       * dot lets go
    900 dot   held + let go -> releasing; verdict done; delete if revision 5
    902 dot   releasing + answer ok -> ended; told ok
   5450 cem   goes on
   5450 cem   held + timer -> lost; told lost (deadline), kill 2900
