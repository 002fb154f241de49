"""A small HTTP service, for `ashlar host run`: every request works on buffers of
1 to 100 KB, as decoding and batching do, and leaves one entry in a cache.

usage: server.py PORT [deaf]     deaf: SIGTERM is ignored
"""

import collections
import http.server
import random
import signal
import sys

CACHE = 2000  # entries
cache = collections.OrderedDict()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"ok"
        if self.path.startswith("/predict/"):
            body = self.predict(int(self.path.rsplit("/", 1)[1]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def predict(self, number):
        rng = random.Random(number)
        work = [bytearray(rng.randrange(1000, 100000)) for _ in range(200)]
        cache[number] = bytes(work[rng.randrange(200)][:8000])
        while len(cache) > CACHE:
            cache.popitem(last=False)
        return b"%d" % sum(map(len, work))

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64  # waiting clients, beyond the library's five


def main():
    if sys.argv[2:] == ["deaf"]:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
    print("serving")
    server.serve_forever()


main()
