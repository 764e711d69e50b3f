/*
 * Keeps blocks, and waits for as many seconds as the argument says.
 */
#include "keep.h"

int main(int argc, char **argv)
{
	for (int i = 0; i < 100; i++)
		keep(50);
	tell();
	sleep(argc > 1 ? (unsigned)atoi(argv[1]) : 3);
	return 0;
}
