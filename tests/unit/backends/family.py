"""A server in miniature: a child, and a grandchild in a session of its own that heeds no asking."""

import os
import signal
import sys
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.stderr.write(f"grandchild {os.getpid()}\n")
        sys.stderr.flush()
        time.sleep(600)
    os._exit(0)
sys.stderr.write(f"child {os.getpid()}\n")
sys.stderr.flush()
if "fail" in sys.argv:
    time.sleep(0.3)
    sys.exit(3)
time.sleep(600)
