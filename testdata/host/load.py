"""Sends requests to server.py, eight at a time.

usage: load.py PORT REQUESTS
"""

import http.client
import itertools
import sys
import threading

port, requests = int(sys.argv[1]), int(sys.argv[2])
numbers = itertools.count()
failed = []


def client():
    for n in iter(lambda: next(numbers), None):
        if n >= requests:
            return
        try:
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            c.request("GET", "/predict/%d" % n)
            if c.getresponse().status != 200:
                failed.append(n)
            c.close()
        except OSError as e:
            failed.append(e)


threads = [threading.Thread(target=client) for _ in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
if failed:
    sys.exit("load: %d requests failed, the first: %s" % (len(failed), failed[0]))
