// Threads allocate and free, in a region and outside, while another one parks and restores the
// region: no two live blocks may overlap, and what lies in the region keeps its bytes.
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "load.h"

namespace {

std::mutex mutex;
std::map<uintptr_t, size_t> live;  // by address
std::atomic<int> wrong{0};
std::atomic<bool> done{false};

void complain(const char *what) {
    if (wrong++ < 5) printf("%s: %s\n", what, lib.error_text());
}

void enter(uintptr_t addr, size_t size) {
    const std::lock_guard<std::mutex> lock(mutex);
    auto next = live.lower_bound(addr);
    const bool right = next != live.end() && next->first < addr + size;
    const bool left = next != live.begin() && std::prev(next)->first + std::prev(next)->second > addr;
    if (left || right) complain("blocks overlap");
    live[addr] = size;
}

void leave(uintptr_t addr) {
    {
        const std::lock_guard<std::mutex> lock(mutex);
        live.erase(addr);
    }
    lib.front_free(reinterpret_cast<void *>(addr), 0, 0, nullptr);
}

void work(unsigned seed, bool inside) {
    std::mt19937 rng(seed);
    std::vector<uintptr_t> own;
    const size_t sizes[] = {512, 4096, 70000, 1 << 20, 3 << 20, 21 << 20};
    int outer = 0;
    if (inside && lib.region_enter(0, "busy", &outer) != ASHLAR_OK) complain("enter");
    while (!done) {
        if (rng() % 100 < 52 && own.size() < 15) {
            const size_t size = sizes[rng() % 6];
            void *p = nullptr;
            const int code = lib.front_malloc(size, 0, nullptr, &p);
            if (code == ASHLAR_OOM) continue;
            if (code != ASHLAR_OK) {
                complain("malloc");
                continue;
            }
            enter(reinterpret_cast<uintptr_t>(p), size);
            own.push_back(reinterpret_cast<uintptr_t>(p));
        } else if (!own.empty()) {
            const size_t at = rng() % own.size();
            leave(own[at]);
            own[at] = own.back();
            own.pop_back();
        }
    }
    for (const uintptr_t addr : own) leave(addr);
    if (inside && lib.region_leave(0, outer) != ASHLAR_OK) complain("leave");
}

}  // namespace

int main(int, char **argv) {
    load(argv[1]);
    int outer = 0;
    std::vector<std::pair<void *, size_t>> kept;
    if (lib.region_enter(0, "busy", &outer) != ASHLAR_OK) complain("enter");
    for (const size_t size : {1000u, 300000u, 2u << 20, 30u << 20}) {
        void *p = nullptr;
        if (lib.front_malloc(size, 0, nullptr, &p) != ASHLAR_OK) complain("malloc");
        memset(p, static_cast<int>(kept.size() + 1), size);
        enter(reinterpret_cast<uintptr_t>(p), size);
        kept.emplace_back(p, size);
    }
    lib.region_leave(0, outer);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; t++) threads.emplace_back(work, t + 1, t % 2 == 0);
    for (int i = 0; i < 10; i++) {
        char *report = nullptr;
        if (lib.park(0, "busy", 1, &report) != ASHLAR_OK) complain("park");
        lib.string_free(report);
        if (lib.step(0, &report) != ASHLAR_OK) complain("step");
        lib.string_free(report);
        if (lib.fetch(0, &kept[0].first, 1, &report) != ASHLAR_OK) complain("fetch");
        lib.string_free(report);
        const int code = lib.restore(0, "busy", &report);
        if (code == ASHLAR_FAILED) complain("restore");
        lib.string_free(report);
    }
    done = true;
    for (auto &t : threads) t.join();
    for (size_t i = 0; i < kept.size(); i++) {
        const std::string want(kept[i].second, static_cast<char>(i + 1));
        if (memcmp(kept[i].first, want.data(), want.size()) != 0) complain("bytes have changed");
        leave(reinterpret_cast<uintptr_t>(kept[i].first));
    }
    if (lib.reset() != ASHLAR_OK) complain("empty_cache");
    if (lib.region_delete(0, "busy") != ASHLAR_OK) complain("delete");
    return wrong != 0;
}
