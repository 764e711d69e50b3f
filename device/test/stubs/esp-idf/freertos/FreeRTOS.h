#pragma once
#include <stdint.h>
typedef struct { uint32_t owner, count; } portMUX_TYPE;
typedef int BaseType_t;
#define portMUX_INITIALIZER_UNLOCKED { 0xb33fffff, 0 }
#define pdTRUE 1
void portENTER_CRITICAL_SAFE(portMUX_TYPE *mux);
void portEXIT_CRITICAL_SAFE(portMUX_TYPE *mux);
BaseType_t xPortInIsrContext(void);
