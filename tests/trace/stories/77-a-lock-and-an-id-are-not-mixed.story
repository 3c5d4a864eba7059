# A key is used as one thing at a time: a lock of that name keeps the id out, and an id the lock.
store time
0 ann asks once:x
10 bob claims once:x keep=5000 nowait
100 ann lets go
200 bob claims once:x keep=5000 nowait
210 ann asks once:x nowait
300 bob abandons
---
      0       * ann asks once:x
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
     10       * bob claims once:x keep=5000 nowait
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> ended; verdict mismatch; told mismatch (the key is in use as something else)
    100       * ann lets go
    100 ann   held + let go -> releasing; verdict done; delete if revision 1
    102 ann   releasing + answer ok -> ended; told ok
    200       * bob claims once:x keep=5000 nowait
    200 bob   idle + start -> acquiring; verdict granted; swap if absent
    202 bob   acquiring + answer ok -> held; told held, token 3072; deadline 20200, kill 25200
    210       * ann asks once:x nowait
    210 ann   idle + start -> acquiring; verdict granted; swap if absent
    212 ann   acquiring + answer conflict -> ended; verdict mismatch; told mismatch (the key is in use as something else)
    300       * bob abandons
    300 bob   held + let go -> releasing; verdict done; delete if revision 3
    302 bob   releasing + answer ok -> ended; told ok
