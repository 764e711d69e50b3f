/* A direct call of the program's own data. */
__asm__(".data\n.globl data\ndata: .zero 16\n.text\n");
void data(void);

__attribute__((noinline)) void f(int m)
{
	volatile char b[16];

	b[m] = 1;
	data();
	b[0] = 1;
}

__attribute__((noinline)) int g(int m)
{
	f(m);
	__asm__ volatile("");
	return 1;
}

int main(int argc, char **argv)
{
	return g(argc);
}
