// Each form of operator new and delete.
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <unistd.h>
#include <vector>

struct alignas(128) Aligned { char x[256]; };

struct Own {
	char x[40];
	static void *operator new(size_t n) { return std::malloc(n + 8); }
	static void operator delete(void *p, size_t) { std::free(p); }
};

static void *live[4];

int main()
{
	for (int i = 0; i < 10; i++) {
		delete new Aligned;
		delete[] new Aligned[3];
		delete new int;
		delete[] new char[77];
		delete new Own;
		::operator delete(::operator new(33), (size_t)33);
		::operator delete(::operator new(64, std::align_val_t(64)), (size_t)64, std::align_val_t(64));
		delete new (std::nothrow) double;
		try {
			throw std::string("exception text that is longer than what a string has in itself");
		} catch (std::string &) {
		}
	}
	live[0] = new Aligned;
	live[1] = new Aligned[3];
	live[2] = new Own;
	live[3] = new std::vector<std::string>(5, std::string(100, 'x'));
	dprintf(1, "main 10 1761\n");
	_exit(0);
}
