#ifndef PROG_H
#define PROG_H

static inline int clamp(int v, int low, int high)
{
	if (v < low)
		return low;
	return v > high ? high : v;
}

void die(const char *why, int code) __attribute__((noreturn, cold));
int other(int x);

#endif
