# Rule 6: of all claims of an id one is new. The others hear busy while it runs, and cooling, with
# the result, once it is done. The claim is an ordinary grant, what was done an ordinary cooldown.
store time
0 ann claims once:order-17 keep=60000 result=created
0 bob claims once:order-17 keep=60000 nowait
100 ann lets go
200 store shows once:order-17
300 cem claims once:order-17 keep=60000 nowait
---
      0       * ann claims once:order-17 keep=60000 result=created
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      0       * bob claims once:order-17 keep=60000 nowait
      0 bob   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
      2 bob   acquiring + answer conflict -> ended; verdict busy; told busy
    100       * ann lets go
    100 ann   held + let go -> releasing; verdict done; swap if revision 1
    102 ann   releasing + answer ok -> ended; told ok
    200       * store shows once:order-17
    200 store {"leasehold":2,"key":"once:order-17","next":2,"cooling":{"since":"this","length_ms":60000,"by":"ann"},"once":{"payload":"","request":"r1","token":"400","result":"created"}}
    300       * cem claims once:order-17 keep=60000 nowait
    300 cem   idle + start -> acquiring; verdict granted; swap if absent
    302 cem   acquiring + answer conflict -> ended; verdict cooling; told cooling
