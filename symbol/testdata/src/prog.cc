// Templates, virtual calls, lambdas, exceptions, namespaces without names.
#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
#include <cstdio>

namespace shapes {

struct shape {
	virtual ~shape() = default;
	virtual double area() const = 0;
};

template <typename T> struct box : shape {
	T w, h;
	box(T w, T h) : w(w), h(h) { if (w < 0) throw std::invalid_argument("width"); }
	double area() const override { return double(w) * h; }
};

namespace {
struct disc : shape {
	double r;
	explicit disc(double r) : r(r) {}
	double area() const override { return 3.14159 * r * r; }
};
int hidden(int n) { return n ? hidden(n / 2) + 1 : 0; }
}

std::unique_ptr<shape> make(int kind, int n)
{
	switch (kind % 3) {
	case 0: return std::make_unique<box<int>>(n, n + 1);
	case 1: return std::make_unique<box<double>>(n / 2.0, 3);
	}
	return std::make_unique<disc>(hidden(n));
}

} // namespace shapes

template <typename F> static double total(const std::vector<std::unique_ptr<shapes::shape>> &v, F f)
{
	double sum = 0;
	for (const auto &s : v)
		sum += f(*s);
	return sum;
}

int main(int argc, char **argv)
{
	std::vector<std::unique_ptr<shapes::shape>> v;
	std::map<std::string, int> names;
	for (int i = 0; i < 30 * argc; i++) {
		v.push_back(shapes::make(i, i));
		names["n" + std::to_string(i % 7)] += i;
	}
	std::sort(v.begin(), v.end(), [](const auto &a, const auto &b) { return a->area() < b->area(); });
	double sum = total(v, [argc](const shapes::shape &s) { return s.area() * argc; });
	try {
		shapes::box<int> bad(-argc, 1);
		sum += bad.area();
	} catch (const std::exception &e) {
		std::puts(e.what());
	}
	std::printf("%g %zu %s\n", sum, names.size(), argv[0]);
}
