"""Stands in for `llama_child.py`: the same pipes and phases, an HTTP server of a few lines.

What it does depends on the model's file name, which is all that a test can choose.
"""

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = json.dumps({"pid": os.getpid()}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        event = b'data: {"content":"x"}\n\n'
        self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        self.wfile.flush()
        if "silent" in MODEL:
            time.sleep(600)
        os._exit(7)

    def log_message(self, format: str, *args: object) -> None:
        pass


def tell(**fields: object) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def end_with_pipe() -> None:
    os.read(0, 1)
    os._exit(0)


CONFIG = json.loads(sys.stdin.buffer.readline())
MODEL = CONFIG["model_path"]
if "hang" in MODEL:
    tell(phase="load", version="fake")
    time.sleep(600)
if "dead" in MODEL:
    tell(phase="load", version="fake")
    sys.stderr.write("0.1 I all is well\n0.2 E the cause\n0.3 E its consequence\n")
    sys.exit(9)
if "stubborn" not in MODEL:
    threading.Thread(target=end_with_pipe, daemon=True).start()
SERVER = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
tell(phase="load", version="fake")
sys.stdout.write("a line that is no phase\n")
tell(phase="ready", address=f"http://127.0.0.1:{SERVER.server_port}")
SERVER.serve_forever()
