#pragma once
#include <stdint.h>
typedef uint64_t clock_t_nuttx;
#define TICK2USEC(tick) ((tick) * 10000)
clock_t_nuttx clock_systime_ticks(void);
