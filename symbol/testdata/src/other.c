#include <stdio.h>
#include <stdlib.h>
#include "prog.h"

static int helper(int x)
{
	return clamp(x, -3, 3) * 5;
}

void die(const char *why, int code)
{
	fprintf(stderr, "%s: %d\n", why, code);
	exit(1);
}

int other(int x)
{
	int s = 0;
	for (int i = 0; i < x; i++) {
		switch (i % 5) {
		case 0: s += helper(i); break;
		case 1: s -= helper(-i); break;
		case 2: s ^= clamp(i, 1, 2); break;
		case 3: s *= 3; break;
		default: s += puts(""); break;
		}
	}
	return s;
}
