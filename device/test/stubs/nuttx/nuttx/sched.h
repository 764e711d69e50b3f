#pragma once
#include <stddef.h>
struct tcb_s { int pid; size_t adj_stack_size; void *stack_alloc_ptr, *stack_base_ptr; };
struct tcb_s *nxsched_self(void);
