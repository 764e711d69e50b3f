// A program that prints the class of each block, "-" if it has none, "begins with" if it is larger: classes of the program and of a library, also
// derived and virtual ones, objects that were deleted or changed their class, and what only begins like an object.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "classes.h"

static const uintptr_t mask = ~(uintptr_t)0 / 3; // so that the log points to no block
static struct { uintptr_t masked; const char *type; } truth[60000];
static int truths;

template <class T> static T *is(T *p, const char *type)
{
	for (int i = 0; i < truths; i++)
		if (truth[i].masked == ((uintptr_t)p ^ mask)) { // a block again
			truth[i].type = type;
			return p;
		}
	truth[truths].masked = (uintptr_t)p ^ mask;
	truth[truths++].type = type;
	return p;
}

static unsigned long long seed = 1;
static unsigned any(unsigned n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(seed >> 33) % n;
}

namespace shapes {
struct Square : Shape { double side = 1; double area() const override { return side * side; } };
struct Cube : Square { double depth = 2; double area() const override { return 6 * side * depth; } };
struct Named { char name[24] = "name"; virtual ~Named() {} virtual const char *text() const { return name; } };
struct Label : Square, Named { int colour = 7; const char *text() const override { return "label"; } };
struct Late { long plain = 1; };
struct Tail : Late { virtual ~Tail() {} long more = 2; }; // no vtable in the base, so its own is the first word
struct Left : virtual Named { long left = 3; };
struct Right : virtual Named { long right = 4; };
struct Both : Left, Right { long both = 5; };
}
namespace { struct Hidden { virtual ~Hidden() {} virtual int get() { return 1; } long value[3]; }; }
template <class T> struct Box { T content; virtual ~Box() {} };
struct Large { virtual ~Large() {} char text[2000]; };
struct Plain { void *first; long rest[3]; };
struct Part { virtual ~Part() {} long n = 1; };
struct Whole { Part part; long more[6]; }; // begins like a Part

static std::vector<void *> kept;
template <class T> static T *keep(T *p) { kept.push_back(p); return p; }
#define NEW(T) keep(is(new T, #T))

static shapes::Shape *make(unsigned kind)
{
	switch (kind) {
	case 0: return NEW(shapes::Square);
	case 1: return NEW(shapes::Cube);
	case 2: return NEW(shapes::Circle);
	case 3: return NEW(shapes::Ring);
	default: return NEW(shapes::Label);
	}
}

extern "C" __attribute__((noinline)) void stop() { asm volatile("" ::: "memory"); }

int main()
{
	std::vector<std::unique_ptr<shapes::Shape>> owned;
	kept.reserve(100000);
	is(kept.data(), "-");
	for (int i = 0; i < 300; i++) {
		for (int k = 0; k < 6; k++)
			make(any(5))->area();
		NEW(shapes::Tail);
		NEW(shapes::Left);
		NEW(shapes::Both);
		NEW(Hidden);
		NEW(Box<int>);
		NEW(Box<shapes::Late>);
		keep(is(new std::runtime_error("an error that is long enough for a block of its own"), "std::runtime_error"));
		keep(is(new Plain, "-"))->first = kept[any((unsigned)kept.size())];
		memset(keep(is(new char[16 + any(400)], "-")), 'x', 16);
		if (i % 3 == 0) { // deleted, and the memory is used again
			shapes::Square *s = new shapes::Cube;
			delete s;
			memset(keep(is(new char[sizeof(shapes::Cube)], "-")), 0, sizeof(shapes::Cube));
		}
		if (i % 7 == 0) { // another class in the same memory
			void *p = keep(::operator new(sizeof(shapes::Cube)));
			shapes::Shape *s = new (p) shapes::Cube;
			s->~Shape();
			new (p) shapes::Square;
			is(p, "shapes::Square");
		}
		if (i % 10 == 0) {
			keep(is(new Whole, "begins with Part"));
			NEW(Large);
			NEW(Part);
			shapes::Square *list = new shapes::Square[3]; // behind a count
			is((char *)list - sizeof(size_t), "-");
			keep(list);
			std::vector<shapes::Square> *v = keep(is(new std::vector<shapes::Square>(2 + any(4)), "-"));
			is(v->data(), "begins with shapes::Square");
		}
		keep(is(::operator new(sizeof(void *) * 4), "-"));
		memcpy(kept.back(), &kept[any((unsigned)kept.size())], sizeof(void *)); // points to an object, not to its vtable
	}
	std::ostringstream *out = NEW(std::ostringstream);
	*out << 1;
	for (int i = 0; i < truths; i++)
		printf("type %llx %s\n", (unsigned long long)(truth[i].masked ^ mask), truth[i].type);
	fflush(stdout);
	stop();
	return owned.size() > 1;
}
