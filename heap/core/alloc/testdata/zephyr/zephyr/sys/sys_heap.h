/* What lib/heap/heap.c of Zephyr needs to be compiled alone. */
#ifndef SYS_HEAP_H
#define SYS_HEAP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONFIG_SYS_HEAP_ALLOC_LOOPS 3
#define Z_SYS_HEAP_ENABLED_1 ,
#define Z_SYS_HEAP_SECOND(a, b, ...) b
#define Z_SYS_HEAP_ENABLED(x) Z_SYS_HEAP_ENABLED2(x)
#define Z_SYS_HEAP_ENABLED2(x) Z_SYS_HEAP_ENABLED3(Z_SYS_HEAP_ENABLED_##x 1, 0, 0)
#define Z_SYS_HEAP_ENABLED3(...) Z_SYS_HEAP_SECOND(__VA_ARGS__)
#define IS_ENABLED(x) Z_SYS_HEAP_ENABLED(x)
#define IF_ENABLED(x, code)
#define ARG_UNUSED(x) (void)(x)
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define __ASSERT(x, ...) do { if (!(x)) __builtin_trap(); } while (0)
#define BIT(n) (1UL << (n))
#define BIT_MASK(n) (BIT(n) - 1UL)
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define min(a, b) MIN(a, b)
#define ROUND_UP(x, n) ((((uintptr_t)(x)) + (n) - 1) / (n) * (n))
#define ROUND_DOWN(x, n) (((uintptr_t)(x)) / (n) * (n))

struct z_heap;
struct sys_heap { struct z_heap *heap; void *init_mem; size_t init_bytes; };
void sys_heap_init(struct sys_heap *, void *, size_t);
void *sys_heap_alloc(struct sys_heap *, size_t);
void sys_heap_free(struct sys_heap *, void *);
#endif
