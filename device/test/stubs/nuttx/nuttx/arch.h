#pragma once
#include <stdbool.h>
bool up_interrupt_context(void);
