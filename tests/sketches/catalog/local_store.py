"""An object store on this machine: moto's S3 behind a door that sees, holds and spoils requests."""

import re
import threading
import urllib.request
from contextlib import contextmanager

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Response

WRITES = ("PUT", "POST", "DELETE")


class Quiet(WSGIRequestHandler):
    """Says nothing of each request."""

    def log(self, type, message, *args):  # noqa: A002  # werkzeug's names
        pass


class LocalStore:
    """S3 as moto has it. One request at a time, since S3 decides conditions at once and moto does not lock.

    Attributes
    ----------
    url
        Its endpoint.
    writes
        Method, path and ``If-None-Match`` of every request that changed something, by key.
    refused
        A key that gets 403.
    """

    def __init__(self):
        self._backend = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.Lock()
        self.writes = {}
        self.refused = "refused"
        self._held = {}
        self._spoiled = []

    def hold(self, key, number, applied):
        """Let the nth write of a key wait: an event that it has come, and one to let it go on, or be dropped."""
        self._held[key] = number, applied, threading.Event(), threading.Event()
        return self._held[key][2:]

    def lose_answer(self, pattern):
        """Do the next write to a path like this, and answer that something went wrong."""
        self._spoiled.append(pattern)

    def __call__(self, environ, start):
        key = (re.search(r"Credential=(\w+)", environ.get("HTTP_AUTHORIZATION", "")) or ["", ""])[1]
        if key == self.refused:
            said = "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
            return Response(said, 403, mimetype="application/xml")(environ, start)
        if environ["REQUEST_METHOD"] not in WRITES:
            return self._answer(environ, start)
        done = self.writes.setdefault(key, [])
        done.append((environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("HTTP_IF_NONE_MATCH")))
        if key in self._held and len(done) == self._held[key][0]:
            _, applied, came, go_on = self._held[key]
            came.set()
            go_on.wait(60)
            if not applied:
                return Response(status=503)(environ, start)
        if self._spoiled and re.search(self._spoiled[0], environ["PATH_INFO"]):
            self._spoiled.pop()
            self._answer(environ, lambda *_: None)
            return Response(status=500)(environ, start)
        return self._answer(environ, start)

    def _answer(self, environ, start):
        with self._lock:
            return list(self._backend(environ, start))


@contextmanager
def local_store():
    """A store with one bucket, named bucket."""
    store = LocalStore()
    server = make_server("127.0.0.1", 0, store, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    store.url = f"http://127.0.0.1:{server.server_port}"
    try:
        urllib.request.urlopen(urllib.request.Request(f"{store.url}/bucket", method="PUT")).close()
        yield store
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
