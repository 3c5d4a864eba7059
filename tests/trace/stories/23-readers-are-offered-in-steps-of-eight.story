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
      0 ann   idle + start -> asking; verdict granted; swap if absent
      1       * r1 asks db shared
      1 r1    idle + start -> asking; verdict granted; swap if absent
      2 ann   asking + answer ok -> held; told held, token 1024; deadline 20000, kill 25000
      3 r1    asking + answer conflict -> asking; verdict waiting; swap if revision 1
      5 r1    asking + answer ok -> waiting; told waiting
      6       * r2 asks db shared
      6 r2    idle + start -> asking; verdict granted; swap if absent
      8 r2    asking + answer conflict -> asking; verdict waiting; swap if revision 2
     10 r2    asking + answer ok -> waiting; told waiting
     11       * r3 asks db shared
     11 r3    idle + start -> asking; verdict granted; swap if absent
     13 r3    asking + answer conflict -> asking; verdict waiting; swap if revision 3
     15 r3    asking + answer ok -> waiting; told waiting
     16       * r4 asks db shared
     16 r4    idle + start -> asking; verdict granted; swap if absent
     18 r4    asking + answer conflict -> asking; verdict waiting; swap if revision 4
     20 r4    asking + answer ok -> waiting; told waiting
     21       * r5 asks db shared
     21 r5    idle + start -> asking; verdict granted; swap if absent
     23 r5    asking + answer conflict -> asking; verdict waiting; swap if revision 5
     25 r5    asking + answer ok -> waiting; told waiting
     26       * r6 asks db shared
     26 r6    idle + start -> asking; verdict granted; swap if absent
     28 r6    asking + answer conflict -> asking; verdict waiting; swap if revision 6
     30 r6    asking + answer ok -> waiting; told waiting
     31       * r7 asks db shared
     31 r7    idle + start -> asking; verdict granted; swap if absent
     33 r7    asking + answer conflict -> asking; verdict waiting; swap if revision 7
     35 r7    asking + answer ok -> waiting; told waiting
     36       * r8 asks db shared
     36 r8    idle + start -> asking; verdict granted; swap if absent
     38 r8    asking + answer conflict -> asking; verdict waiting; swap if revision 8
     40 r8    asking + answer ok -> waiting; told waiting
     41       * r9 asks db shared
     41 r9    idle + start -> asking; verdict granted; swap if absent
     43 r9    asking + answer conflict -> asking; verdict waiting; swap if revision 9
     45 r9    asking + answer ok -> waiting; told waiting
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
    114 r9    offered + answer conflict -> offered; verdict granted (accepts); swap if revision 14
    116 r9    offered + answer ok -> held; told held, token 15360; deadline 20114, kill 25114
    131 r8    offered + timer -> offered; read
    133 r5    offered + timer -> offered; read
    133 r8    offered + answer ok -> offered; verdict granted (accepts); swap if revision 15
    134 r6    offered + timer -> offered; read
    135 r5    offered + answer ok -> offered; verdict granted (accepts); swap if revision 15
    135 r8    offered + answer ok -> held; told held, token 16384; deadline 20133, kill 25133
    136 r6    offered + answer ok -> offered; verdict granted (accepts); swap if revision 16
    137 r5    offered + answer conflict -> offered
    138 r6    offered + answer ok -> held; told held, token 17408; deadline 20136, kill 25136
    145 r7    offered + timer -> offered; read
    147 r7    offered + answer ok -> offered; verdict granted (accepts); swap if revision 17
    149 r4    offered + timer -> offered; read
    149 r7    offered + answer ok -> held; told held, token 18432; deadline 20147, kill 25147
    151 r4    offered + answer ok -> offered; verdict granted (accepts); swap if revision 18
    153 r4    offered + answer ok -> held; told held, token 19456; deadline 20151, kill 25151
    207 r5    offered + timer -> offered; read
    209 r5    offered + answer ok -> offered; verdict granted (accepts); swap if revision 19
    211 r5    offered + answer ok -> held; told held, token 20480; deadline 20209, kill 25209
   3000       * store shows db
   3000 store {"leasehold":1,"key":"db","next":11,"grants":[{"holder":"r1","request":"r2","session":"3","mode":"shared","bound":true,"granted":[0,12,107],"ttl_ms":30000},{"holder":"r2","request":"r3","session":"4","mode":"shared","bound":true,"granted":[0,13,109],"ttl_ms":30000},{"holder":"r3","request":"r4","session":"5","mode":"shared","bound":true,"granted":[0,14,111],"ttl_ms":30000},{"holder":"r9","request":"r10","session":"b","mode":"shared","bound":true,"granted":[0,15,115],"ttl_ms":30000},{"holder":"r8","request":"r9","session":"a","mode":"shared","bound":true,"granted":[0,16,134],"ttl_ms":30000},{"holder":"r6","request":"r7","session":"8","mode":"shared","bound":true,"granted":[0,17,137],"ttl_ms":30000},{"holder":"r7","request":"r8","session":"9","mode":"shared","bound":true,"granted":[0,18,148],"ttl_ms":30000},{"holder":"r4","request":"r5","session":"6","mode":"shared","bound":true,"granted":[0,19,152],"ttl_ms":30000},{"holder":"r5","request":"r6","session":"7","mode":"shared","bound":true,"granted":"this","ttl_ms":30000}]}
   9190 r6    held + timer -> renewing; verdict done; swap if revision 17
   9192 r6    renewing + answer conflict -> renewing; verdict done; swap if revision 20
   9194 r6    renewing + answer ok -> held; deadline 29192
   9228 r9    held + timer -> renewing; verdict done; swap if revision 15
   9230 r9    renewing + answer conflict -> renewing; verdict done; swap if revision 21
   9232 r9    renewing + answer ok -> held; deadline 29230
   9327 r7    held + timer -> renewing; verdict done; swap if revision 18
   9329 r7    renewing + answer conflict -> renewing; verdict done; swap if revision 22
   9331 r7    renewing + answer ok -> held; deadline 29329
   9395 r5    held + timer -> renewing; verdict done; swap if revision 20
   9397 r5    renewing + answer conflict -> renewing; verdict done; swap if revision 23
   9399 r5    renewing + answer ok -> held; deadline 29397
   9432 r1    held + timer -> renewing; verdict done; swap if revision 12
   9434 r1    renewing + answer conflict -> renewing; verdict done; swap if revision 24
   9436 r1    renewing + answer ok -> held; deadline 29434
   9572 r2    held + timer -> renewing; verdict done; swap if revision 13
   9574 r2    renewing + answer conflict -> renewing; verdict done; swap if revision 25
   9576 r2    renewing + answer ok -> held; deadline 29574
   9896 r3    held + timer -> renewing; verdict done; swap if revision 14
   9898 r3    renewing + answer conflict -> renewing; verdict done; swap if revision 26
   9900 r3    renewing + answer ok -> held; deadline 29898
   9930 r8    held + timer -> renewing; verdict done; swap if revision 16
   9932 r8    renewing + answer conflict -> renewing; verdict done; swap if revision 27
   9934 r8    renewing + answer ok -> held; deadline 29932
  10056 r4    held + timer -> renewing; verdict done; swap if revision 19
  10058 r4    renewing + answer conflict -> renewing; verdict done; swap if revision 28
  10060 r4    renewing + answer ok -> held; deadline 30058
  18291 r9    held + timer -> renewing; verdict done; swap if revision 22
  18293 r9    renewing + answer conflict -> renewing; verdict done; swap if revision 29
  18295 r9    renewing + answer ok -> held; deadline 38293
  18442 r5    held + timer -> renewing; verdict done; swap if revision 24
  18444 r5    renewing + answer conflict -> renewing; verdict done; swap if revision 30
  18446 r5    renewing + answer ok -> held; deadline 38444
  18598 r7    held + timer -> renewing; verdict done; swap if revision 23
  18600 r7    renewing + answer conflict -> renewing; verdict done; swap if revision 31
  18602 r7    renewing + answer ok -> held; deadline 38600
  18957 r1    held + timer -> renewing; verdict done; swap if revision 25
  18959 r1    renewing + answer conflict -> renewing; verdict done; swap if revision 32
  18961 r1    renewing + answer ok -> held; deadline 38959
  19055 r6    held + timer -> renewing; verdict done; swap if revision 21
  19057 r6    renewing + answer conflict -> renewing; verdict done; swap if revision 33
  19059 r6    renewing + answer ok -> held; deadline 39057
  19205 r4    held + timer -> renewing; verdict done; swap if revision 29
  19207 r4    renewing + answer conflict -> renewing; verdict done; swap if revision 34
  19209 r4    renewing + answer ok -> held; deadline 39207
  19374 r2    held + timer -> renewing; verdict done; swap if revision 26
  19376 r2    renewing + answer conflict -> renewing; verdict done; swap if revision 35
  19378 r2    renewing + answer ok -> held; deadline 39376
  19831 r3    held + timer -> renewing; verdict done; swap if revision 27
  19833 r3    renewing + answer conflict -> renewing; verdict done; swap if revision 36
  19835 r3    renewing + answer ok -> held; deadline 39833
  19887 r8    held + timer -> renewing; verdict done; swap if revision 28
  19889 r8    renewing + answer conflict -> renewing; verdict done; swap if revision 37
  19891 r8    renewing + answer ok -> held; deadline 39889
  27487 r9    held + timer -> renewing; verdict done; swap if revision 30
  27489 r9    renewing + answer conflict -> renewing; verdict done; swap if revision 38
  27491 r9    renewing + answer ok -> held; deadline 47489
  27712 r5    held + timer -> renewing; verdict done; swap if revision 31
  27714 r5    renewing + answer conflict -> renewing; verdict done; swap if revision 39
  27716 r5    renewing + answer ok -> held; deadline 47714
  27994 r7    held + timer -> renewing; verdict done; swap if revision 32
  27996 r7    renewing + answer conflict -> renewing; verdict done; swap if revision 40
  27998 r7    renewing + answer ok -> held; deadline 47996
  28245 r4    held + timer -> renewing; verdict done; swap if revision 35
  28247 r4    renewing + answer conflict -> renewing; verdict done; swap if revision 41
  28249 r4    renewing + answer ok -> held; deadline 48247
  28447 r1    held + timer -> renewing; verdict done; swap if revision 33
  28449 r1    renewing + answer conflict -> renewing; verdict done; swap if revision 42
  28451 r1    renewing + answer ok -> held; deadline 48449
  28742 r2    held + timer -> renewing; verdict done; swap if revision 36
  28744 r2    renewing + answer conflict -> renewing; verdict done; swap if revision 43
  28746 r2    renewing + answer ok -> held; deadline 48744
  28769 r6    held + timer -> renewing; verdict done; swap if revision 34
  28771 r6    renewing + answer conflict -> renewing; verdict done; swap if revision 44
  28773 r6    renewing + answer ok -> held; deadline 48771
  28945 r3    held + timer -> renewing; verdict done; swap if revision 37
  28947 r3    renewing + answer conflict -> renewing; verdict done; swap if revision 45
  28949 r3    renewing + answer ok -> held; deadline 48947
  29420 r8    held + timer -> renewing; verdict done; swap if revision 38
  29422 r8    renewing + answer conflict -> renewing; verdict done; swap if revision 46
  29424 r8    renewing + answer ok -> held; deadline 49422
  36735 r9    held + timer -> renewing; verdict done; swap if revision 39
  36737 r9    renewing + answer conflict -> renewing; verdict done; swap if revision 47
  36739 r9    renewing + answer ok -> held; deadline 56737
  37360 r5    held + timer -> renewing; verdict done; swap if revision 40
  37362 r5    renewing + answer conflict -> renewing; verdict done; swap if revision 48
  37364 r5    renewing + answer ok -> held; deadline 57362
  37807 r4    held + timer -> renewing; verdict done; swap if revision 42
  37809 r4    renewing + answer conflict -> renewing; verdict done; swap if revision 49
  37811 r4    renewing + answer ok -> held; deadline 57809
  37830 r1    held + timer -> renewing; verdict done; swap if revision 43
  37832 r1    renewing + answer conflict -> renewing; verdict done; swap if revision 50
  37834 r1    renewing + answer ok -> held; deadline 57832
  37916 r7    held + timer -> renewing; verdict done; swap if revision 41
  37918 r7    renewing + answer conflict -> renewing; verdict done; swap if revision 51
  37920 r7    renewing + answer ok -> held; deadline 57918
  38195 r6    held + timer -> renewing; verdict done; swap if revision 45
  38197 r6    renewing + answer conflict -> renewing; verdict done; swap if revision 52
  38199 r6    renewing + answer ok -> held; deadline 58197
  38298 r2    held + timer -> renewing; verdict done; swap if revision 44
  38300 r2    renewing + answer conflict -> renewing; verdict done; swap if revision 53
  38302 r2    renewing + answer ok -> held; deadline 58300
  38467 r3    held + timer -> renewing; verdict done; swap if revision 46
  38469 r3    renewing + answer conflict -> renewing; verdict done; swap if revision 54
  38471 r3    renewing + answer ok -> held; deadline 58469
  39075 r8    held + timer -> renewing; verdict done; swap if revision 47
  39077 r8    renewing + answer conflict -> renewing; verdict done; swap if revision 55
  39079 r8    renewing + answer ok -> held; deadline 59077
  46724 r9    held + timer -> renewing; verdict done; swap if revision 48
  46726 r9    renewing + answer conflict -> renewing; verdict done; swap if revision 56
  46728 r9    renewing + answer ok -> held; deadline 66726
  46920 r5    held + timer -> renewing; verdict done; swap if revision 49
  46922 r5    renewing + answer conflict -> renewing; verdict done; swap if revision 57
  46924 r5    renewing + answer ok -> held; deadline 66922
  47047 r7    held + timer -> renewing; verdict done; swap if revision 52
  47049 r7    renewing + answer conflict -> renewing; verdict done; swap if revision 58
  47051 r7    renewing + answer ok -> held; deadline 67049
  47488 r2    held + timer -> renewing; verdict done; swap if revision 54
  47490 r2    renewing + answer conflict -> renewing; verdict done; swap if revision 59
  47492 r2    renewing + answer ok -> held; deadline 67490
  47513 r3    held + timer -> renewing; verdict done; swap if revision 55
  47515 r3    renewing + answer conflict -> renewing; verdict done; swap if revision 60
  47517 r3    renewing + answer ok -> held; deadline 67515
  47586 r1    held + timer -> renewing; verdict done; swap if revision 51
  47588 r1    renewing + answer conflict -> renewing; verdict done; swap if revision 61
  47590 r1    renewing + answer ok -> held; deadline 67588
  47641 r6    held + timer -> renewing; verdict done; swap if revision 53
  47643 r6    renewing + answer conflict -> renewing; verdict done; swap if revision 62
  47645 r6    renewing + answer ok -> held; deadline 67643
  47712 r4    held + timer -> renewing; verdict done; swap if revision 50
  47714 r4    renewing + answer conflict -> renewing; verdict done; swap if revision 63
  47716 r4    renewing + answer ok -> held; deadline 67714
  48561 r8    held + timer -> renewing; verdict done; swap if revision 56
  48563 r8    renewing + answer conflict -> renewing; verdict done; swap if revision 64
  48565 r8    renewing + answer ok -> held; deadline 68563
  56303 r7    held + timer -> renewing; verdict done; swap if revision 59
  56305 r7    renewing + answer conflict -> renewing; verdict done; swap if revision 65
  56307 r7    renewing + answer ok -> held; deadline 76305
  56711 r9    held + timer -> renewing; verdict done; swap if revision 57
  56713 r9    renewing + answer conflict -> renewing; verdict done; swap if revision 66
  56715 r9    renewing + answer ok -> held; deadline 76713
  56757 r5    held + timer -> renewing; verdict done; swap if revision 58
  56759 r5    renewing + answer conflict -> renewing; verdict done; swap if revision 67
  56761 r5    renewing + answer ok -> held; deadline 76759
  56846 r4    held + timer -> renewing; verdict done; swap if revision 64
  56848 r4    renewing + answer conflict -> renewing; verdict done; swap if revision 68
  56850 r4    renewing + answer ok -> held; deadline 76848
  57281 r3    held + timer -> renewing; verdict done; swap if revision 61
  57282 r2    held + timer -> renewing; verdict done; swap if revision 60
  57283 r3    renewing + answer conflict -> renewing; verdict done; swap if revision 69
  57284 r2    renewing + answer conflict -> renewing; verdict done; swap if revision 69
  57285 r3    renewing + answer ok -> held; deadline 77283
  57286 r2    renewing + answer conflict -> renewing; verdict done; swap if revision 70
  57288 r2    renewing + answer ok -> held; deadline 77286
  57431 r6    held + timer -> renewing; verdict done; swap if revision 63
  57433 r6    renewing + answer conflict -> renewing; verdict done; swap if revision 71
  57435 r6    renewing + answer ok -> held; deadline 77433
  57514 r1    held + timer -> renewing; verdict done; swap if revision 62
  57516 r1    renewing + answer conflict -> renewing; verdict done; swap if revision 72
  57518 r1    renewing + answer ok -> held; deadline 77516
  58404 r8    held + timer -> renewing; verdict done; swap if revision 65
  58406 r8    renewing + answer conflict -> renewing; verdict done; swap if revision 73
  58408 r8    renewing + answer ok -> held; deadline 78406
