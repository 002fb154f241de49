// One thread frees blocks that another stream uses and empties the cache; another
// reads statistics. Of no moment more is active than reserved, nor is the peak.
#include <atomic>
#include <cstring>
#include <thread>

#include "load.h"

namespace {

long number(const char *text, const char *key, const char *figure) {
    return atol(strstr(strstr(text, key), figure) + strlen(figure));
}

}  // namespace

int main(int, char **argv) {
    load(argv[1]);
    std::atomic<bool> over{false};
    std::thread other([&over] {
        while (!over) {
            void *p = nullptr;
            if (lib.front_malloc(100u << 20, 0, nullptr, &p) != ASHLAR_OK) continue;
            lib.front_record_stream(p, reinterpret_cast<void *>(1));
            lib.front_free(p, 0, 0, nullptr);
            lib.reset();
        }
    });
    long now = 0, peaks = 0;
    for (int i = 0; i < 5000; i++) {
        if (i % 50 == 0) lib.reset_peak_stats(0);
        char *text = lib.stats_json(0);
        now += number(text, "\"active_bytes\"", "\"current\":") > number(text, "\"reserved_bytes\"", "\"current\":");
        peaks += number(text, "\"active_bytes\"", "\"peak\":") > number(text, "\"reserved_bytes\"", "\"peak\":");
        lib.string_free(text);
    }
    over = true;
    other.join();
    printf("%ld and %ld\n", now, peaks);
    return 0;
}
