/* A heap of Zephyr's lib/heap, for model.c. */
#include <zephyr/sys/sys_heap.h>

#ifndef BYTES
#define BYTES 40003
#endif
static char memory[BYTES];
static struct sys_heap heap;

void *system_alloc(size_t n) { return sys_heap_alloc(&heap, n); }
void system_free(void *p) { sys_heap_free(&heap, p); }
void setup(void) { sys_heap_init(&heap, memory, sizeof memory); }
