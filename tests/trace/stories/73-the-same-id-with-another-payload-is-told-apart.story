# Rule 6: an id names one thing. Who comes with another payload hears mismatch, while it runs and
# when it is done; who says nothing of its payload is answered as ever.
store time
0 ann claims once:x payload=9f keep=60000
100 bob claims once:x payload=1c keep=60000 nowait
200 cem claims once:x keep=60000 nowait
300 ann lets go
400 bob claims once:x payload=1c keep=60000 nowait
500 cem marks once:x payload=9f keep=60000
---
      0       * ann claims once:x payload=9f keep=60000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
    100       * bob claims once:x payload=1c keep=60000 nowait
    100 bob   idle + start -> acquiring; verdict granted; swap if absent
    102 bob   acquiring + answer conflict -> ended; verdict mismatch; told mismatch (the id is in use with another payload)
    200       * cem claims once:x keep=60000 nowait
    200 cem   idle + start -> acquiring; verdict granted; swap if absent
    202 cem   acquiring + answer conflict -> ended; verdict busy; told busy
    300       * ann lets go
    300 ann   held + let go -> releasing; verdict done; swap if revision 1
    302 ann   releasing + answer ok -> ended; told ok
    400       * bob claims once:x payload=1c keep=60000 nowait
    400 bob   idle + start -> acquiring; verdict granted; swap if absent
    402 bob   acquiring + answer conflict -> ended; verdict mismatch; told mismatch (the id is in use with another payload)
    500       * cem marks once:x payload=9f keep=60000
    500 cem   idle + start -> operation; verdict done; swap if absent
    502 cem   operation + answer conflict -> ended; verdict cooling; told cooling
