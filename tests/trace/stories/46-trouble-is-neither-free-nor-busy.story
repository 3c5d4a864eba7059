# Rule 10: the store does not answer. Nobody is told busy and nobody is let in: unavailable, within the
# caller's own time.
store time
0 store goes
10 ann asks db nowait patience=2000
20 bob asks db wait=1000
30 cem asks db patience=3000
40 dot asks db wait=300 patience=400
9000 store comes
9100 eve asks db nowait
9200 eve lets go
---
      0       * store goes
     10       * ann asks db nowait patience=2000
     10 ann   idle + start -> asking; verdict granted; swap if absent
     20       * bob asks db wait=1000
     20 bob   idle + start -> asking; verdict granted; swap if absent
     30       * cem asks db patience=3000
     30 cem   idle + start -> asking; verdict granted; swap if absent
     40       * dot asks db wait=300 patience=400
     40 dot   idle + start -> asking; verdict granted; swap if absent
    280 cem   asking + timer -> asking
    316 ann   asking + timer -> asking
    334 bob   asking + timer -> asking
    344 cem   asking + timer -> asking; read
    367 dot   asking + timer -> leaving; read
    388 ann   asking + timer -> asking; read
    398 bob   asking + timer -> asking; read
    767 dot   leaving + timer -> ended; told unavailable (the store does not answer)
    914 ann   asking + timer -> asking
   1000 cem   asking + timer -> asking
   1019 ann   asking + timer -> asking; read
   1020 bob   asking + timer -> leaving
   1068 bob   leaving + timer -> leaving
   1136 cem   asking + timer -> asking; read
   1176 bob   leaving + timer -> leaving; read
   1520 bob   leaving + timer -> ended; told unavailable (the store does not answer)
   2010 ann   asking + timer -> ended; told unavailable (the store does not answer)
   2499 cem   asking + timer -> asking
   2734 cem   asking + timer -> asking; read
   3030 cem   asking + timer -> ended; told unavailable (the store does not answer)
   9000       * store comes
   9100       * eve asks db nowait
   9100 eve   idle + start -> asking; verdict granted; swap if absent
   9102 eve   asking + answer ok -> held; told held, token 1024; deadline 29100, kill 34100
   9200       * eve lets go
   9200 eve   held + let go -> releasing; verdict done; delete if revision 1
   9202 eve   releasing + answer ok -> ended; told ok
