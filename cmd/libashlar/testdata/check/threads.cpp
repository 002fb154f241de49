// Many threads allocate and free at random, also what others allocated. No two
// live blocks may overlap, and every thread's failures must be its own.
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "load.h"

namespace {

struct Block {
    uintptr_t addr;
    size_t size;
};

std::mutex mutex;
std::map<uintptr_t, size_t> live;  // by address
std::vector<Block> shared;         // for anybody to free
std::atomic<int> wrong{0};

void enter(Block b) {
    const std::lock_guard<std::mutex> lock(mutex);
    auto next = live.lower_bound(b.addr);
    const bool right = next != live.end() && next->first < b.addr + b.size;
    const bool left = next != live.begin() && std::prev(next)->first + std::prev(next)->second > b.addr;
    if (left || right) wrong++;
    live[b.addr] = b.size;
}

void leave(Block b) {
    {
        const std::lock_guard<std::mutex> lock(mutex);
        live.erase(b.addr);
    }
    lib.front_free(reinterpret_cast<void *>(b.addr), b.size, 0, nullptr);
}

void work(unsigned seed, int operations) {
    std::mt19937 rng(seed);
    std::vector<Block> own;
    const size_t sizes[] = {512, 1000, 4096, 70000, 1 << 20, 3 << 20, 11 << 20, 1};
    for (int i = 0; i < operations; i++) {
        const unsigned dice = rng() % 100;
        if (dice < 50 || own.empty()) {
            Block b{0, sizes[rng() % 8] + (dice < 5 ? rng() % 5000 : 0)};
            void *p = nullptr;
            void *stream = reinterpret_cast<void *>(static_cast<uintptr_t>(rng() % 2));
            const int code = lib.front_malloc(b.size, 0, stream, &p);
            if (code == ASHLAR_OOM && strncmp(lib.error_text(), "CUDA out of memory", 18) == 0) continue;
            if (code != ASHLAR_OK || p == nullptr) {
                wrong++;
                continue;
            }
            b.addr = reinterpret_cast<uintptr_t>(p);
            enter(b);
            if (rng() % 20 == 0) lib.front_record_stream(p, reinterpret_cast<void *>(1));
            if (dice < 10) {
                const std::lock_guard<std::mutex> lock(mutex);
                shared.push_back(b);
            } else {
                own.push_back(b);
            }
        } else if (dice < 98) {
            const size_t at = rng() % own.size();
            leave(own[at]);
            own[at] = own.back();
            own.pop_back();
        } else if (dice == 98) {
            Block b{0, 0};
            {
                const std::lock_guard<std::mutex> lock(mutex);
                if (!shared.empty()) {
                    b = shared.back();
                    shared.pop_back();
                }
            }
            if (b.addr != 0) leave(b);
        } else if (i % 7 == 0) {
            if (lib.reset() != ASHLAR_OK) wrong++;
        } else {
            char *text = lib.stats_json(0);
            if (text == nullptr) wrong++;
            lib.string_free(text);
        }
    }
    for (const Block &b : own) leave(b);
}

}  // namespace

int main(int, char **argv) {
    load(argv[1]);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 8; t++) threads.emplace_back(work, t + 1, 20000);
    for (auto &t : threads) t.join();
    for (const Block &b : shared) leave(b);
    if (wrong != 0) {
        printf("%d things went wrong\n", wrong.load());
        return 1;
    }
    char *text = lib.stats_json(0);
    printf("%s\n", text);
    lib.string_free(text);
    text = lib.front_counters_json(0);
    printf("%s\n", text);
    lib.string_free(text);
    return 0;
}
