// Maps, strings and shared pointers, of which some leak.
#include <map>
#include <memory>
#include <string>
#include <vector>

int main() {
	std::map<std::string, std::shared_ptr<std::vector<int>>> m;
	for (int i = 0; i < 40000; i++) {
		auto v = std::make_shared<std::vector<int>>();
		for (int k = 0; k < 20; k++)
			v->push_back(k);
		m["a long key, not within the string " + std::to_string(i % 5000)] = v;
	}
	auto *leak = new std::map<std::string, std::shared_ptr<std::vector<int>>>(m);
	return leak->size() == 5000 ? 0 : 1;
}
