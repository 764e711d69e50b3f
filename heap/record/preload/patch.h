/*
 * Functions whose entry leads elsewhere.
 */
#ifndef LWSBT_PATCH_H
#define LWSBT_PATCH_H

#include "preload.h"

struct patch {
	void *function, *hook;
	void *original;		/* does what function did */
	uint8_t *entry;		/* of function, which may begin with a jump to it */
	unsigned length;	/* of the instructions that are replaced */
};

/* patch_prepare sets original, and reports whether the function can be patched. */
bool patch_prepare(struct patch *p);
/* patch_apply has the functions call their hooks, and reports whether they do: all or none. */
bool patch_apply(struct patch *list, unsigned n);

#endif
