/*
 * capture_functions.c: room for the table of functions that tools/functable
 * -patch writes into the linked program. Until then it is empty.
 */
#include "lwsbt.h"

#ifndef LWSBT_FUNCTIONS_MAX
#define LWSBT_FUNCTIONS_MAX 1024
#endif

/* Known to the tool by their names. */
extern const uint32_t lwsbt_function_starts[LWSBT_FUNCTIONS_MAX];
extern const struct lwsbt_functions lwsbt_functions;

const uint32_t lwsbt_function_starts[LWSBT_FUNCTIONS_MAX] = {0};
const struct lwsbt_functions lwsbt_functions = {lwsbt_function_starts, 0, 0, 0};

const struct lwsbt_functions *lwsbt_function_table(void)
{
	/* A volatile pointer: a compiler that sees the whole program (-flto) must not
	 * take the table for empty, which it is before it is patched. */
	const struct lwsbt_functions *volatile table = &lwsbt_functions;
	const struct lwsbt_functions *t = table;

	return t->count != 0 ? t : NULL;
}
