// Pools begin, end, are released and deleted while other threads allocate on the
// stream that goes to them.
#include <atomic>
#include <thread>
#include <vector>

#include "load.h"

namespace {

void *const kStream = reinterpret_cast<void *>(1);

std::atomic<bool> over{false};
std::atomic<long> failed{0};

void check(int code) {
    if (code != ASHLAR_OK && failed++ == 0) fprintf(stderr, "%s\n", lib.error_text());
}

bool ours(void *, void *stream) { return stream == kStream; }

void churn(unsigned random) {
    while (!over) {
        random = random * 1103515245u + 12345u;
        void *p = nullptr;
        check(lib.front_malloc(512 * (1 + (random >> 8) % 6000), 0, kStream, &p));
        lib.front_free(p, 0, 0, nullptr);
    }
}

}  // namespace

int main(int, char **argv) {
    load(argv[1]);
    std::vector<std::thread> others;
    for (unsigned i = 1; i <= 2; i++) others.emplace_back(churn, i);
    for (unsigned i = 1; i <= 1000; i++) {
        check(lib.front_begin_pool(0, i, 0, ours, nullptr));
        for (volatile int k = 0; k < 20000; k = k + 1) {
        }
        check(lib.front_end_pool(0, i, 0));
        check(lib.front_release_pool(0, i, 0));
        check(lib.reset());
    }
    over = true;
    for (std::thread &t : others) t.join();
    printf("%ld failed\n", failed.load());
    return 0;
}
