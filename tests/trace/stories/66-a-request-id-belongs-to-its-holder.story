# Rule 9: a request id names one acquisition of one holder. Another holder that repeats it gets mismatch
# and changes nothing, whether the first one holds, waits, or has marked an id.
store time
0 ann asks db id=job-1
10 bob asks db id=job-1
20 cem asks db id=job-2
40 dot asks db id=job-2 as=dot
60 store shows db
100 ann lets go
200 cem lets go
300 ann marks once:x id=job-3 keep=60000
320 bob marks once:x id=job-3 keep=60000
340 ann marks once:x id=job-3 keep=60000
---
      0       * ann asks db id=job-1
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
     10       * bob asks db id=job-1
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> ended; verdict mismatch; told mismatch (another holder has used this request id)
     20       * cem asks db id=job-2
     20 cem   idle + start -> acquiring; verdict granted; swap if absent
     22 cem   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
     24 cem   acquiring + answer ok -> waiting; told waiting
     40       * dot asks db id=job-2 as=dot
     40 dot   idle + start -> acquiring; verdict granted; swap if absent
     42 dot   acquiring + answer conflict -> ended; verdict mismatch; told mismatch (another holder has used this request id)
     60       * store shows db
     60 store {"leasehold":1,"key":"db","next":4000000000021001,"grants":[{"holder":"ann","request":"job-1","session":"2","mode":"exclusive","bound":true,"granted":[0,1,1],"ttl_ms":30000}],"places":[{"holder":"cem","request":"job-2","session":"4","mode":"exclusive","bound":true,"ticket":4000000000021000,"ttl_ms":30000}]}
    100       * ann lets go
    100 ann   held + let go -> releasing; verdict done; delete if revision 1
    102 ann   releasing + answer conflict -> releasing; verdict done, named 1; swap if revision 2, wakes 1
    104 ann   releasing + answer ok -> ended; told ok
    104 cem   waiting + notice -> waiting; read
    106 cem   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 3
    108 cem   offered + answer ok -> held; told held, token 4096; deadline 20106, kill 25106
    200       * cem lets go
    200 cem   held + let go -> releasing; verdict done; delete if revision 4
    202 cem   releasing + answer ok -> ended; told ok
    300       * ann marks once:x id=job-3 keep=60000
    300 ann   idle + start -> operation; verdict done; swap if absent
    302 ann   operation + answer ok -> ended; told ok
    320       * bob marks once:x id=job-3 keep=60000
    320 bob   idle + start -> operation; verdict done; swap if absent
    322 bob   operation + answer conflict -> ended; verdict mismatch; told mismatch (another holder has used this request id)
    340       * ann marks once:x id=job-3 keep=60000
    340 ann   idle + start -> operation; verdict done; swap if absent
    342 ann   operation + answer conflict -> ended; verdict done; told ok
