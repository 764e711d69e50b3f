/* Three functions whose blocks live differently. */
#include <stdlib.h>

static void *volatile kept[64];

__attribute__((noinline)) void keep(void)
{
	for (int i = 0; i < 10; i++)
		kept[i] = malloc(100 + i);
}

__attribute__((noinline)) void peak(void)
{
	for (int i = 0; i < 5; i++)
		kept[20 + i] = calloc(10, 1000);
	for (int i = 0; i < 5; i++)
		free(kept[20 + i]);
}

__attribute__((noinline)) void churn(void)
{
	for (int i = 0; i < 50; i++) {
		kept[30 + i % 2] = malloc(64 + i);
		if (i > 0)
			free(kept[31 - i % 2]);
	}
}

int main(void)
{
	churn();
	keep();
	peak();
	return 0;
}
