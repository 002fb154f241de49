// Exits with live blocks that destructors of static objects free, some made
// before the library was loaded and some after, while a thread is at work.
#include <thread>
#include <vector>

#include "load.h"

namespace {

struct Holder {
    const bool late; // destroyed when the library has stopped to serve
    std::vector<void *> blocks;
    void fill() {
        for (size_t i = 1; i <= 50; i++) {
            void *p = nullptr;
            lib.front_malloc(i * 3000, 0, nullptr, &p);
            blocks.push_back(p);
        }
        lib.front_record_stream(blocks[0], reinterpret_cast<void *>(1));
    }
    ~Holder() {
        void *p = nullptr;
        for (void *b : blocks) lib.front_free(b, 0, 0, nullptr);
        if (lib.front_malloc(3000, 0, nullptr, &p) != ASHLAR_FAILED && late) printf("a request was served at the very end\n");
        lib.string_free(lib.stats_json(0));
    }
};

Holder before{true, {}};

}  // namespace

int main(int, char **argv) {
    load(argv[1]);
    static Holder after{false, {}};
    before.fill();
    after.fill();
    std::thread([] {
        for (;;) {
            void *p = nullptr;
            lib.front_malloc(5 << 20, 0, nullptr, &p);
            lib.front_free(p, 0, 0, nullptr);
        }
    }).detach();
    // A driver that is a stand-in shuts down now, as the real one does.
    const char *driver = getenv("ASHLAR_LIBCUDA");
    if (void *so = driver != nullptr ? dlopen(driver, RTLD_NOW | RTLD_NOLOAD) : nullptr)
        reinterpret_cast<void (*)()>(dlsym(so, "fake_exit"))();
    return 0;
}
