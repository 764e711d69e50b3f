// All blocks of 200 bytes and more are held: by containers, by hooks in their middle, by their second or virtual base. 12 blocks of 96
// bytes are leaked.
#include <array>
#include <cstdlib>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

typedef std::array<char, 200> Big;
struct Hook { Hook *next, *prev; };
struct First { virtual ~First() {} long a[20]; };
struct Second { virtual ~Second() {} long b[20]; };
struct Both : First, Second { long c[4]; };
struct Shared : virtual Second { long d[4]; };
struct Hooked { char text[150]; Hook hook; char more[50]; };

std::list<Big> g_list;
std::map<int, Big> g_map;
std::unordered_map<std::string, Big> g_hash;
std::deque<Big> g_deque;
std::vector<std::shared_ptr<Big>> g_shared;
std::vector<Second *> g_second;
Hook g_hooks = { &g_hooks, &g_hooks };

__attribute__((noinline)) static void make()
{
	for (int i = 0; i < 20; i++) {
		g_list.push_back(Big());
		g_map[i * 7 % 20] = Big();
		g_hash[std::string(220, 'a' + i)] = Big();
		g_deque.push_back(Big());
		g_shared.push_back(std::make_shared<Big>());
		g_second.push_back(new Both);
		g_second.push_back(new Shared);
		Hooked *h = new Hooked();
		h->hook = { &g_hooks, g_hooks.prev };
		g_hooks.prev = g_hooks.prev->next = &h->hook;
	}
	for (int i = 0; i < 12; i++) *(volatile char *)malloc(96) = 1;
}
__attribute__((noinline)) static void clear() { volatile char b[9000]; for (int i = 0; i < 9000; i++) b[i] = 0; }
int main()
{
	make();
	clear();
	abort();
}
