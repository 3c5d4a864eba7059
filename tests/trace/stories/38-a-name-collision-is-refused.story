# Two keys have the same name in the store (a/b and a-b, or one hash). The full key travels with the
# record and is compared on every read: refused, not shared.
store time one-name
0 ann asks a/b
10 bob asks a-b nowait
20 cem asks a/b nowait
100 ann lets go
---
      0       * ann asks a/b
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
     10       * bob asks a-b nowait
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> ended; verdict mismatch; told mismatch (another key has the same name in the store)
     20       * cem asks a/b nowait
     20 cem   idle + start -> acquiring; verdict granted; swap if absent
     22 cem   acquiring + answer conflict -> ended; verdict busy; told busy
    100       * ann lets go
    100 ann   held + let go -> releasing; verdict done; delete if revision 1
    102 ann   releasing + answer ok -> ended; told ok
