# leasehold in a minute: one lock, four workers, everything that usually goes wrong.
#   ann takes the lock; bob and cem wait in line; dot is in a hurry and hears busy.
#   ann gives back: bob is offered the lock and accepts. He dies; his lease runs out in the store's
#   time, and cem takes over with a higher token.
#   cem's store goes away. She is told lost before anybody else can be let in, and stops.
#   eve does the work with a cooldown: the next caller hears that it was just done, and by when.
# Each line: time in ms, who, from state + event -> to state; what was decided, sent and told.
store time
0 ann asks deploy/payment ttl=3000
10 bob asks deploy/payment ttl=3000
20 cem asks deploy/payment ttl=3000 look=1500
30 dot asks deploy/payment nowait
500 ann lets go
700 bob dies
4000 store shows deploy/payment
4100 store goes
6000 cem lets go
6200 store comes
8000 eve asks deploy/payment cooldown=5000
8300 eve lets go
9000 dot asks deploy/payment nowait
9100 store shows deploy/payment
14000 dot asks deploy/payment nowait
14100 dot lets go
---
      0       * ann asks deploy/payment ttl=3000
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 2000, kill 2500
     10       * bob asks deploy/payment ttl=3000
     10 bob   idle + start -> acquiring; verdict granted; swap if absent
     12 bob   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
     14 bob   acquiring + answer ok -> waiting; told waiting
     20       * cem asks deploy/payment ttl=3000 look=1500
     20 cem   idle + start -> acquiring; verdict granted; swap if absent
     22 cem   acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 2
     24 cem   acquiring + answer ok -> waiting; told waiting
     30       * dot asks deploy/payment nowait
     30 dot   idle + start -> acquiring; verdict granted; swap if absent
     32 dot   acquiring + answer conflict -> ended; verdict busy; told busy
    500       * ann lets go
    500 ann   held + let go -> releasing; verdict done; delete if revision 1
    502 ann   releasing + answer conflict -> releasing; verdict done, named 1; swap if revision 3, wakes 1
    504 ann   releasing + answer ok -> ended; told ok
    504 bob   waiting + notice -> waiting; read
    506 bob   waiting + answer ok -> offered; verdict granted (accepts); swap if revision 4
    508 bob   offered + answer ok -> held; told held, token 5120; deadline 2506, kill 3006
    700       * bob dies
    700 bob   dies
   1866 cem   waiting + timer -> waiting; read
   1868 cem   waiting + answer ok -> waiting; verdict waiting
   3508 cem   waiting + timer -> waiting; read
   3510 cem   waiting + answer ok -> acquiring; verdict granted, expired 1; swap if revision 5
   3512 cem   acquiring + answer ok -> held; told held, token 6144; deadline 5510, kill 6010
   4000       * store shows deploy/payment
   4000 store {"leasehold":1,"key":"deploy/payment","next":4000000000021001,"grants":[{"holder":"cem","request":"r3","session":"4","mode":"exclusive","bound":true,"granted":"this","ttl_ms":3000}]}
   4100       * store goes
   4443 cem   held + timer -> renewing; verdict done; swap if revision 6
   4779 cem   renewing + timer -> renewing
   4847 cem   renewing + timer -> renewing; read
   5510 cem   renewing + timer -> lost; told lost (deadline), kill 6010
   6000       * cem lets go
   6000 cem   lost + let go -> releasing; verdict done; delete if revision 6
   6200       * store comes
   6372 cem   releasing + timer -> releasing
   6445 cem   releasing + timer -> releasing; read
   6447 cem   releasing + answer ok -> releasing; verdict done; delete if revision 6
   6449 cem   releasing + answer ok -> ended; told lost
   8000       * eve asks deploy/payment cooldown=5000
   8000 eve   idle + start -> acquiring; verdict granted; swap if absent
   8002 eve   acquiring + answer ok -> held; told held, token 8192; deadline 28000, kill 33000
   8300       * eve lets go
   8300 eve   held + let go -> releasing; verdict done; swap if revision 8
   8302 eve   releasing + answer ok -> ended; told ok
   9000       * dot asks deploy/payment nowait
   9000 dot   idle + start -> acquiring; verdict granted; swap if absent
   9002 dot   acquiring + answer conflict -> ended; verdict cooling; told cooling
   9100       * store shows deploy/payment
   9100 store {"leasehold":1,"key":"deploy/payment","next":2,"cooling":{"since":"this","length_ms":5000,"by":"eve"}}
  14000       * dot asks deploy/payment nowait
  14000 dot   idle + start -> acquiring; verdict granted; swap if absent
  14002 dot   acquiring + answer ok -> held; told held, token 11264; deadline 34000, kill 39000
  14100       * dot lets go
  14100 dot   held + let go -> releasing; verdict done; delete if revision 11
  14102 dot   releasing + answer ok -> ended; told ok
