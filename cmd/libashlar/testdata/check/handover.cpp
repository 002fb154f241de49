// One thread frees a large block, tells another, and asks for a small one; the
// other asks for the large one. The free is over, so there is room for it,
// although the block may be on its way to the engine with the small request.
// At its end each thread calls the library once more, after its texts are gone.
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "load.h"

namespace {

constexpr size_t kLarge = 60u << 20;
constexpr int kRounds = 1000;

std::atomic<int> freed{0}, taken{0}, refused{0};
void *got;

void *get(size_t bytes) {
    void *p = nullptr;
    lib.front_malloc(bytes, 0, nullptr, &p);
    return p;
}

void give(void *p) { lib.front_free(p, 0, 0, nullptr); }

pthread_key_t first, last;

void at_end(void *) {
    give(get(5000));
    get(size_t{1} << 40);  // fails, and has a text
}

void other() {
    pthread_setspecific(first, &got);
    get(size_t{1} << 40);
    pthread_setspecific(last, &got);
    for (int i = 1; i <= kRounds; i++) {
        while (freed != i) {
        }
        got = get(kLarge);
        if (got == nullptr) refused++;
        taken = i;
    }
}

}  // namespace

int main(int, char **argv) {
    load(argv[1]);
    pthread_key_create(&first, at_end);
    get(size_t{1} << 40);  // makes the library's own key
    pthread_key_create(&last, at_end);
    std::thread thread(other);
    for (int i = 1; i <= kRounds; i++) {
        void *large = get(kLarge), *rest = get(2u << 20);
        give(large);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));  // Go is slow to be entered then
        freed = i;
        void *small = get(3000 + 512 * static_cast<size_t>(i));
        while (taken != i) {
        }
        if (got != nullptr) give(got);
        give(rest);
        give(small);
    }
    thread.join();
    printf("%d refused\n", refused.load());
    return 0;
}
