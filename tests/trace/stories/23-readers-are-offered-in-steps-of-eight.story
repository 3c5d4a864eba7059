# Rule 4: nine readers wait for a writer. Its release offers to eight of them; when one accepts, the ninth
# is offered in the same write. So a record never holds more than eight open offers.
store time
0 ann asks db
1 r1 asks db shared
6 r2 asks db shared
11 r3 asks db shared
16 r4 asks db shared
21 r5 asks db shared
26 r6 asks db shared
31 r7 asks db shared
36 r8 asks db shared
41 r9 asks db shared
100 ann lets go
3000 store shows db
---
      0       * ann asks db
      0 ann   idle + start -> acquiring; verdict granted; swap if absent
      1       * r1 asks db shared
      1 r1    idle + start -> acquiring; verdict granted; swap if absent
      2 ann   acquiring + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
      3 r1    acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 1
      5 r1    acquiring + answer ok -> waiting; told waiting
      6       * r2 asks db shared
      6 r2    idle + start -> acquiring; verdict granted; swap if absent
      8 r2    acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 2
     10 r2    acquiring + answer ok -> waiting; told waiting
     11       * r3 asks db shared
     11 r3    idle + start -> acquiring; verdict granted; swap if absent
     13 r3    acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 3
     15 r3    acquiring + answer ok -> waiting; told waiting
     16       * r4 asks db shared
     16 r4    idle + start -> acquiring; verdict granted; swap if absent
     18 r4    acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 4
     20 r4    acquiring + answer ok -> waiting; told waiting
     21       * r5 asks db shared
     21 r5    idle + start -> acquiring; verdict granted; swap if absent
     23 r5    acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 5
     25 r5    acquiring + answer ok -> waiting; told waiting
     26       * r6 asks db shared
     26 r6    idle + start -> acquiring; verdict granted; swap if absent
     28 r6    acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 6
     30 r6    acquiring + answer ok -> waiting; told waiting
     31       * r7 asks db shared
     31 r7    idle + start -> acquiring; verdict granted; swap if absent
     33 r7    acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 7
     35 r7    acquiring + answer ok -> waiting; told waiting
     36       * r8 asks db shared
     36 r8    idle + start -> acquiring; verdict granted; swap if absent
     38 r8    acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 8
     40 r8    acquiring + answer ok -> waiting; told waiting
     41       * r9 asks db shared
     41 r9    idle + start -> acquiring; verdict granted; swap if absent
     43 r9    acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 9
     45 r9    acquiring + answer ok -> waiting; told waiting
    100       * ann lets go
    100 ann   held + let go -> releasing; verdict done; delete if revision 1
    102 ann   releasing + answer conflict -> releasing; verdict done, named 8; swap if revision 10, wakes 8
    104 ann   releasing + answer ok -> ended; told ok
    104 r1    waiting + notice -> waiting; read
    104 r2    waiting + notice -> waiting; read
    104 r3    waiting + notice -> waiting; read
    104 r4    waiting + notice -> waiting; read
    104 r5    waiting + notice -> waiting; read
    104 r6    waiting + notice -> waiting; read
    104 r7    waiting + notice -> waiting; read
    104 r8    waiting + notice -> waiting; read
    106 r1    waiting + answer ok -> offered; verdict granted (accepts), named 1; swap if revision 11, wakes 1
    106 r2    waiting + answer ok -> offered; verdict granted (accepts), named 1; swap if revision 11, wakes 1
    106 r3    waiting + answer ok -> offered; verdict granted (accepts), named 1; swap if revision 11, wakes 1
    106 r4    waiting + answer ok -> offered; verdict granted (accepts), named 1; swap if revision 11, wakes 1
    106 r5    waiting + answer ok -> offered; verdict granted (accepts), named 1; swap if revision 11, wakes 1
    106 r6    waiting + answer ok -> offered; verdict granted (accepts), named 1; swap if revision 11, wakes 1
    106 r7    waiting + answer ok -> offered; verdict granted (accepts), named 1; swap if revision 11, wakes 1
    106 r8    waiting + answer ok -> offered; verdict granted (accepts), named 1; swap if revision 11, wakes 1
    108 r1    offered + answer ok -> held; told held, token 12288; deadline 20106, kill 25106
    108 r9    waiting + notice -> waiting; read
    108 r2    offered + answer conflict -> offered; verdict granted (accepts); swap if revision 12
    108 r3    offered + answer conflict -> offered; verdict granted (accepts); swap if revision 12
    108 r4    offered + answer conflict -> offered; verdict granted (accepts); swap if revision 12
    108 r5    offered + answer conflict -> offered; verdict granted (accepts); swap if revision 12
    108 r6    offered + answer conflict -> offered; verdict granted (accepts); swap if revision 12
    108 r7    offered + answer conflict -> offered; verdict granted (accepts); swap if revision 12
    108 r8    offered + answer conflict -> offered; verdict granted (accepts); swap if revision 12
    110 r9    waiting + answer ok -> offered; verdict granted (accepts); swap if revision 12
    110 r2    offered + answer ok -> held; told held, token 13312; deadline 20108, kill 25108
    110 r3    offered + answer conflict -> offered; verdict granted (accepts); swap if revision 13
    110 r4    offered + answer conflict -> offered; verdict granted (accepts); swap if revision 13
    110 r5    offered + answer conflict -> offered; verdict granted (accepts); swap if revision 13
    110 r6    offered + answer conflict -> offered; verdict granted (accepts); swap if revision 13
    110 r7    offered + answer conflict -> offered; verdict granted (accepts); swap if revision 13
    110 r8    offered + answer conflict -> offered; verdict granted (accepts); swap if revision 13
    112 r9    offered + answer conflict -> offered; verdict granted (accepts); swap if revision 13
    112 r3    offered + answer ok -> held; told held, token 14336; deadline 20110, kill 25110
    112 r4    offered + answer conflict -> offered
    112 r5    offered + answer conflict -> offered
    112 r6    offered + answer conflict -> offered
    112 r7    offered + answer conflict -> offered
    112 r8    offered + answer conflict -> offered
    114 r6    offered + timer -> offered; read
    114 r9    offered + answer conflict -> offered; verdict granted (accepts); swap if revision 14
    116 r6    offered + answer ok -> offered; verdict granted (accepts); swap if revision 14
    116 r9    offered + answer ok -> held; told held, token 15360; deadline 20114, kill 25114
    117 r4    offered + timer -> offered; read
    118 r6    offered + answer conflict -> offered
    119 r4    offered + answer ok -> offered; verdict granted (accepts); swap if revision 15
    121 r5    offered + timer -> offered; read
    121 r7    offered + timer -> offered; read
    121 r4    offered + answer ok -> held; told held, token 16384; deadline 20119, kill 25119
    123 r8    offered + timer -> offered; read
    123 r5    offered + answer ok -> offered; verdict granted (accepts); swap if revision 16
    123 r7    offered + answer ok -> offered; verdict granted (accepts); swap if revision 16
    125 r8    offered + answer ok -> offered; verdict granted (accepts); swap if revision 16
    125 r5    offered + answer ok -> held; told held, token 17408; deadline 20123, kill 25123
    125 r7    offered + answer conflict -> offered
    127 r6    offered + timer -> offered; read
    127 r8    offered + answer conflict -> offered
    129 r6    offered + answer ok -> offered; verdict granted (accepts); swap if revision 17
    131 r6    offered + answer ok -> held; told held, token 18432; deadline 20129, kill 25129
    141 r8    offered + timer -> offered; read
    142 r7    offered + timer -> offered; read
    143 r8    offered + answer ok -> offered; verdict granted (accepts); swap if revision 18
    144 r7    offered + answer ok -> offered; verdict granted (accepts); swap if revision 18
    145 r8    offered + answer ok -> held; told held, token 19456; deadline 20143, kill 25143
    146 r7    offered + answer conflict -> offered
    167 r7    offered + timer -> offered; read
    169 r7    offered + answer ok -> offered; verdict granted (accepts); swap if revision 19
    171 r7    offered + answer ok -> held; told held, token 20480; deadline 20169, kill 25169
   3000       * store shows db
   3000 store {"leasehold":1,"key":"db","next":4000000000042001,"grants":[{"holder":"r1","request":"r2","session":"3","mode":"shared","bound":true,"granted":[0,12,107],"ttl_ms":30000},{"holder":"r2","request":"r3","session":"4","mode":"shared","bound":true,"granted":[0,13,109],"ttl_ms":30000},{"holder":"r3","request":"r4","session":"5","mode":"shared","bound":true,"granted":[0,14,111],"ttl_ms":30000},{"holder":"r9","request":"r10","session":"b","mode":"shared","bound":true,"granted":[0,15,115],"ttl_ms":30000},{"holder":"r4","request":"r5","session":"6","mode":"shared","bound":true,"granted":[0,16,120],"ttl_ms":30000},{"holder":"r5","request":"r6","session":"7","mode":"shared","bound":true,"granted":[0,17,124],"ttl_ms":30000},{"holder":"r6","request":"r7","session":"8","mode":"shared","bound":true,"granted":[0,18,130],"ttl_ms":30000},{"holder":"r8","request":"r9","session":"a","mode":"shared","bound":true,"granted":[0,19,144],"ttl_ms":30000},{"holder":"r7","request":"r8","session":"9","mode":"shared","bound":true,"granted":"this","ttl_ms":30000}]}
   9228 r9    held + timer -> renewing; verdict done; swap if revision 15
   9230 r9    renewing + answer conflict -> renewing; verdict done; swap if revision 20
   9232 r9    renewing + answer ok -> held; deadline 29230
   9432 r1    held + timer -> renewing; verdict done; swap if revision 12
   9434 r1    renewing + answer conflict -> renewing; verdict done; swap if revision 21
   9436 r1    renewing + answer ok -> held; deadline 29434
   9563 r7    held + timer -> renewing; verdict done; swap if revision 20
   9565 r7    renewing + answer conflict -> renewing; verdict done; swap if revision 22
   9567 r7    renewing + answer ok -> held; deadline 29565
   9572 r2    held + timer -> renewing; verdict done; swap if revision 13
   9574 r2    renewing + answer conflict -> renewing; verdict done; swap if revision 23
   9576 r2    renewing + answer ok -> held; deadline 29574
   9896 r3    held + timer -> renewing; verdict done; swap if revision 14
   9898 r3    renewing + answer conflict -> renewing; verdict done; swap if revision 24
   9900 r3    renewing + answer ok -> held; deadline 29898
   9992 r6    held + timer -> renewing; verdict done; swap if revision 18
   9994 r6    renewing + answer conflict -> renewing; verdict done; swap if revision 25
   9996 r6    renewing + answer ok -> held; deadline 29994
  10018 r5    held + timer -> renewing; verdict done; swap if revision 17
  10020 r5    renewing + answer conflict -> renewing; verdict done; swap if revision 26
  10022 r5    renewing + answer ok -> held; deadline 30020
  10024 r4    held + timer -> renewing; verdict done; swap if revision 16
  10026 r4    renewing + answer conflict -> renewing; verdict done; swap if revision 27
  10028 r4    renewing + answer ok -> held; deadline 30026
  10098 r8    held + timer -> renewing; verdict done; swap if revision 19
  10100 r8    renewing + answer conflict -> renewing; verdict done; swap if revision 28
  10102 r8    renewing + answer ok -> held; deadline 30100
  18291 r9    held + timer -> renewing; verdict done; swap if revision 21
  18293 r9    renewing + answer conflict -> renewing; verdict done; swap if revision 29
  18295 r9    renewing + answer ok -> held; deadline 38293
  18957 r1    held + timer -> renewing; verdict done; swap if revision 22
  18959 r1    renewing + answer conflict -> renewing; verdict done; swap if revision 30
  18961 r1    renewing + answer ok -> held; deadline 38959
  19173 r4    held + timer -> renewing; verdict done; swap if revision 28
  19175 r4    renewing + answer conflict -> renewing; verdict done; swap if revision 31
  19177 r4    renewing + answer ok -> held; deadline 39175
  19206 r5    held + timer -> renewing; verdict done; swap if revision 27
  19208 r5    renewing + answer conflict -> renewing; verdict done; swap if revision 32
  19210 r5    renewing + answer ok -> held; deadline 39208
  19374 r2    held + timer -> renewing; verdict done; swap if revision 24
  19376 r2    renewing + answer conflict -> renewing; verdict done; swap if revision 33
  19378 r2    renewing + answer ok -> held; deadline 39376
  19485 r7    held + timer -> renewing; verdict done; swap if revision 23
  19487 r7    renewing + answer conflict -> renewing; verdict done; swap if revision 34
  19489 r7    renewing + answer ok -> held; deadline 39487
  19631 r8    held + timer -> renewing; verdict done; swap if revision 29
  19633 r8    renewing + answer conflict -> renewing; verdict done; swap if revision 35
  19635 r8    renewing + answer ok -> held; deadline 39633
  19706 r6    held + timer -> renewing; verdict done; swap if revision 26
  19708 r6    renewing + answer conflict -> renewing; verdict done; swap if revision 36
  19710 r6    renewing + answer ok -> held; deadline 39708
  19831 r3    held + timer -> renewing; verdict done; swap if revision 25
  19833 r3    renewing + answer conflict -> renewing; verdict done; swap if revision 37
  19835 r3    renewing + answer ok -> held; deadline 39833
  27487 r9    held + timer -> renewing; verdict done; swap if revision 30
  27489 r9    renewing + answer conflict -> renewing; verdict done; swap if revision 38
  27491 r9    renewing + answer ok -> held; deadline 47489
  28213 r4    held + timer -> renewing; verdict done; swap if revision 32
  28215 r4    renewing + answer conflict -> renewing; verdict done; swap if revision 39
  28217 r4    renewing + answer ok -> held; deadline 48215
  28253 r5    held + timer -> renewing; verdict done; swap if revision 33
  28255 r5    renewing + answer conflict -> renewing; verdict done; swap if revision 40
  28257 r5    renewing + answer ok -> held; deadline 48255
  28447 r1    held + timer -> renewing; verdict done; swap if revision 31
  28449 r1    renewing + answer conflict -> renewing; verdict done; swap if revision 41
  28451 r1    renewing + answer ok -> held; deadline 48449
  28616 r7    held + timer -> renewing; verdict done; swap if revision 35
  28618 r7    renewing + answer conflict -> renewing; verdict done; swap if revision 42
  28620 r7    renewing + answer ok -> held; deadline 48618
  28742 r2    held + timer -> renewing; verdict done; swap if revision 34
  28744 r2    renewing + answer conflict -> renewing; verdict done; swap if revision 43
  28746 r2    renewing + answer ok -> held; deadline 48744
  28945 r3    held + timer -> renewing; verdict done; swap if revision 38
  28947 r3    renewing + answer conflict -> renewing; verdict done; swap if revision 44
  28949 r3    renewing + answer ok -> held; deadline 48947
  29132 r6    held + timer -> renewing; verdict done; swap if revision 37
  29134 r6    renewing + answer conflict -> renewing; verdict done; swap if revision 45
  29136 r6    renewing + answer ok -> held; deadline 49134
  29286 r8    held + timer -> renewing; verdict done; swap if revision 36
  29288 r8    renewing + answer conflict -> renewing; verdict done; swap if revision 46
  29290 r8    renewing + answer ok -> held; deadline 49288
  36735 r9    held + timer -> renewing; verdict done; swap if revision 39
  36737 r9    renewing + answer conflict -> renewing; verdict done; swap if revision 47
  36739 r9    renewing + answer ok -> held; deadline 56737
  37523 r5    held + timer -> renewing; verdict done; swap if revision 41
  37525 r5    renewing + answer conflict -> renewing; verdict done; swap if revision 48
  37527 r5    renewing + answer ok -> held; deadline 57525
  37775 r4    held + timer -> renewing; verdict done; swap if revision 40
  37777 r4    renewing + answer conflict -> renewing; verdict done; swap if revision 49
  37779 r4    renewing + answer ok -> held; deadline 57777
  37830 r1    held + timer -> renewing; verdict done; swap if revision 42
  37832 r1    renewing + answer conflict -> renewing; verdict done; swap if revision 50
  37834 r1    renewing + answer ok -> held; deadline 57832
  37872 r7    held + timer -> renewing; verdict done; swap if revision 43
  37874 r7    renewing + answer conflict -> renewing; verdict done; swap if revision 51
  37876 r7    renewing + answer ok -> held; deadline 57874
  38298 r2    held + timer -> renewing; verdict done; swap if revision 44
  38300 r2    renewing + answer conflict -> renewing; verdict done; swap if revision 52
  38302 r2    renewing + answer ok -> held; deadline 58300
  38467 r3    held + timer -> renewing; verdict done; swap if revision 45
  38469 r3    renewing + answer conflict -> renewing; verdict done; swap if revision 53
  38471 r3    renewing + answer ok -> held; deadline 58469
  38578 r6    held + timer -> renewing; verdict done; swap if revision 46
  38580 r6    renewing + answer conflict -> renewing; verdict done; swap if revision 54
  38582 r6    renewing + answer ok -> held; deadline 58580
  38772 r8    held + timer -> renewing; verdict done; swap if revision 47
  38774 r8    renewing + answer conflict -> renewing; verdict done; swap if revision 55
  38776 r8    renewing + answer ok -> held; deadline 58774
  46724 r9    held + timer -> renewing; verdict done; swap if revision 48
  46726 r9    renewing + answer conflict -> renewing; verdict done; swap if revision 56
  46728 r9    renewing + answer ok -> held; deadline 66726
  47171 r5    held + timer -> renewing; verdict done; swap if revision 49
  47173 r5    renewing + answer conflict -> renewing; verdict done; swap if revision 57
  47175 r5    renewing + answer ok -> held; deadline 67173
  47333 r7    held + timer -> renewing; verdict done; swap if revision 52
  47335 r7    renewing + answer conflict -> renewing; verdict done; swap if revision 58
  47337 r7    renewing + answer ok -> held; deadline 67335
  47488 r2    held + timer -> renewing; verdict done; swap if revision 53
  47490 r2    renewing + answer conflict -> renewing; verdict done; swap if revision 59
  47492 r2    renewing + answer ok -> held; deadline 67490
  47513 r3    held + timer -> renewing; verdict done; swap if revision 54
  47515 r3    renewing + answer conflict -> renewing; verdict done; swap if revision 60
  47517 r3    renewing + answer ok -> held; deadline 67515
  47586 r1    held + timer -> renewing; verdict done; swap if revision 51
  47588 r1    renewing + answer conflict -> renewing; verdict done; swap if revision 61
  47590 r1    renewing + answer ok -> held; deadline 67588
  47680 r4    held + timer -> renewing; verdict done; swap if revision 50
  47682 r4    renewing + answer conflict -> renewing; verdict done; swap if revision 62
  47684 r4    renewing + answer ok -> held; deadline 67682
  48368 r6    held + timer -> renewing; verdict done; swap if revision 55
  48370 r6    renewing + answer conflict -> renewing; verdict done; swap if revision 63
  48372 r6    renewing + answer ok -> held; deadline 68370
  48615 r8    held + timer -> renewing; verdict done; swap if revision 56
  48617 r8    renewing + answer conflict -> renewing; verdict done; swap if revision 64
  48619 r8    renewing + answer ok -> held; deadline 68617
  56711 r9    held + timer -> renewing; verdict done; swap if revision 57
  56713 r9    renewing + answer conflict -> renewing; verdict done; swap if revision 65
  56715 r9    renewing + answer ok -> held; deadline 76713
  56731 r5    held + timer -> renewing; verdict done; swap if revision 58
  56733 r5    renewing + answer conflict -> renewing; verdict done; swap if revision 66
  56735 r5    renewing + answer ok -> held; deadline 76733
  56745 r7    held + timer -> renewing; verdict done; swap if revision 59
  56747 r7    renewing + answer conflict -> renewing; verdict done; swap if revision 67
  56749 r7    renewing + answer ok -> held; deadline 76747
  56814 r4    held + timer -> renewing; verdict done; swap if revision 63
  56816 r4    renewing + answer conflict -> renewing; verdict done; swap if revision 68
  56818 r4    renewing + answer ok -> held; deadline 76816
  57281 r3    held + timer -> renewing; verdict done; swap if revision 61
  57282 r2    held + timer -> renewing; verdict done; swap if revision 60
  57283 r3    renewing + answer conflict -> renewing; verdict done; swap if revision 69
  57284 r2    renewing + answer conflict -> renewing; verdict done; swap if revision 69
  57285 r3    renewing + answer ok -> held; deadline 77283
  57286 r2    renewing + answer conflict -> renewing; verdict done; swap if revision 70
  57288 r2    renewing + answer ok -> held; deadline 77286
  57514 r1    held + timer -> renewing; verdict done; swap if revision 62
  57516 r1    renewing + answer conflict -> renewing; verdict done; swap if revision 71
  57518 r1    renewing + answer ok -> held; deadline 77516
  57980 r6    held + timer -> renewing; verdict done; swap if revision 64
  57982 r6    renewing + answer conflict -> renewing; verdict done; swap if revision 72
  57984 r6    renewing + answer ok -> held; deadline 77982
  58487 r8    held + timer -> renewing; verdict done; swap if revision 65
  58489 r8    renewing + answer conflict -> renewing; verdict done; swap if revision 73
  58491 r8    renewing + answer ok -> held; deadline 78489
