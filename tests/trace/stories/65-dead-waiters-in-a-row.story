# Rule 4: Bob, Cem and Dot died in the queue. The offer to Bob also wakes Eve, who is fourth: she
# passes it on to Cem and to Dot, one after the other, and then takes it.
store time tells takeover=150
0 ann asks db
10 bob asks db
20 cem asks db
30 dot asks db
40 eve asks db
50 bob dies
50 cem dies
50 dot dies
100 ann lets go
2000 eve lets go
---
      0       * ann asks db
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
     10       * bob asks db
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1, wakes 1
     14 bob   acquiring + answer ok -> waiting; told waiting
     14 ann   held + notice -> held; deadline 20000
     20       * cem asks db
     20 cem   idle + start -> acquiring; verdict granted; swap if absent
     22 cem   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 2, wakes 1
     24 cem   acquiring + answer ok -> waiting; told waiting
     24 ann   held + notice -> held; deadline 20000
     30       * dot asks db
     30 dot   idle + start -> acquiring; verdict granted; swap if absent
     32 dot   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 3, wakes 1
     34 dot   acquiring + answer ok -> waiting; told waiting
     34 ann   held + notice -> held; deadline 20000
     40       * eve asks db
     40 eve   idle + start -> acquiring; verdict granted; swap if absent
     42 eve   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 4, wakes 1
     44 eve   acquiring + answer ok -> waiting; told waiting
     44 ann   held + notice -> held; deadline 20000
     50       * bob dies
     50 bob   dies
     50       * cem dies
     50 cem   dies
     50       * dot dies
     50 dot   dies
    100       * ann lets go
    100 ann   held + let go -> releasing; verdict done, named 1; swap if revision 5, wakes 4
    102 ann   releasing + answer ok -> ended; told ok
    102 eve   waiting + notice -> waiting
    328 eve   waiting + timer -> waiting; read
    330 eve   waiting + answer ok -> acquiring; verdict waiting, passed on 1, named 1; swap if revision 6, wakes 3
    332 eve   acquiring + answer ok -> waiting
    332 eve   waiting + notice -> waiting
    520 eve   waiting + timer -> waiting; read
    522 eve   waiting + answer ok -> acquiring; verdict waiting, passed on 1, named 1; swap if revision 7, wakes 2
    524 eve   acquiring + answer ok -> waiting
    524 eve   waiting + notice -> waiting
    679 eve   waiting + timer -> waiting; read
    681 eve   waiting + answer ok -> acquiring; verdict granted, passed on 1; swap if revision 8
    683 eve   acquiring + answer ok -> held; told held, token 9216; deadline 20681, kill 25681
   2000       * eve lets go
   2000 eve   held + let go -> releasing; verdict done; delete if revision 9
   2002 eve   releasing + answer ok -> ended; told ok
