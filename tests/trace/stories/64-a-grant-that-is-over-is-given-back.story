# The grant's answer comes when its lease is over. Somebody else may be let in by then, so ann is not
# told held: she writes her grant out, pauses, and asks again.
store time
0 ann holds answer 120
1 ann asks db ttl=90
400 ann lets go
---
      0       * ann holds answer 120
      1       * ann asks db ttl=90
      1 ann   idle + start -> acquiring; verdict granted; swap if absent
    123 ann   acquiring + answer ok -> leaving
    123 ann   leaving + timer -> leaving; verdict done; delete if revision 1
    125 ann   leaving + answer ok -> acquiring
    198 ann   acquiring + timer -> acquiring; read
    200 ann   acquiring + answer ok -> acquiring; verdict granted; swap if absent
    202 ann   acquiring + answer ok -> held; told held, token 3072; deadline 260, kill 275
    227 ann   held + timer -> renewing; verdict done; swap if revision 3
    229 ann   renewing + answer ok -> held; deadline 287
    254 ann   held + timer -> renewing; verdict done; swap if revision 4
    256 ann   renewing + answer ok -> held; deadline 314
    284 ann   held + timer -> renewing; verdict done; swap if revision 5
    286 ann   renewing + answer ok -> held; deadline 344
    314 ann   held + timer -> renewing; verdict done; swap if revision 6
    316 ann   renewing + answer ok -> held; deadline 374
    344 ann   held + timer -> renewing; verdict done; swap if revision 7
    346 ann   renewing + answer ok -> held; deadline 404
    371 ann   held + timer -> renewing; verdict done; swap if revision 8
    373 ann   renewing + answer ok -> held; deadline 431
    399 ann   held + timer -> renewing; verdict done; swap if revision 9
    400       * ann lets go
    400 ann   renewing + let go -> releasing; verdict done; delete if revision 9
    401 ann   releasing + answer ok -> releasing
    402 ann   releasing + answer conflict -> releasing; verdict done; delete if revision 10
    404 ann   releasing + answer ok -> ended; told ok
