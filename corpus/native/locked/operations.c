// Every locked instruction that compilers emit, in all sizes and with several kinds of addresses.
// Each result (memory, register and flags) is compared with that of the same instruction without
// the lock prefix, which is not patched.
#include <assert.h>
#include <pthread.h>
#include <stdint.h>

// The stack below its pointer may be in use, so the flags are pushed further down.
#define TAKE_FLAGS "lea -128(%%rsp), %%rsp; pushfq; popq %[f]; lea 128(%%rsp), %%rsp"
#define ARITHMETIC 0x8d5
#define CARRY 1

static const uint64_t values[] = {0, 1, 2, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0x7fffffff, 0x80000000,
                                  0xffffffff, 0x7fffffffffffffff, 0x8000000000000000, -1, 42};
enum { COUNT = sizeof values / sizeof *values };

static uint64_t memory[8];
// Every so many values are used.
static int stride = 1;

// Executes `text` on memory, a register and the carry flag, with rax as accumulator.
#define EXECUTE(text, word, register, rax, carry)                                                  \
    ({                                                                                             \
        uint64_t flags;                                                                            \
        __asm__ volatile("bt $0, %k[c]; " text "; " TAKE_FLAGS                                     \
                         : [m] "+m"(word), [r] "+r"(register), [f] "=&r"(flags), "+a"(rax)         \
                         : [c] "r"(carry)                                                          \
                         : "cc", "memory");                                                        \
        flags & ARITHMETIC;                                                                        \
    })

#define COMPARE(text, mask)                                                                        \
    for (int x = 0; x < COUNT; x += stride)                                                        \
        for (int y = 0; y < COUNT; y += stride) {                                                  \
            int carry = (x + y) & 1;                                                               \
            uint64_t plain[2] = {values[x], values[x]}, copy = plain[0];                           \
            uint64_t r1 = values[y], r2 = r1, a1 = values[(x + y) % COUNT], a2 = a1;               \
            volatile int nth = (x + y) % 8;                                                        \
            memory[nth] = copy;                                                                    \
            uint64_t f1 = EXECUTE("lock " text, memory[nth], r1, a1, carry);                       \
            uint64_t f2 = EXECUTE(text, copy, r2, a2, carry);                                      \
            assert(memory[nth] == copy && r1 == r2 && a1 == a2);                                   \
            assert(((f1 ^ f2) & (mask)) == 0);                                                     \
            uint64_t f3 = EXECUTE("lock " text, plain[1], r1, a1, carry);                          \
            uint64_t f4 = EXECUTE(text, plain[0], r2, a2, carry);                                  \
            assert(plain[0] == plain[1] && r1 == r2 && a1 == a2);                                  \
            assert(((f3 ^ f4) & (mask)) == 0);                                                     \
        }

#define SIZES(name, second)                                                                        \
    COMPARE(name "b " second("b") "%[m]", ARITHMETIC)                                              \
    COMPARE(name "w " second("w") "%[m]", ARITHMETIC)                                              \
    COMPARE(name "l " second("k") "%[m]", ARITHMETIC)                                              \
    COMPARE(name "q " second("q") "%[m]", ARITHMETIC)

#define WITH_REGISTER(size) "%" size "[r], "
#define NONE(size) ""
#define SMALL(size) "$-3, "
#define BITS(name)                                                                                 \
    COMPARE(name "w $13, %[m]", CARRY)                                                             \
    COMPARE(name "l $31, %[m]", CARRY)                                                             \
    COMPARE(name "q $63, %[m]", CARRY)

static void arithmetic(void) {
    SIZES("add", WITH_REGISTER)
    SIZES("sub", WITH_REGISTER)
    SIZES("and", WITH_REGISTER)
    SIZES("or", WITH_REGISTER)
    SIZES("xor", WITH_REGISTER)
    SIZES("add", SMALL)
    SIZES("sub", SMALL)
    SIZES("and", SMALL)
    SIZES("or", SMALL)
    SIZES("xor", SMALL)
}

static void others(void) {
    SIZES("inc", NONE)
    SIZES("dec", NONE)
    SIZES("not", NONE)
    SIZES("xadd", WITH_REGISTER)
    SIZES("cmpxchg", WITH_REGISTER)
    BITS("bts")
    BITS("btr")
    BITS("btc")
    COMPARE("addl $0x12345678, %[m]", ARITHMETIC)
    COMPARE("xorw $0x1234, %[m]", ARITHMETIC)
}

// An exchange with memory is always locked, so its result is computed.
static void exchanges(void) {
    uint64_t r = 0x1122334455667788, a = 0;
    memory[3] = 0x99aabbccddeeff00;
    EXECUTE("xchgb %b[r], %[m]", memory[3], r, a, 0);
    assert(r == 0x1122334455667700 && memory[3] == 0x99aabbccddeeff88);
    EXECUTE("xchgw %w[r], %[m]", memory[3], r, a, 0);
    assert(r == 0x112233445566ff88 && memory[3] == 0x99aabbccddee7700);
    uint64_t flags = EXECUTE("xchgl %k[r], %[m]", memory[3], r, a, 1);
    assert(r == 0xddee7700 && memory[3] == 0x99aabbcc5566ff88 && flags & CARRY);
    EXECUTE("xchgq %[r], %[m]", memory[3], r, a, 0);
    assert(r == 0x99aabbcc5566ff88 && memory[3] == 0xddee7700);
}

// A register selects a bit of a string: here in the words before and after.
static void bit_strings(void) {
    for (int64_t bit = -128; bit < 128; bit += 7) {
        uint64_t r = bit, a = 0;
        for (int nth = 0; nth < 8; nth++)
            memory[nth] = 0;
        uint64_t f1 = EXECUTE("lock btsq %[r], %[m]", memory[4], r, a, 0);
        uint64_t f2 = EXECUTE("btq %[r], %[m]", memory[4], r, a, 0);
        uint64_t f3 = EXECUTE("lock btrq %[r], %[m]", memory[4], r, a, 0);
        assert(!(f1 & CARRY) && f2 & CARRY && f3 & CARRY);
        for (int nth = 0; nth < 8; nth++)
            assert(memory[nth] == 0);
    }
}

static void wide(void) {
    static struct {
        uint64_t low, high;
    } __attribute__((aligned(16))) pair;
    pair.low = 1;
    pair.high = 2;
    uint64_t low = 1, high = 3;
    char equal;
    for (int nth = 0; nth < 2; nth++) {
        // Fails first, and finds the values with which it succeeds next.
        __asm__ volatile("lock cmpxchg16b %[m]; sete %[e]"
                         : [m] "+m"(pair), "+a"(low), "+d"(high), [e] "=r"(equal)
                         : "b"(5L), "c"(6L)
                         : "cc", "memory");
        assert(equal == nth && low == 1 && high == 2);
    }
    assert(pair.low == 5 && pair.high == 6);
}

static void *check(void *arg) {
    arithmetic();
    others();
    exchanges();
    bit_strings();
    wide();
    return arg;
}

int main(void) {
    // Once while there are no scheduling points.
    check(0);
    stride = 5;
    pthread_t t;
    pthread_create(&t, 0, check, 0);
    pthread_join(t, 0);
}
