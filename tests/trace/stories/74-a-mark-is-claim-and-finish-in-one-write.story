# Rules 6 and 9: seen and mark are one step, so no two workers pass between them. Ann's answer is
# lost; she finds her own mark and hears that it is new. Bob's is not.
store time
0 ann loses answer
10 ann marks once:x keep=60000
20 bob marks once:x keep=60000
30 cem looks once:x
1000 store shows once:x
---
      0       * ann loses answer
     10       * ann marks once:x keep=60000
     10 ann   idle + start -> operation; verdict done; swap if absent
     20       * bob marks once:x keep=60000
     20 bob   idle + start -> operation; verdict done; swap if absent
     22 bob   operation + answer conflict -> ended; verdict cooling; told cooling
     30       * cem looks once:x
     30 cem   idle + start -> operation; read
     32 cem   operation + answer ok -> ended; verdict done; told ok
    316 ann   operation + timer -> operation
    388 ann   operation + timer -> operation; read
    390 ann   operation + answer ok -> ended; verdict done; told ok
   1000       * store shows once:x
   1000 store {"leasehold":2,"key":"once:x","cooling":{"since":"this","length_ms":60000,"by":"ann"},"once":{"payload":"","request":"r1"}}
