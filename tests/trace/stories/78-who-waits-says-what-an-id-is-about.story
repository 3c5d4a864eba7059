# Rule 6: what an id is about is said by the first who knows, also by one who waits. So whoever
# comes with another payload is never given what was done for this one.
store time
0 ann claims once:x keep=60000
10 bob claims once:x payload=9f keep=60000 result=fine
100 cem claims once:x payload=1c keep=60000 nowait
200 ann abandons
300 cem claims once:x payload=1c keep=60000 nowait
400 bob lets go
500 cem claims once:x payload=1c keep=60000 nowait
---
      0       * ann claims once:x keep=60000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
     10       * bob claims once:x payload=9f keep=60000 result=fine
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
     14 bob   acquiring + answer ok -> waiting; told waiting
    100       * cem claims once:x payload=1c keep=60000 nowait
    100 cem   idle + start -> acquiring; verdict granted; swap if absent
    102 cem   acquiring + answer conflict -> ended; verdict mismatch; told mismatch (the id is in use with another payload)
    200       * ann abandons
    200 ann   held + let go -> releasing; verdict done; delete if revision 1
    202 ann   releasing + answer conflict -> releasing; verdict done, named 1; swap if revision 2, wakes 1
    204 ann   releasing + answer ok -> ended; told ok
    204 bob   waiting + notice -> waiting; read
    206 bob   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 3
    208 bob   offered + answer ok -> held; told held, token 4096; deadline 20206, kill 25206
    300       * cem claims once:x payload=1c keep=60000 nowait
    300 cem   idle + start -> acquiring; verdict granted; swap if absent
    302 cem   acquiring + answer conflict -> ended; verdict mismatch; told mismatch (the id is in use with another payload)
    400       * bob lets go
    400 bob   held + let go -> releasing; verdict done; swap if revision 4
    402 bob   releasing + answer ok -> ended; told ok
    500       * cem claims once:x payload=1c keep=60000 nowait
    500 cem   idle + start -> acquiring; verdict granted; swap if absent
    502 cem   acquiring + answer conflict -> ended; verdict mismatch; told mismatch (the id is in use with another payload)
