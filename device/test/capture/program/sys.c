/* sys.c: what the generated programs need of an operating system where there is
 * no C library for the machine: Linux system calls, and _start. */
#include <stddef.h>
#include <stdint.h>

int main(void);
long sys_write(int fd, const void *p, size_t n);
void sys_exit(int code) __attribute__((noreturn));
void *memset(void *p, int c, size_t n);
void *memcpy(void *to, const void *from, size_t n);

void *memset(void *p, int c, size_t n)
{
	volatile char *b = p;

	while (n-- > 0)
		*b++ = (char)c;
	return p;
}

void *memcpy(void *to, const void *from, size_t n)
{
	volatile char *b = to;
	const char *a = from;

	while (n-- > 0)
		*b++ = *a++;
	return to;
}

#if defined(__thumb__) || defined(__arm__)
void __aeabi_memcpy4(void *to, const void *from, size_t n);
void __aeabi_memcpy(void *to, const void *from, size_t n);

void __aeabi_memcpy4(void *to, const void *from, size_t n)
{
	memcpy(to, from, n);
}

void __aeabi_memcpy(void *to, const void *from, size_t n)
{
	memcpy(to, from, n);
}

#define WRITE 4
#define EXIT 1
static long call3(long number, long a, long b, long c)
{
	register long r0 __asm__("r0") = a;
	register long r1 __asm__("r1") = b;
	register long r2 __asm__("r2") = c;

	__asm__ volatile("push {r7}\n\tmov r7, %1\n\tsvc 0\n\tpop {r7}"
		: "+r"(r0) : "r"(number), "r"(r1), "r"(r2) : "memory");
	return r0;
}
__asm__(".syntax unified\n.globl _start\n.type _start, %function\n.thumb_func\n_start:\n\tmovs r0, #0\n\tmov lr, r0\n\tbl main\n");
#elif defined(__riscv)
#define WRITE 64
#define EXIT 93
static long call3(long number, long a, long b, long c)
{
	register long a7 __asm__("a7") = number;
	register long a0 __asm__("a0") = a;
	register long a1 __asm__("a1") = b;
	register long a2 __asm__("a2") = c;

	__asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2) : "memory");
	return a0;
}
__asm__(".globl _start\n_start:\n\t.option push\n\t.option norelax\n\tla gp, __global_pointer$\n\t.option pop\n\tli ra, 0\n\tcall main\n");
#elif defined(__mips__)
#if defined(__mips64)
#define WRITE 5001
#define EXIT 5058
#else
#define WRITE 4004
#define EXIT 4001
#endif
static long call3(long number, long a, long b, long c)
{
	register long v0 __asm__("$2") = number;
	register long a0 __asm__("$4") = a;
	register long a1 __asm__("$5") = b;
	register long a2 __asm__("$6") = c;

	__asm__ volatile("syscall" : "+r"(v0) : "r"(a0), "r"(a1), "r"(a2)
		: "$1", "$3", "$7", "$8", "$9", "$10", "$11", "$12", "$13", "$14", "$15", "$24", "$25", "memory");
	return v0;
}
__asm__(".globl __start\n.globl _start\n.ent __start\n__start:\n_start:\n\t.set noreorder\n\tbal 1f\n\tnop\n1:\t.cpsetup $31, $0, 1b\n\tmove $31, $0\n\tdla $25, main\n\tjalr $25\n\tnop\n\t.set reorder\n.end __start\n");
#else
#error "no system calls of this machine"
#endif

long sys_write(int fd, const void *p, size_t n)
{
	return call3(WRITE, fd, (long)(intptr_t)p, (long)n);
}

void sys_exit(int code)
{
	for (;;)
		call3(EXIT, code, 0, 0);
}
