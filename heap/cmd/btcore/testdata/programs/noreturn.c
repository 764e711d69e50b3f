/* A call that does not return is the last instruction of .text: its return address is the end of the section. */
#include <stdlib.h>
void die(void) __attribute__((noreturn, noinline));

__attribute__((noinline)) int work(int n)
{
	if (n > 3)
		die();
	return n + 1;
}

int main(int argc, char **argv)
{
	return work(argc + 5);
}

void die(void)
{
	abort();
}
