# Nine readers wait on one clock. The release grants to eight of them; nobody accepts anything, so nobody would
# name the ninth: it is woken to ask for itself. When exactly eight wait, nobody is left to be woken.
store one-clock
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
1010 r1 lets go
1020 r2 lets go
1030 r3 lets go
1040 r4 lets go
1050 r5 lets go
1060 r6 lets go
1070 r7 lets go
1080 r8 lets go
1090 r9 lets go
2000 ann asks db
2005 r1 asks db shared
2010 r2 asks db shared
2015 r3 asks db shared
2020 r4 asks db shared
2025 r5 asks db shared
2030 r6 asks db shared
2035 r7 asks db shared
2040 r8 asks db shared
2100 ann lets go
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
    102 ann   releasing + answer conflict -> releasing; verdict done, named 8; swap if revision 10, wakes 9
    104 ann   releasing + answer ok -> ended; told ok
    104 r1    waiting + notice -> waiting; read
    104 r2    waiting + notice -> waiting; read
    104 r3    waiting + notice -> waiting; read
    104 r4    waiting + notice -> waiting; read
    104 r5    waiting + notice -> waiting; read
    104 r6    waiting + notice -> waiting; read
    104 r7    waiting + notice -> waiting; read
    104 r8    waiting + notice -> waiting; read
    104 r9    waiting + notice -> waiting; read
    106 r1    waiting + answer ok -> held; verdict granted; told held, token 11264; deadline 20102, kill 25102
    106 r2    waiting + answer ok -> held; verdict granted; told held, token 11328; deadline 20102, kill 25102
    106 r3    waiting + answer ok -> held; verdict granted; told held, token 11392; deadline 20102, kill 25102
    106 r4    waiting + answer ok -> held; verdict granted; told held, token 11456; deadline 20102, kill 25102
    106 r5    waiting + answer ok -> held; verdict granted; told held, token 11520; deadline 20102, kill 25102
    106 r6    waiting + answer ok -> held; verdict granted; told held, token 11584; deadline 20102, kill 25102
    106 r7    waiting + answer ok -> held; verdict granted; told held, token 11648; deadline 20102, kill 25102
    106 r8    waiting + answer ok -> held; verdict granted; told held, token 11712; deadline 20102, kill 25102
    106 r9    waiting + answer ok -> acquiring; verdict granted; swap if revision 11
    108 r9    acquiring + answer ok -> held; told held, token 12288; deadline 20106, kill 25106
   1010       * r1 lets go
   1010 r1    held + let go -> releasing; verdict done, named 1; swap if revision 11, wakes 1
   1012 r1    releasing + answer conflict -> releasing; verdict done; swap if revision 12
   1014 r1    releasing + answer ok -> ended; told ok
   1020       * r2 lets go
   1020 r2    held + let go -> releasing; verdict done, named 1; swap if revision 11, wakes 1
   1022 r2    releasing + answer conflict -> releasing; verdict done; swap if revision 13
   1024 r2    releasing + answer ok -> ended; told ok
   1030       * r3 lets go
   1030 r3    held + let go -> releasing; verdict done, named 1; swap if revision 11, wakes 1
   1032 r3    releasing + answer conflict -> releasing; verdict done; swap if revision 14
   1034 r3    releasing + answer ok -> ended; told ok
   1040       * r4 lets go
   1040 r4    held + let go -> releasing; verdict done, named 1; swap if revision 11, wakes 1
   1042 r4    releasing + answer conflict -> releasing; verdict done; swap if revision 15
   1044 r4    releasing + answer ok -> ended; told ok
   1050       * r5 lets go
   1050 r5    held + let go -> releasing; verdict done, named 1; swap if revision 11, wakes 1
   1052 r5    releasing + answer conflict -> releasing; verdict done; swap if revision 16
   1054 r5    releasing + answer ok -> ended; told ok
   1060       * r6 lets go
   1060 r6    held + let go -> releasing; verdict done, named 1; swap if revision 11, wakes 1
   1062 r6    releasing + answer conflict -> releasing; verdict done; swap if revision 17
   1064 r6    releasing + answer ok -> ended; told ok
   1070       * r7 lets go
   1070 r7    held + let go -> releasing; verdict done, named 1; swap if revision 11, wakes 1
   1072 r7    releasing + answer conflict -> releasing; verdict done; swap if revision 18
   1074 r7    releasing + answer ok -> ended; told ok
   1080       * r8 lets go
   1080 r8    held + let go -> releasing; verdict done, named 1; swap if revision 11, wakes 1
   1082 r8    releasing + answer conflict -> releasing; verdict done; swap if revision 19
   1084 r8    releasing + answer ok -> ended; told ok
   1090       * r9 lets go
   1090 r9    held + let go -> releasing; verdict done; swap if revision 12
   1092 r9    releasing + answer conflict -> releasing; verdict done; delete if revision 20
   1094 r9    releasing + answer ok -> ended; told ok
   2000       * ann asks db
   2000 ann   idle + start -> acquiring; verdict granted; swap if absent
   2002 ann   acquiring + answer ok -> held; told held, token 22528; deadline 22000, kill 27000
   2005       * r1 asks db shared
   2005 r1    idle + start -> acquiring; verdict granted; swap if absent
   2007 r1    acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 22
   2009 r1    acquiring + answer ok -> waiting; told waiting
   2010       * r2 asks db shared
   2010 r2    idle + start -> acquiring; verdict granted; swap if absent
   2012 r2    acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 23
   2014 r2    acquiring + answer ok -> waiting; told waiting
   2015       * r3 asks db shared
   2015 r3    idle + start -> acquiring; verdict granted; swap if absent
   2017 r3    acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 24
   2019 r3    acquiring + answer ok -> waiting; told waiting
   2020       * r4 asks db shared
   2020 r4    idle + start -> acquiring; verdict granted; swap if absent
   2022 r4    acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 25
   2024 r4    acquiring + answer ok -> waiting; told waiting
   2025       * r5 asks db shared
   2025 r5    idle + start -> acquiring; verdict granted; swap if absent
   2027 r5    acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 26
   2029 r5    acquiring + answer ok -> waiting; told waiting
   2030       * r6 asks db shared
   2030 r6    idle + start -> acquiring; verdict granted; swap if absent
   2032 r6    acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 27
   2034 r6    acquiring + answer ok -> waiting; told waiting
   2035       * r7 asks db shared
   2035 r7    idle + start -> acquiring; verdict granted; swap if absent
   2037 r7    acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 28
   2039 r7    acquiring + answer ok -> waiting; told waiting
   2040       * r8 asks db shared
   2040 r8    idle + start -> acquiring; verdict granted; swap if absent
   2042 r8    acquiring + answer conflict -> acquiring; verdict waiting; swap if revision 29
   2044 r8    acquiring + answer ok -> waiting; told waiting
   2100       * ann lets go
   2100 ann   held + let go -> releasing; verdict done; delete if revision 22
   2102 ann   releasing + answer conflict -> releasing; verdict done, named 8; swap if revision 30, wakes 8
   2104 ann   releasing + answer ok -> ended; told ok
   2104 r1    waiting + notice -> waiting; read
   2104 r2    waiting + notice -> waiting; read
   2104 r3    waiting + notice -> waiting; read
   2104 r4    waiting + notice -> waiting; read
   2104 r5    waiting + notice -> waiting; read
   2104 r6    waiting + notice -> waiting; read
   2104 r7    waiting + notice -> waiting; read
   2104 r8    waiting + notice -> waiting; read
   2106 r1    waiting + answer ok -> held; verdict granted; told held, token 31744; deadline 22102, kill 27102
   2106 r2    waiting + answer ok -> held; verdict granted; told held, token 31808; deadline 22102, kill 27102
   2106 r3    waiting + answer ok -> held; verdict granted; told held, token 31872; deadline 22102, kill 27102
   2106 r4    waiting + answer ok -> held; verdict granted; told held, token 31936; deadline 22102, kill 27102
   2106 r5    waiting + answer ok -> held; verdict granted; told held, token 32000; deadline 22102, kill 27102
   2106 r6    waiting + answer ok -> held; verdict granted; told held, token 32064; deadline 22102, kill 27102
   2106 r7    waiting + answer ok -> held; verdict granted; told held, token 32128; deadline 22102, kill 27102
   2106 r8    waiting + answer ok -> held; verdict granted; told held, token 32192; deadline 22102, kill 27102
  11197 r1    held + timer -> renewing; verdict done; swap if revision 31
  11199 r1    renewing + answer ok -> held; deadline 31197
  11442 r3    held + timer -> renewing; verdict done; swap if revision 31
  11444 r3    renewing + answer conflict -> renewing; verdict done; swap if revision 32
  11446 r3    renewing + answer ok -> held; deadline 31444
  11449 r7    held + timer -> renewing; verdict done; swap if revision 31
  11451 r7    renewing + answer conflict -> renewing; verdict done; swap if revision 33
  11453 r7    renewing + answer ok -> held; deadline 31451
  11494 r6    held + timer -> renewing; verdict done; swap if revision 31
  11496 r6    renewing + answer conflict -> renewing; verdict done; swap if revision 34
  11498 r6    renewing + answer ok -> held; deadline 31496
  11644 r8    held + timer -> renewing; verdict done; swap if revision 31
  11646 r8    renewing + answer conflict -> renewing; verdict done; swap if revision 35
  11648 r8    renewing + answer ok -> held; deadline 31646
  11650 r4    held + timer -> renewing; verdict done; swap if revision 31
  11652 r4    renewing + answer conflict -> renewing; verdict done; swap if revision 36
  11654 r4    renewing + answer ok -> held; deadline 31652
  11861 r2    held + timer -> renewing; verdict done; swap if revision 31
  11863 r2    renewing + answer conflict -> renewing; verdict done; swap if revision 37
  11865 r2    renewing + answer ok -> held; deadline 31863
  11891 r5    held + timer -> renewing; verdict done; swap if revision 31
  11893 r5    renewing + answer conflict -> renewing; verdict done; swap if revision 38
  11895 r5    renewing + answer ok -> held; deadline 31893
  20580 r1    held + timer -> renewing; verdict done; swap if revision 32
  20582 r1    renewing + answer conflict -> renewing; verdict done; swap if revision 39
  20584 r1    renewing + answer ok -> held; deadline 40582
  21054 r4    held + timer -> renewing; verdict done; swap if revision 37
  21056 r4    renewing + answer conflict -> renewing; verdict done; swap if revision 40
  21058 r4    renewing + answer ok -> held; deadline 41056
  21092 r7    held + timer -> renewing; verdict done; swap if revision 34
  21094 r7    renewing + answer conflict -> renewing; verdict done; swap if revision 41
  21096 r7    renewing + answer ok -> held; deadline 41094
  21135 r3    held + timer -> renewing; verdict done; swap if revision 33
  21137 r3    renewing + answer conflict -> renewing; verdict done; swap if revision 42
  21139 r3    renewing + answer ok -> held; deadline 41137
  21180 r8    held + timer -> renewing; verdict done; swap if revision 36
  21182 r8    renewing + answer conflict -> renewing; verdict done; swap if revision 43
  21184 r8    renewing + answer ok -> held; deadline 41182
  21316 r2    held + timer -> renewing; verdict done; swap if revision 38
  21318 r2    renewing + answer conflict -> renewing; verdict done; swap if revision 44
  21320 r2    renewing + answer ok -> held; deadline 41318
  21324 r6    held + timer -> renewing; verdict done; swap if revision 35
  21326 r6    renewing + answer conflict -> renewing; verdict done; swap if revision 45
  21328 r6    renewing + answer ok -> held; deadline 41326
  21379 r5    held + timer -> renewing; verdict done; swap if revision 39
  21381 r5    renewing + answer conflict -> renewing; verdict done; swap if revision 46
  21383 r5    renewing + answer ok -> held; deadline 41381
  29862 r1    held + timer -> renewing; verdict done; swap if revision 40
  29864 r1    renewing + answer conflict -> renewing; verdict done; swap if revision 47
  29866 r1    renewing + answer ok -> held; deadline 49864
  30515 r6    held + timer -> renewing; verdict done; swap if revision 46
  30517 r6    renewing + answer conflict -> renewing; verdict done; swap if revision 48
  30519 r6    renewing + answer ok -> held; deadline 50517
  30541 r2    held + timer -> renewing; verdict done; swap if revision 45
  30543 r2    renewing + answer conflict -> renewing; verdict done; swap if revision 49
  30545 r2    renewing + answer ok -> held; deadline 50543
  30700 r5    held + timer -> renewing; verdict done; swap if revision 47
  30702 r5    renewing + answer conflict -> renewing; verdict done; swap if revision 50
  30704 r5    renewing + answer ok -> held; deadline 50702
  30904 r4    held + timer -> renewing; verdict done; swap if revision 41
  30906 r4    renewing + answer conflict -> renewing; verdict done; swap if revision 51
  30908 r4    renewing + answer ok -> held; deadline 50906
  30921 r8    held + timer -> renewing; verdict done; swap if revision 44
  30923 r8    renewing + answer conflict -> renewing; verdict done; swap if revision 52
  30925 r8    renewing + answer ok -> held; deadline 50923
  31070 r3    held + timer -> renewing; verdict done; swap if revision 43
  31072 r3    renewing + answer conflict -> renewing; verdict done; swap if revision 53
  31074 r3    renewing + answer ok -> held; deadline 51072
  31078 r7    held + timer -> renewing; verdict done; swap if revision 42
  31080 r7    renewing + answer conflict -> renewing; verdict done; swap if revision 54
  31082 r7    renewing + answer ok -> held; deadline 51080
  39164 r1    held + timer -> renewing; verdict done; swap if revision 48
  39166 r1    renewing + answer conflict -> renewing; verdict done; swap if revision 55
  39168 r1    renewing + answer ok -> held; deadline 59166
  39846 r6    held + timer -> renewing; verdict done; swap if revision 49
  39848 r6    renewing + answer conflict -> renewing; verdict done; swap if revision 56
  39850 r6    renewing + answer ok -> held; deadline 59848
  39916 r2    held + timer -> renewing; verdict done; swap if revision 50
  39918 r2    renewing + answer conflict -> renewing; verdict done; swap if revision 57
  39920 r2    renewing + answer ok -> held; deadline 59918
  40165 r3    held + timer -> renewing; verdict done; swap if revision 54
  40167 r3    renewing + answer conflict -> renewing; verdict done; swap if revision 58
  40169 r3    renewing + answer ok -> held; deadline 60167
  40237 r8    held + timer -> renewing; verdict done; swap if revision 53
  40239 r8    renewing + answer conflict -> renewing; verdict done; swap if revision 59
  40241 r8    renewing + answer ok -> held; deadline 60239
  40642 r5    held + timer -> renewing; verdict done; swap if revision 51
  40644 r5    renewing + answer conflict -> renewing; verdict done; swap if revision 60
  40645 r4    held + timer -> renewing; verdict done; swap if revision 52
  40646 r5    renewing + answer ok -> held; deadline 60644
  40647 r4    renewing + answer conflict -> renewing; verdict done; swap if revision 61
  40649 r4    renewing + answer ok -> held; deadline 60647
  40860 r7    held + timer -> renewing; verdict done; swap if revision 55
  40862 r7    renewing + answer conflict -> renewing; verdict done; swap if revision 62
  40864 r7    renewing + answer ok -> held; deadline 60862
  48941 r1    held + timer -> renewing; verdict done; swap if revision 56
  48943 r1    renewing + answer conflict -> renewing; verdict done; swap if revision 63
  48945 r1    renewing + answer ok -> held; deadline 68943
  49172 r3    held + timer -> renewing; verdict done; swap if revision 59
  49174 r3    renewing + answer conflict -> renewing; verdict done; swap if revision 64
  49176 r3    renewing + answer ok -> held; deadline 69174
  49563 r2    held + timer -> renewing; verdict done; swap if revision 58
  49565 r2    renewing + answer conflict -> renewing; verdict done; swap if revision 65
  49567 r2    renewing + answer ok -> held; deadline 69565
  49734 r8    held + timer -> renewing; verdict done; swap if revision 60
  49736 r8    renewing + answer conflict -> renewing; verdict done; swap if revision 66
  49738 r8    renewing + answer ok -> held; deadline 69736
  49799 r6    held + timer -> renewing; verdict done; swap if revision 57
  49801 r6    renewing + answer conflict -> renewing; verdict done; swap if revision 67
  49803 r6    renewing + answer ok -> held; deadline 69801
  50338 r7    held + timer -> renewing; verdict done; swap if revision 63
  50340 r7    renewing + answer conflict -> renewing; verdict done; swap if revision 68
  50342 r7    renewing + answer ok -> held; deadline 70340
  50433 r5    held + timer -> renewing; verdict done; swap if revision 61
  50435 r5    renewing + answer conflict -> renewing; verdict done; swap if revision 69
  50437 r4    held + timer -> renewing; verdict done; swap if revision 62
  50437 r5    renewing + answer ok -> held; deadline 70435
  50439 r4    renewing + answer conflict -> renewing; verdict done; swap if revision 70
  50441 r4    renewing + answer ok -> held; deadline 70439
  58500 r1    held + timer -> renewing; verdict done; swap if revision 64
  58502 r1    renewing + answer conflict -> renewing; verdict done; swap if revision 71
  58504 r1    renewing + answer ok -> held; deadline 78502
  58773 r2    held + timer -> renewing; verdict done; swap if revision 66
  58775 r2    renewing + answer conflict -> renewing; verdict done; swap if revision 72
  58777 r2    renewing + answer ok -> held; deadline 78775
  59021 r3    held + timer -> renewing; verdict done; swap if revision 65
  59023 r3    renewing + answer conflict -> renewing; verdict done; swap if revision 73
  59025 r3    renewing + answer ok -> held; deadline 79023
  59359 r7    held + timer -> renewing; verdict done; swap if revision 69
  59361 r7    renewing + answer conflict -> renewing; verdict done; swap if revision 74
  59363 r7    renewing + answer ok -> held; deadline 79361
  59483 r6    held + timer -> renewing; verdict done; swap if revision 68
  59485 r6    renewing + answer conflict -> renewing; verdict done; swap if revision 75
  59487 r6    renewing + answer ok -> held; deadline 79485
  59529 r8    held + timer -> renewing; verdict done; swap if revision 67
  59531 r8    renewing + answer conflict -> renewing; verdict done; swap if revision 76
  59533 r8    renewing + answer ok -> held; deadline 79531
  59870 r5    held + timer -> renewing; verdict done; swap if revision 70
  59872 r5    renewing + answer conflict -> renewing; verdict done; swap if revision 77
  59874 r5    renewing + answer ok -> held; deadline 79872
  60066 r4    held + timer -> renewing; verdict done; swap if revision 71
  60068 r4    renewing + answer conflict -> renewing; verdict done; swap if revision 78
  60070 r4    renewing + answer ok -> held; deadline 80068
