"""``python -m benchmarks.health_probe PORT PAUSE``: asks ``/health`` over and over; a line on stdin
is answered with the longest wait in milliseconds since the last one."""

import select
import sys
import time
from http.client import HTTPConnection

from benchmarks.process import HOST


def main() -> None:
    port, pause = int(sys.argv[1]), float(sys.argv[2])
    longest = 0.0
    while True:
        started = time.monotonic()
        connection = HTTPConnection(HOST, port, timeout=60)
        connection.request("GET", "/health")
        connection.getresponse().read()
        connection.close()
        longest = max(longest, time.monotonic() - started)
        if select.select([sys.stdin], [], [], pause)[0]:
            if not sys.stdin.readline():
                return
            print(f"{1000 * longest:.1f}", flush=True)
            longest = 0.0


if __name__ == "__main__":
    main()
