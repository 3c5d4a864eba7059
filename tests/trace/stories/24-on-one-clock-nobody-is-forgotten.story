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
    106 r1    waiting + answer ok -> held; verdict granted; told held, token 11264; deadline 20103, kill 25103
    106 r2    waiting + answer ok -> held; verdict granted; told held, token 11328; deadline 20103, kill 25103
    106 r3    waiting + answer ok -> held; verdict granted; told held, token 11392; deadline 20103, kill 25103
    106 r4    waiting + answer ok -> held; verdict granted; told held, token 11456; deadline 20103, kill 25103
    106 r5    waiting + answer ok -> held; verdict granted; told held, token 11520; deadline 20103, kill 25103
    106 r6    waiting + answer ok -> held; verdict granted; told held, token 11584; deadline 20103, kill 25103
    106 r7    waiting + answer ok -> held; verdict granted; told held, token 11648; deadline 20103, kill 25103
    106 r8    waiting + answer ok -> held; verdict granted; told held, token 11712; deadline 20103, kill 25103
    106 r9    waiting + answer ok -> asking; verdict granted; swap if revision 11
    108 r9    asking + answer ok -> held; told held, token 12288; deadline 20106, kill 25106
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
   2000 ann   idle + start -> asking; verdict granted; swap if absent
   2002 ann   asking + answer ok -> held; told held, token 22528; deadline 22000, kill 27000
   2005       * r1 asks db shared
   2005 r1    idle + start -> asking; verdict granted; swap if absent
   2007 r1    asking + answer conflict -> asking; verdict waiting; swap if revision 22
   2009 r1    asking + answer ok -> waiting; told waiting
   2010       * r2 asks db shared
   2010 r2    idle + start -> asking; verdict granted; swap if absent
   2012 r2    asking + answer conflict -> asking; verdict waiting; swap if revision 23
   2014 r2    asking + answer ok -> waiting; told waiting
   2015       * r3 asks db shared
   2015 r3    idle + start -> asking; verdict granted; swap if absent
   2017 r3    asking + answer conflict -> asking; verdict waiting; swap if revision 24
   2019 r3    asking + answer ok -> waiting; told waiting
   2020       * r4 asks db shared
   2020 r4    idle + start -> asking; verdict granted; swap if absent
   2022 r4    asking + answer conflict -> asking; verdict waiting; swap if revision 25
   2024 r4    asking + answer ok -> waiting; told waiting
   2025       * r5 asks db shared
   2025 r5    idle + start -> asking; verdict granted; swap if absent
   2027 r5    asking + answer conflict -> asking; verdict waiting; swap if revision 26
   2029 r5    asking + answer ok -> waiting; told waiting
   2030       * r6 asks db shared
   2030 r6    idle + start -> asking; verdict granted; swap if absent
   2032 r6    asking + answer conflict -> asking; verdict waiting; swap if revision 27
   2034 r6    asking + answer ok -> waiting; told waiting
   2035       * r7 asks db shared
   2035 r7    idle + start -> asking; verdict granted; swap if absent
   2037 r7    asking + answer conflict -> asking; verdict waiting; swap if revision 28
   2039 r7    asking + answer ok -> waiting; told waiting
   2040       * r8 asks db shared
   2040 r8    idle + start -> asking; verdict granted; swap if absent
   2042 r8    asking + answer conflict -> asking; verdict waiting; swap if revision 29
   2044 r8    asking + answer ok -> waiting; told waiting
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
   2106 r1    waiting + answer ok -> held; verdict granted; told held, token 31744; deadline 22103, kill 27103
   2106 r2    waiting + answer ok -> held; verdict granted; told held, token 31808; deadline 22103, kill 27103
   2106 r3    waiting + answer ok -> held; verdict granted; told held, token 31872; deadline 22103, kill 27103
   2106 r4    waiting + answer ok -> held; verdict granted; told held, token 31936; deadline 22103, kill 27103
   2106 r5    waiting + answer ok -> held; verdict granted; told held, token 32000; deadline 22103, kill 27103
   2106 r6    waiting + answer ok -> held; verdict granted; told held, token 32064; deadline 22103, kill 27103
   2106 r7    waiting + answer ok -> held; verdict granted; told held, token 32128; deadline 22103, kill 27103
   2106 r8    waiting + answer ok -> held; verdict granted; told held, token 32192; deadline 22103, kill 27103
  11198 r1    held + timer -> renewing; verdict done; swap if revision 31
  11200 r1    renewing + answer ok -> held; deadline 31198
  11443 r3    held + timer -> renewing; verdict done; swap if revision 31
  11445 r3    renewing + answer conflict -> renewing; verdict done; swap if revision 32
  11447 r3    renewing + answer ok -> held; deadline 31445
  11450 r7    held + timer -> renewing; verdict done; swap if revision 31
  11452 r7    renewing + answer conflict -> renewing; verdict done; swap if revision 33
  11454 r7    renewing + answer ok -> held; deadline 31452
  11495 r6    held + timer -> renewing; verdict done; swap if revision 31
  11497 r6    renewing + answer conflict -> renewing; verdict done; swap if revision 34
  11499 r6    renewing + answer ok -> held; deadline 31497
  11645 r8    held + timer -> renewing; verdict done; swap if revision 31
  11647 r8    renewing + answer conflict -> renewing; verdict done; swap if revision 35
  11649 r8    renewing + answer ok -> held; deadline 31647
  11651 r4    held + timer -> renewing; verdict done; swap if revision 31
  11653 r4    renewing + answer conflict -> renewing; verdict done; swap if revision 36
  11655 r4    renewing + answer ok -> held; deadline 31653
  11862 r2    held + timer -> renewing; verdict done; swap if revision 31
  11864 r2    renewing + answer conflict -> renewing; verdict done; swap if revision 37
  11866 r2    renewing + answer ok -> held; deadline 31864
  11892 r5    held + timer -> renewing; verdict done; swap if revision 31
  11894 r5    renewing + answer conflict -> renewing; verdict done; swap if revision 38
  11896 r5    renewing + answer ok -> held; deadline 31894
  20581 r1    held + timer -> renewing; verdict done; swap if revision 32
  20583 r1    renewing + answer conflict -> renewing; verdict done; swap if revision 39
  20585 r1    renewing + answer ok -> held; deadline 40583
  21055 r4    held + timer -> renewing; verdict done; swap if revision 37
  21057 r4    renewing + answer conflict -> renewing; verdict done; swap if revision 40
  21059 r4    renewing + answer ok -> held; deadline 41057
  21093 r7    held + timer -> renewing; verdict done; swap if revision 34
  21095 r7    renewing + answer conflict -> renewing; verdict done; swap if revision 41
  21097 r7    renewing + answer ok -> held; deadline 41095
  21136 r3    held + timer -> renewing; verdict done; swap if revision 33
  21138 r3    renewing + answer conflict -> renewing; verdict done; swap if revision 42
  21140 r3    renewing + answer ok -> held; deadline 41138
  21181 r8    held + timer -> renewing; verdict done; swap if revision 36
  21183 r8    renewing + answer conflict -> renewing; verdict done; swap if revision 43
  21185 r8    renewing + answer ok -> held; deadline 41183
  21317 r2    held + timer -> renewing; verdict done; swap if revision 38
  21319 r2    renewing + answer conflict -> renewing; verdict done; swap if revision 44
  21321 r2    renewing + answer ok -> held; deadline 41319
  21325 r6    held + timer -> renewing; verdict done; swap if revision 35
  21327 r6    renewing + answer conflict -> renewing; verdict done; swap if revision 45
  21329 r6    renewing + answer ok -> held; deadline 41327
  21380 r5    held + timer -> renewing; verdict done; swap if revision 39
  21382 r5    renewing + answer conflict -> renewing; verdict done; swap if revision 46
  21384 r5    renewing + answer ok -> held; deadline 41382
  29863 r1    held + timer -> renewing; verdict done; swap if revision 40
  29865 r1    renewing + answer conflict -> renewing; verdict done; swap if revision 47
  29867 r1    renewing + answer ok -> held; deadline 49865
  30516 r6    held + timer -> renewing; verdict done; swap if revision 46
  30518 r6    renewing + answer conflict -> renewing; verdict done; swap if revision 48
  30520 r6    renewing + answer ok -> held; deadline 50518
  30542 r2    held + timer -> renewing; verdict done; swap if revision 45
  30544 r2    renewing + answer conflict -> renewing; verdict done; swap if revision 49
  30546 r2    renewing + answer ok -> held; deadline 50544
  30701 r5    held + timer -> renewing; verdict done; swap if revision 47
  30703 r5    renewing + answer conflict -> renewing; verdict done; swap if revision 50
  30705 r5    renewing + answer ok -> held; deadline 50703
  30905 r4    held + timer -> renewing; verdict done; swap if revision 41
  30907 r4    renewing + answer conflict -> renewing; verdict done; swap if revision 51
  30909 r4    renewing + answer ok -> held; deadline 50907
  30922 r8    held + timer -> renewing; verdict done; swap if revision 44
  30924 r8    renewing + answer conflict -> renewing; verdict done; swap if revision 52
  30926 r8    renewing + answer ok -> held; deadline 50924
  31071 r3    held + timer -> renewing; verdict done; swap if revision 43
  31073 r3    renewing + answer conflict -> renewing; verdict done; swap if revision 53
  31075 r3    renewing + answer ok -> held; deadline 51073
  31079 r7    held + timer -> renewing; verdict done; swap if revision 42
  31081 r7    renewing + answer conflict -> renewing; verdict done; swap if revision 54
  31083 r7    renewing + answer ok -> held; deadline 51081
  39165 r1    held + timer -> renewing; verdict done; swap if revision 48
  39167 r1    renewing + answer conflict -> renewing; verdict done; swap if revision 55
  39169 r1    renewing + answer ok -> held; deadline 59167
  39847 r6    held + timer -> renewing; verdict done; swap if revision 49
  39849 r6    renewing + answer conflict -> renewing; verdict done; swap if revision 56
  39851 r6    renewing + answer ok -> held; deadline 59849
  39917 r2    held + timer -> renewing; verdict done; swap if revision 50
  39919 r2    renewing + answer conflict -> renewing; verdict done; swap if revision 57
  39921 r2    renewing + answer ok -> held; deadline 59919
  40166 r3    held + timer -> renewing; verdict done; swap if revision 54
  40168 r3    renewing + answer conflict -> renewing; verdict done; swap if revision 58
  40170 r3    renewing + answer ok -> held; deadline 60168
  40238 r8    held + timer -> renewing; verdict done; swap if revision 53
  40240 r8    renewing + answer conflict -> renewing; verdict done; swap if revision 59
  40242 r8    renewing + answer ok -> held; deadline 60240
  40643 r5    held + timer -> renewing; verdict done; swap if revision 51
  40645 r5    renewing + answer conflict -> renewing; verdict done; swap if revision 60
  40646 r4    held + timer -> renewing; verdict done; swap if revision 52
  40647 r5    renewing + answer ok -> held; deadline 60645
  40648 r4    renewing + answer conflict -> renewing; verdict done; swap if revision 61
  40650 r4    renewing + answer ok -> held; deadline 60648
  40861 r7    held + timer -> renewing; verdict done; swap if revision 55
  40863 r7    renewing + answer conflict -> renewing; verdict done; swap if revision 62
  40865 r7    renewing + answer ok -> held; deadline 60863
  48942 r1    held + timer -> renewing; verdict done; swap if revision 56
  48944 r1    renewing + answer conflict -> renewing; verdict done; swap if revision 63
  48946 r1    renewing + answer ok -> held; deadline 68944
  49173 r3    held + timer -> renewing; verdict done; swap if revision 59
  49175 r3    renewing + answer conflict -> renewing; verdict done; swap if revision 64
  49177 r3    renewing + answer ok -> held; deadline 69175
  49564 r2    held + timer -> renewing; verdict done; swap if revision 58
  49566 r2    renewing + answer conflict -> renewing; verdict done; swap if revision 65
  49568 r2    renewing + answer ok -> held; deadline 69566
  49735 r8    held + timer -> renewing; verdict done; swap if revision 60
  49737 r8    renewing + answer conflict -> renewing; verdict done; swap if revision 66
  49739 r8    renewing + answer ok -> held; deadline 69737
  49800 r6    held + timer -> renewing; verdict done; swap if revision 57
  49802 r6    renewing + answer conflict -> renewing; verdict done; swap if revision 67
  49804 r6    renewing + answer ok -> held; deadline 69802
  50339 r7    held + timer -> renewing; verdict done; swap if revision 63
  50341 r7    renewing + answer conflict -> renewing; verdict done; swap if revision 68
  50343 r7    renewing + answer ok -> held; deadline 70341
  50434 r5    held + timer -> renewing; verdict done; swap if revision 61
  50436 r5    renewing + answer conflict -> renewing; verdict done; swap if revision 69
  50438 r4    held + timer -> renewing; verdict done; swap if revision 62
  50438 r5    renewing + answer ok -> held; deadline 70436
  50440 r4    renewing + answer conflict -> renewing; verdict done; swap if revision 70
  50442 r4    renewing + answer ok -> held; deadline 70440
  58501 r1    held + timer -> renewing; verdict done; swap if revision 64
  58503 r1    renewing + answer conflict -> renewing; verdict done; swap if revision 71
  58505 r1    renewing + answer ok -> held; deadline 78503
  58774 r2    held + timer -> renewing; verdict done; swap if revision 66
  58776 r2    renewing + answer conflict -> renewing; verdict done; swap if revision 72
  58778 r2    renewing + answer ok -> held; deadline 78776
  59022 r3    held + timer -> renewing; verdict done; swap if revision 65
  59024 r3    renewing + answer conflict -> renewing; verdict done; swap if revision 73
  59026 r3    renewing + answer ok -> held; deadline 79024
  59360 r7    held + timer -> renewing; verdict done; swap if revision 69
  59362 r7    renewing + answer conflict -> renewing; verdict done; swap if revision 74
  59364 r7    renewing + answer ok -> held; deadline 79362
  59484 r6    held + timer -> renewing; verdict done; swap if revision 68
  59486 r6    renewing + answer conflict -> renewing; verdict done; swap if revision 75
  59488 r6    renewing + answer ok -> held; deadline 79486
  59530 r8    held + timer -> renewing; verdict done; swap if revision 67
  59532 r8    renewing + answer conflict -> renewing; verdict done; swap if revision 76
  59534 r8    renewing + answer ok -> held; deadline 79532
  59871 r5    held + timer -> renewing; verdict done; swap if revision 70
  59873 r5    renewing + answer conflict -> renewing; verdict done; swap if revision 77
  59875 r5    renewing + answer ok -> held; deadline 79873
  60067 r4    held + timer -> renewing; verdict done; swap if revision 71
  60069 r4    renewing + answer conflict -> renewing; verdict done; swap if revision 78
  60071 r4    renewing + answer ok -> held; deadline 80069
