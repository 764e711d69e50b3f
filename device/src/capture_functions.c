/*
 * capture_functions.c: the table of functions, which `btcore functable` writes into the linked program.
 * -DLWSBT_FUNCTIONS_MAX=400 reserves memory for 400 functions, 4 bytes for each. Until the table is
 * written, and without this option, there is none.
 */
#include "lwsbt.h"

#ifdef LWSBT_FUNCTIONS_MAX

/* Known to the command by their names. */
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

#else

const struct lwsbt_functions *lwsbt_function_table(void) { return NULL; }

#endif
