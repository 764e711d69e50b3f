/*
 * capture_functions.c: room for the table of functions that tools/functable
 * -patch writes into the linked program. Until then it is empty, and an address
 * found in no function ends a walk: so capture functions are best given it by
 * lwsbt_functions.count ? &lwsbt_functions : NULL.
 */
#include "lwsbt.h"

#ifndef LWSBT_FUNCTIONS_MAX
#define LWSBT_FUNCTIONS_MAX 1024
#endif

extern const uint32_t lwsbt_function_starts[LWSBT_FUNCTIONS_MAX];

const uint32_t lwsbt_function_starts[LWSBT_FUNCTIONS_MAX] = {0};
const struct lwsbt_functions lwsbt_functions = {lwsbt_function_starts, 0, 0, 0};
