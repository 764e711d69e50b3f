#pragma once
#include <stddef.h>
#include <stdint.h>
struct k_spinlock { int locked; };
typedef struct { int key; } k_spinlock_key_t;
struct k_thread { struct { uintptr_t start; size_t size, delta; } stack_info; };
struct sys_heap { void *heap; };
struct k_heap { struct sys_heap heap; };
typedef struct { int64_t ticks; } k_timeout_t;
#define K_SECONDS(s) ((k_timeout_t){ (s) * 100 })
k_spinlock_key_t k_spin_lock(struct k_spinlock *l);
void k_spin_unlock(struct k_spinlock *l, k_spinlock_key_t key);
int k_is_in_isr(void);
struct k_thread *k_current_get(void);
int64_t k_uptime_ticks(void);
uint64_t k_ticks_to_us_floor64(uint64_t t);
int32_t k_sleep(k_timeout_t timeout);
