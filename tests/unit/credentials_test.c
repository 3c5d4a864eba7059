/* SPDX-License-Identifier: Apache-2.0 */
/* The file of --tokens: what it grants, what is refused, and who may have written it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/sha256.h"
#include "face/daemon/credentials.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "tokens"
/* Of "alpha" and "beta". */
#define ALPHA "sha256:8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8"
#define BETA  "sha256:f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753"
#define EMPTY "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static char reason[512];

static struct credentials *parse_bytes(const char *bytes, size_t length)
{
    struct text why;
    text_init(&why, reason, sizeof reason);
    /* A copy of its own: reading beyond its end is found. */
    char *copy = malloc(length > 0 ? length : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, length);
    struct credentials *credentials = credentials_parse(NAME, copy, length, &why);
    free(copy);
    return credentials;
}

static struct credentials *parse(const char *text)
{
    struct credentials *credentials = parse_bytes(text, strlen(text));
    if (credentials == NULL)
        fail_msg("refused: %s", reason);
    return credentials;
}

static bool allows(const struct login *login, enum may_verb verb, const char *key)
{
    assert_non_null(login);
    return may(&login->identity, verb, key);
}

/* ---- good files ---- */

static void a_secret_is_known_by_its_digest(void **state)
{
    struct credentials *all = parse("ann " ALPHA " read,take a:\nbob\t" BETA "  all\t*\n");
    (void)state;
    const struct login *ann = credentials_by_secret(all, NULL, "alpha");
    assert_string_equal(ann->identity.name, "ann");
    assert_string_equal(ann->id, ALPHA);
    assert_ptr_equal(credentials_by_secret(all, "ann", "alpha"), ann);
    assert_null(credentials_by_secret(all, "bob", "alpha"));
    assert_null(credentials_by_secret(all, "nobody", "alpha"));
    assert_null(credentials_by_secret(all, "", "alpha"));
    assert_null(credentials_by_secret(all, NULL, "alph"));
    assert_null(credentials_by_secret(all, NULL, "alpha "));
    assert_null(credentials_by_secret(all, NULL, ""));
    /* The digest itself opens nothing. */
    assert_null(credentials_by_secret(all, "ann", ALPHA));
    assert_null(credentials_by_secret(all, "ann", ALPHA + strlen("sha256:")));
    assert_true(allows(ann, MAY_READ, "a:x") && allows(ann, MAY_TAKE, "a:"));
    assert_false(allows(ann, MAY_RENEW, "a:x") || allows(ann, MAY_OPERATE, "a:x"));
    assert_false(allows(ann, MAY_READ, "a") || allows(ann, MAY_READ, "b:x"));
    const struct login *bob = credentials_by_secret(all, "bob", "beta");
    for (unsigned bit = MAY_READ; bit <= MAY_OPERATE; bit *= 2)
        assert_true(allows(bob, (enum may_verb)bit, "once:any"));
    assert_int_equal(credentials_count(all), 2);
    credentials_free(&all);
    assert_null(all);
    credentials_free(&all); /* NULL is allowed */
}

static void lines_of_a_secret_add_up(void **state)
{
    struct credentials *all = parse("ann " ALPHA " read *\n"
                                    "ann " ALPHA " take,renew a: once:a:\n"
                                    "ann " ALPHA " operate a:\n"
                                    "ann " BETA " read a:\n"
                                    "ann cert take b:\n");
    (void)state;
    const struct login *first = credentials_by_secret(all, "ann", "alpha");
    const struct login *second = credentials_by_secret(all, "ann", "beta");
    const struct login *third = credentials_by_certificate(all, "ann");
    assert_true(allows(first, MAY_READ, "z") && allows(first, MAY_RENEW, "once:a:1"));
    assert_true(allows(first, MAY_OPERATE, "a:1"));
    assert_false(allows(first, MAY_OPERATE, "once:a:1") || allows(first, MAY_TAKE, "b:1"));
    assert_int_equal(first->identity.right_count, 3); /* equal prefixes share a right */
    assert_true(allows(second, MAY_READ, "a:1"));
    assert_false(allows(second, MAY_READ, "b") || allows(second, MAY_TAKE, "a:1"));
    assert_true(allows(third, MAY_TAKE, "b:1"));
    assert_false(allows(third, MAY_TAKE, "a:1"));
    assert_int_equal(credentials_count(all), 3);
    credentials_free(&all);
}

static void peers_and_certificates_have_logins(void **state)
{
    struct credentials *all = parse("deploy uid:1000 take deploy/\n"
                                    "root-peer uid:0 read *\n"
                                    "last uid:4294967294 read x\n"
                                    "host-1.example cert all host-1/\n");
    (void)state;
    assert_string_equal(credentials_by_uid(all, 1000)->name, "deploy");
    assert_string_equal(credentials_by_uid(all, 0)->name, "root-peer");
    assert_string_equal(credentials_by_uid(all, 4294967294U)->name, "last");
    assert_null(credentials_by_uid(all, 1001));
    assert_null(credentials_by_uid(all, (unsigned)-1)); /* a peer without credentials */
    assert_string_equal(credentials_by_certificate(all, "host-1.example")->name, "host-1.example");
    assert_null(credentials_by_certificate(all, "host-1.exampl"));
    assert_null(credentials_by_certificate(all, "HOST-1.example"));
    assert_null(credentials_by_certificate(all, "deploy"));
    assert_null(credentials_by_certificate(all, ""));
    char longer[300];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_null(credentials_by_certificate(all, longer));
    /* Neither is a secret that somebody could send. */
    assert_null(credentials_by_secret(all, NULL, "uid:1000"));
    assert_null(credentials_by_secret(all, "deploy", ""));
    credentials_free(&all);
}

static void comments_and_spelling(void **state)
{
    char upper[] = ALPHA;
    char text[1024];
    (void)state;
    for (size_t i = strlen("sha256:"); upper[i] != '\0'; i++)
        upper[i] = (char)(upper[i] >= 'a' ? upper[i] - 'a' + 'A' : upper[i]);
    (void)snprintf(text, sizeof text,
                   "# a comment: sha256:x\r\n\r\n \t\n   # another\n"
                   "  A.b_c-9 %s renew,renew,read x%%20y %%2Aall%%25 %%c3%%A9 %%23 a#b watermark:",
                   upper); /* and no line end */
    struct credentials *all = parse(text);
    const struct login *login = credentials_by_secret(all, "A.b_c-9", "alpha");
    assert_true(allows(login, MAY_RENEW, "x y/1") && allows(login, MAY_READ, "*all%"));
    assert_true(allows(login, MAY_READ, "é1") && allows(login, MAY_READ, "#7"));
    assert_true(allows(login, MAY_READ, "a#b") && allows(login, MAY_READ, "watermark:w"));
    assert_false(allows(login, MAY_READ, "x%20y") || allows(login, MAY_READ, "x"));
    assert_false(allows(login, MAY_READ, "all%") || allows(login, MAY_READ, ""));
    credentials_free(&all);
}

static void a_login_is_found_again(void **state)
{
    struct credentials *before = parse("ann " ALPHA " read a:\nbob " BETA " read b:\n"
                                       "eve uid:7 read e:\nzoe cert read z:\n");
    struct credentials *after = parse("ann " ALPHA " take c:\neve " BETA " read b:\n"
                                      "mal uid:7 read e:\nzoe cert all z:\n");
    (void)state;
    const struct login *ann =
        credentials_find_again(after, credentials_by_secret(before, NULL, "alpha"));
    assert_true(allows(ann, MAY_TAKE, "c:") && !allows(ann, MAY_READ, "a:"));
    assert_ptr_equal(ann, credentials_by_secret(after, NULL, "alpha"));
    assert_null(credentials_find_again(after, credentials_by_secret(before, NULL, "beta")));
    assert_null(credentials_find_again(after, credentials_by_uid(before, 7)));
    assert_true(allows(credentials_find_again(after, credentials_by_certificate(before, "zoe")),
                       MAY_TAKE, "z:"));
    credentials_free(&before);
    credentials_free(&after);
}

/* ---- bad files ---- */

#define GOOD  "ann " ALPHA " read a:\n"
#define LINE  "expected NAME SECRET VERBS PREFIX..."
#define NAMES "the name must have 1 to 64 letters"
#define KINDS "the secret must be sha256: and 64 hex digits, uid: and a user id, or cert"
#define VERBS "the verbs must be all, or some of read, take, renew and operate"
#define PRE   "a prefix must be * for all keys"
#define FIFTY "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee"

static const struct {
    const char *text, *where, *what;
} bad[] = {
    {"", ":", " it contains no credential"},
    {"# only a comment\n\n", ":", " it contains no credential"},
    {"ann\n", ":1: ", LINE},
    {GOOD "ann " ALPHA "\n", ":2: ", LINE},
    {GOOD "\n# c\nann " ALPHA " read\n", ":4: ", LINE},
    {"ann " ALPHA " read  \t \n", ":1: ", LINE},
    {ALPHA " read a:\n", ":1: ", LINE},
    {"ann:x " ALPHA " read a:", ":1: ", NAMES},
    {"\xc3\xa9va " ALPHA " read a:", ":1: ", NAMES},
    {"\xef\xbb\xbf"
     "ann " ALPHA " read a:",
     ":1: ", NAMES},
    {FIFTY "fffffffffffffff " ALPHA " read a:", ":1: ", NAMES},
    {"a/b " ALPHA " read a:", ":1: ", NAMES},
    {"default " ALPHA " read a:", ":1: ", "the name default is reserved"},
    {"ann alpha read a:", ":1: ", KINDS},
    {"ann sha256: read a:", ":1: ", KINDS},
    {"ann sha256:8ed3 read a:", ":1: ", KINDS},
    {"ann " ALPHA "0 read a:", ":1: ", KINDS},
    {"ann sha256:" FIFTY "gggggggggggggg read a:", ":1: ", KINDS},
    {"ann SHA256:8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8 read a:", ":1: ",
     KINDS},
    {"ann sha512:8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8 read a:", ":1: ",
     KINDS},
    {"ann " EMPTY " read a:", ":1: ", "this is the digest of an empty secret"},
    {"ann uid: read a:", ":1: ", KINDS},
    {"ann uid:-1 read a:", ":1: ", KINDS},
    {"ann uid:4294967295 read a:", ":1: ", KINDS},
    {"ann uid:9999999999 read a:", ":1: ", KINDS},
    {"ann uid:99999999999 read a:", ":1: ", KINDS},
    {"ann uid:007 read a:", ":1: ", KINDS},
    {"ann uid:1000x read a:", ":1: ", KINDS},
    {"ann cert:ann read a:", ":1: ", KINDS},
    {"ann certificate read a:", ":1: ", KINDS},
    {"ann " ALPHA " write a:", ":1: ", VERBS},
    {"ann " ALPHA " Read a:", ":1: ", VERBS},
    {"ann " ALPHA " read, take a:", ":1: ", VERBS},
    {"ann " ALPHA " read,,take a:", ":1: ", VERBS},
    {"ann " ALPHA " ,read a:", ":1: ", VERBS},
    {"ann " ALPHA " * a:", ":1: ", VERBS},
    {"ann " ALPHA " reader a:", ":1: ", VERBS},
    {"ann " ALPHA " read a:*", ":1: ", PRE},
    {"ann " ALPHA " read a: **", ":1: ", PRE},
    {"ann " ALPHA " read a%2", ":1: ", PRE},
    {"ann " ALPHA " read a%", ":1: ", PRE},
    {"ann " ALPHA " read a%zz", ":1: ", PRE},
    {"ann " ALPHA " read a%00b", ":1: ", PRE},
    {"ann " ALPHA " read a%0a", ":1: ", PRE},
    {"ann " ALPHA " read a%7F", ":1: ", PRE},
    {"ann " ALPHA " read a: # for ann", ":1: ", PRE},
    {"ann " ALPHA " read a:\nbob " ALPHA " read b:", ":2: ", "another name above has the same"},
    {"ann uid:5 read a:\n\nbob uid:5 read b:", ":3: ", "another name above has the same"},
    {GOOD "ann\x01 " ALPHA " read a:", ":2: ", "the line contains a control character"},
    {"ann " ALPHA " read \x7f", ":1: ", "the line contains a control character"},
    {"ann " ALPHA " read a:\rbob " BETA " read b:", ":1: ", "the line contains a control"},
};

static void refuses(const char *bytes, size_t length, const char *where, const char *what)
{
    struct credentials *credentials = parse_bytes(bytes, length);
    char expected[256];
    (void)snprintf(expected, sizeof expected, NAME "%s%s", where, what);
    if (credentials != NULL)
        fail_msg("accepted: %.*s", (int)length, bytes);
    if (strncmp(reason, expected, strlen(expected)) != 0)
        fail_msg("'%.*s': '%s' does not begin with '%s'", (int)length, bytes, reason, expected);
}

static void refuses_text(const char *text, const char *where, const char *what)
{
    refuses(text, strlen(text), where, what);
}

static void wrong_lines_are_named_and_not_shown(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        refuses_text(bad[i].text, bad[i].where, bad[i].what);
    /* A secret in place of its digest. */
    refuses_text("ann hunter2-is-secret read a:", ":1: ", KINDS);
    assert_null(strstr(reason, "hunter2"));
    refuses_text("hunter2$ " ALPHA " read a:", ":1: ", NAMES);
    assert_null(strstr(reason, "hunter2"));
    refuses_text("ann " ALPHA " hunter2 a:", ":1: ", VERBS);
    assert_null(strstr(reason, "hunter2"));
    refuses_text("ann " ALPHA " read hunter2*", ":1: ", PRE);
    assert_null(strstr(reason, "hunter2"));
    refuses("ann\0" ALPHA " read a:", 83, ":1: ", "the line contains a control character");
}

static void sizes_are_limited(void **state)
{
    static char text[CREDENTIALS_LINES_MAX * 64 * 2];
    struct text out;
    (void)state;
    text_init(&out, text, sizeof text); /* the longest line */
    text_add(&out, "ann " ALPHA " read ");
    while (out.length < CREDENTIALS_LINE_MAX)
        text_add(&out, out.length % 300 == 0 ? " " : "k");
    struct credentials *all = parse(text);
    credentials_free(&all);
    text_add(&out, "k");
    refuses(text, out.length, ":1: ", "the line is longer than 1024 bytes");

    text_init(&out, text, sizeof text); /* the longest prefix is the longest key */
    text_add(&out, "ann " ALPHA " read ");
    for (int i = 0; i < 512; i++)
        text_add(&out, "k");
    all = parse(text);
    credentials_free(&all);
    text_add(&out, "k");
    refuses(text, out.length, ":1: ", PRE);

    text_init(&out, text, sizeof text); /* prefixes, over several lines */
    for (int i = 0; i <= CREDENTIALS_PREFIXES_MAX; i++) {
        if (i == CREDENTIALS_PREFIXES_MAX) {
            all = parse(text);
            credentials_free(&all);
        }
        text_add(&out, "ann " ALPHA " read k");
        text_add_u64(&out, (uint64_t)i);
        text_add(&out, " k0\n");
    }
    refuses(text, out.length, ":65: ", "a name with its secret has at most 64 prefixes");

    text_init(&out, text, sizeof text); /* lines; comments do not count */
    for (int i = 0; i < CREDENTIALS_LINES_MAX; i++) {
        text_add(&out, "# comment\nu");
        text_add_u64(&out, (uint64_t)i);
        text_add(&out, " uid:");
        text_add_u64(&out, (uint64_t)i);
        text_add(&out, " read k\n");
    }
    all = parse(text);
    assert_int_equal(credentials_count(all), CREDENTIALS_LINES_MAX);
    assert_string_equal(credentials_by_uid(all, 999)->name, "u999");
    credentials_free(&all);
    text_add(&out, "one uid:2000 read k\n");
    refuses(text, out.length, ":2001: ", "the file has more than 1000 lines");
}

/* ---- the file ---- */

static char folder[64], path[96];

static int begin(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/leasehold-tokens-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    (void)snprintf(path, sizeof path, "%s/tokens", folder);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    (void)unlink(path);
    return rmdir(folder);
}

static void put(const char *text, size_t length, mode_t mode)
{
    (void)unlink(path);
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, length), length);
    assert_int_equal(fchmod(file, mode), 0);
    (void)close(file);
}

/* NULL if it is accepted, otherwise the reason. */
static const char *load(void)
{
    struct text why;
    text_init(&why, reason, sizeof reason);
    struct credentials *credentials = credentials_load(path, &why);
    bool accepted = credentials != NULL;
    if (accepted)
        assert_non_null(credentials_by_secret(credentials, "ann", "alpha"));
    credentials_free(&credentials);
    return accepted ? NULL : reason;
}

static void a_file_that_others_can_read_is_refused(void **state)
{
    static const mode_t wrong[] = {0604, 0602, 0601, 0620, 0610, 0644, 0660, 0666, 0777, 0407};
    (void)state;
    bool root = geteuid() == 0;
    put(GOOD, strlen(GOOD), 0600);
    assert_null(load());
    assert_int_equal(chmod(path, 0400), 0);
    assert_null(load());
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(chmod(path, wrong[i]), 0);
        if (load() == NULL)
            fail_msg("mode %o is accepted", (unsigned)wrong[i]);
        assert_non_null(strstr(reason, path));
        assert_non_null(strstr(reason, "set its mode to 0600"));
    }
    assert_int_equal(chmod(path, 0640), 0); /* only of root */
    assert_true((load() == NULL) == root);
    assert_int_equal(chmod(path, 0600), 0);
    if (root) { /* others cannot give their files away */
        assert_int_equal(chown(path, 12345, 0), 0);
        assert_non_null(strstr(load(), "must belong to the user of the daemon or to root"));
        assert_int_equal(seteuid(12345), 0); /* now its owner: but the folder is private */
        const char *why = load();
        assert_int_equal(seteuid(0), 0);
        assert_non_null(strstr(why, "Permission denied"));
        assert_int_equal(chmod(folder, 0755), 0);
        assert_int_equal(seteuid(12345), 0);
        bool own = load() == NULL;
        assert_int_equal(chmod(path, 0640), 0);
        bool group = load() == NULL;
        assert_int_equal(seteuid(0), 0);
        assert_true(own && !group);
    }
}

static void only_a_regular_file_of_some_size(void **state)
{
    static char large[CREDENTIALS_FILE_MAX + 1];
    (void)state;
    (void)unlink(path);
    assert_non_null(strstr(load(), "cannot read the credentials: No such file"));
    assert_int_equal(mkfifo(path, 0600), 0); /* must not block */
    assert_non_null(strstr(load(), "not a regular file"));
    (void)unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_non_null(strstr(load(), "not a regular file"));
    (void)rmdir(path);
    assert_int_equal(symlink("/dev/null", path), 0);
    assert_non_null(load());
    memset(large, '\n', sizeof large);
    memcpy(large, GOOD, strlen(GOOD));
    put(large, sizeof large - 1, 0600);
    assert_null(load());
    put(large, sizeof large, 0600);
    assert_non_null(strstr(load(), "larger than 1 MiB"));
    put("ann hunter2 read a:\n", 20, 0600);
    assert_non_null(strstr(load(), "/tokens:1: " KINDS));
    assert_null(strstr(reason, "hunter2"));
    put("", 0, 0600);
    assert_non_null(strstr(load(), "/tokens: it contains no credential"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_secret_is_known_by_its_digest),
        cmocka_unit_test(lines_of_a_secret_add_up),
        cmocka_unit_test(peers_and_certificates_have_logins),
        cmocka_unit_test(comments_and_spelling),
        cmocka_unit_test(a_login_is_found_again),
        cmocka_unit_test(wrong_lines_are_named_and_not_shown),
        cmocka_unit_test(sizes_are_limited),
        cmocka_unit_test_setup_teardown(a_file_that_others_can_read_is_refused, begin, finish),
        cmocka_unit_test_setup_teardown(only_a_regular_file_of_some_size, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
