# Rule 6: a finished id cannot be claimed until its retention ends; then it is new again. An
# abandoned one is free at once: it was not done.
store time
0 ann claims once:x keep=5000 result=fine
100 ann lets go
5000 bob claims once:x keep=5000 nowait
5200 bob claims once:x keep=5000 nowait
5300 bob abandons
5400 cem claims once:x keep=5000 nowait
5500 cem abandons
---
      0       * ann claims once:x keep=5000 result=fine
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
    100       * ann lets go
    100 ann   held + let go -> releasing; verdict done; swap if revision 1
    102 ann   releasing + answer ok -> ended; told ok
   5000       * bob claims once:x keep=5000 nowait
   5000 bob   idle + start -> acquiring; verdict granted; swap if absent
   5002 bob   acquiring + answer conflict -> ended; verdict cooling; told cooling
   5200       * bob claims once:x keep=5000 nowait
   5200 bob   idle + start -> acquiring; verdict granted; swap if absent
   5202 bob   acquiring + answer ok -> held; told held, token 4096; deadline 25200, kill 30200
   5300       * bob abandons
   5300 bob   held + let go -> releasing; verdict done; delete if revision 4
   5302 bob   releasing + answer ok -> ended; told ok
   5400       * cem claims once:x keep=5000 nowait
   5400 cem   idle + start -> acquiring; verdict granted; swap if absent
   5402 cem   acquiring + answer ok -> held; told held, token 6144; deadline 25400, kill 30400
   5500       * cem abandons
   5500 cem   held + let go -> releasing; verdict done; delete if revision 6
   5502 cem   releasing + answer ok -> ended; told ok
