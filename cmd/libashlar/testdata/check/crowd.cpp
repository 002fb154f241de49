// Eight threads allocate and free small blocks of many sizes, some MiB at a time.
// Another asks again and again for most of the memory: there is always room, once
// what the others have freed is back.
#include <atomic>
#include <thread>
#include <vector>

#include "load.h"

namespace {

constexpr size_t kMost = 80u << 20, kLarge = 3u << 20;
constexpr long kOperations = 300000;

std::atomic<bool> over{false};
std::atomic<long> operations{0}, refused{0};

void *get(size_t bytes) {
    void *p = nullptr;
    if (lib.front_malloc(bytes, 0, nullptr, &p) != ASHLAR_OK) refused++;
    return p;
}

void give(void *p) { lib.front_free(p, 0, 0, nullptr); }

void churn(unsigned random) {
    void *own[4] = {};
    while (!over) {
        random = random * 1103515245u + 12345u;
        void *&p = own[(random >> 20) % 4];
        give(p);
        random = random * 1103515245u + 12345u;
        p = get(512 * (1 + (random >> 8) % 600));
        operations++;
    }
    for (void *p : own) give(p);
}

}  // namespace

int main(int, char **argv) {
    load(argv[1]);
    std::vector<std::thread> crowd;
    for (unsigned i = 1; i <= 8; i++) crowd.emplace_back(churn, i * 7919);
    for (int i = 0; operations < kOperations; i++) {
        give(get(kMost));
        give(get(kLarge));
        if (i % 3 == 0) lib.reset();  // empties the cache
    }
    over = true;
    for (std::thread &t : crowd) t.join();
    char *stats = lib.stats_json(0);
    printf("%ld refused\n%s\n", refused.load(), stats);
    lib.string_free(stats);
    return 0;
}
