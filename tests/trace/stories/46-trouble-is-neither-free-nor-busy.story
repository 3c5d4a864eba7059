# Rule 10: the store does not answer. Nobody is told busy and nobody is let in: unavailable, within the
# caller's own time.
store time
0 store goes
10 ann asks db nowait timeout=2000
20 bob asks db wait=1000
30 cem asks db timeout=3000
40 dot asks db wait=300 timeout=400
9000 store comes
9100 eve asks db nowait
9200 eve lets go
---
      0       * store goes
     10       * ann asks db nowait timeout=2000
     10 ann   idle + start -> acquiring; verdict granted; swap if absent
     20       * bob asks db wait=1000
     20 bob   idle + start -> acquiring; verdict granted; swap if absent
     30       * cem asks db timeout=3000
     30 cem   idle + start -> acquiring; verdict granted; swap if absent
     40       * dot asks db wait=300 timeout=400
     40 dot   idle + start -> acquiring; verdict granted; swap if absent
    280 cem   acquiring + timer -> acquiring
    316 ann   acquiring + timer -> acquiring
    334 bob   acquiring + timer -> acquiring
    344 cem   acquiring + timer -> acquiring; read
    367 dot   acquiring + timer -> leaving; read
    388 ann   acquiring + timer -> acquiring; read
    398 bob   acquiring + timer -> acquiring; read
    767 dot   leaving + timer -> ended; told unavailable (the store does not answer)
    914 ann   acquiring + timer -> acquiring
   1000 cem   acquiring + timer -> acquiring
   1019 ann   acquiring + timer -> acquiring; read
   1020 bob   acquiring + timer -> leaving
   1068 bob   leaving + timer -> leaving
   1136 cem   acquiring + timer -> acquiring; read
   1176 bob   leaving + timer -> leaving; read
   1520 bob   leaving + timer -> ended; told unavailable (the store does not answer)
   2010 ann   acquiring + timer -> ended; told unavailable (the store does not answer)
   2499 cem   acquiring + timer -> acquiring
   2734 cem   acquiring + timer -> acquiring; read
   3030 cem   acquiring + timer -> ended; told unavailable (the store does not answer)
   9000       * store comes
   9100       * eve asks db nowait
   9100 eve   idle + start -> acquiring; verdict granted; swap if absent
   9102 eve   acquiring + answer ok -> held; told held, token 1024; deadline 29100, kill 34100
   9200       * eve lets go
   9200 eve   held + let go -> releasing; verdict done; delete if revision 1
   9202 eve   releasing + answer ok -> ended; told ok
