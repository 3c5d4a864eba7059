# Rule 6: who dies between claim and finish leaves the id to the next one after the claim's lease.
# Ann was only asleep: her finish comes too late, changes nothing, and she hears that it was lost.
store time
0 ann claims once:x ttl=3000 keep=60000 result=by-ann
100 ann stands still 4000
3500 bob claims once:x ttl=3000 keep=60000 result=by-bob nowait
3600 bob lets go
4200 ann lets go
4300 store shows once:x
---
      0       * ann claims once:x ttl=3000 keep=60000 result=by-ann
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 2000, kill 2500
    100       * ann stands still 4000
    100 ann   stands still
   3500       * bob claims once:x ttl=3000 keep=60000 result=by-bob nowait
   3500 bob   idle + start -> acquiring; verdict granted; swap if absent
   3502 bob   acquiring + answer ok -> held; told held, token 3072; deadline 5500, kill 6000
   3600       * bob lets go
   3600 bob   held + let go -> releasing; verdict done; swap if revision 3
   3602 bob   releasing + answer ok -> ended; told ok
   4100 ann   goes on
   4100 ann   held + timer -> lost; told lost (deadline), kill 2500
   4200       * ann lets go
   4200 ann   lost + let go -> releasing; verdict done; delete if revision 1
   4202 ann   releasing + answer conflict -> ended; verdict stale; told lost
   4300       * store shows once:x
   4300 store {"leasehold":2,"key":"once:x","next":2,"cooling":{"since":"this","length_ms":60000,"by":"bob"},"once":{"payload":"","request":"r2","token":"c00","result":"by-bob"}}
