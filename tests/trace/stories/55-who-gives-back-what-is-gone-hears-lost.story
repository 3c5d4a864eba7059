# An operator freed the key, and Ann's notice of it was lost. She gives back what is not hers any more, and
# hears lost: what she did since may have met somebody else.
store time overlaps
0 ann asks db
10 ann loses notices
100 op breaks db now
200 ann lets go
---
      0       * ann asks db
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
     10       * ann loses notices
    100       * op breaks db now
    100 op    idle + start -> operation; read
    102 op    operation + answer ok -> operation; verdict done; delete if revision 1, wakes 1
    104 op    operation + answer ok -> ended; told ok
    200       * ann lets go
    200 ann   held + let go -> releasing; verdict done; delete if revision 1
    202 ann   releasing + answer conflict -> ended; verdict stale; told lost (the grant is gone)
