"""``ready.py PORT``: whether the server on this machine can take messages, as an exit status.

What asks for the health of a container; it loads little, because it is started again and again.
"""

import http.client
import sys

try:
    asking = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=5)
    asking.request("GET", "/ready")
    sys.exit(asking.getresponse().status != http.client.OK)
except OSError as error:
    sys.exit(str(error))
