/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 matches the standard's examples, at every length around a block's end. */
#include "base/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void check(const char *bytes, size_t length, const char *expected)
{
    char hex[SHA256_HEX + 1];
    sha256_hex(bytes, length, hex);
    assert_string_equal(hex, expected);
}

static void the_standards_examples(void **state)
{
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    static char million[1000000];
    (void)state;
    check("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check(two_blocks, sizeof two_blocks - 1,
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    memset(million, 'a', sizeof million);
    check(million, sizeof million,
          "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Of that many letters "a", as sha256sum(1) prints it. */
static void lengths_around_a_block(void **state)
{
    static const struct {
        size_t length;
        const char *expected;
    } cases[] = {
        {55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
        {56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
        {63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"},
        {64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
        {65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0"},
    };
    char bytes[65];
    (void)state;
    memset(bytes, 'a', sizeof bytes);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check(bytes, cases[i].length, cases[i].expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_standards_examples),
        cmocka_unit_test(lengths_around_a_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
