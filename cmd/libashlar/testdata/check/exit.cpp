// Exits with live blocks that destructors of static objects free, some made
// before the library was loaded and some after, while a thread is at work.
#include <thread>
#include <vector>

#include "load.h"

namespace {

struct Holder {
    std::vector<void *> blocks;
    void fill() {
        for (size_t i = 1; i <= 50; i++) {
            void *p = nullptr;
            lib.front_malloc(i * 3000, 0, nullptr, &p);
            blocks.push_back(p);
        }
        lib.front_record_stream(blocks[0], reinterpret_cast<void *>(9));
    }
    ~Holder() {
        void *p = nullptr;
        for (void *b : blocks) lib.front_free(b, 0, 0, nullptr);
        lib.front_malloc(123, 0, nullptr, &p);
        lib.string_free(lib.stats_json(0));
    }
};

Holder before;

}  // namespace

int main(int, char **argv) {
    load(argv[1]);
    static Holder after;
    before.fill();
    after.fill();
    std::thread([] {
        for (;;) {
            void *p = nullptr;
            lib.front_malloc(5 << 20, 0, nullptr, &p);
            lib.front_free(p, 0, 0, nullptr);
        }
    }).detach();
    return 0;
}
