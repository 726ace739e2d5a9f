"""A Hub on this machine: the few requests that `datasets` makes, answered from memory, with every byte counted."""

import contextlib
import io
import json
import os
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest import mock
from urllib.parse import parse_qs, urlsplit

import numpy as np

REVISION = "0" * 40


class LocalHub:
    """Datasets by name, each a dict of its files; how many bytes of each were sent, and who gets nothing."""

    def __init__(self, datasets):
        self.datasets = datasets
        self.served = {}
        self.breaks = False  # connections are cut
        self.gated = set()

    def answer(self, method, url, body, asked):
        """Status, headers and content of the answer."""
        path, query = urlsplit(url).path, parse_qs(urlsplit(url).query)
        for name, files in self.datasets.items():
            if name in self.gated and f"/{name}" in path:
                return 403, {"X-Error-Code": "GatedRepo"}, b"{}"
            if path.startswith(f"/datasets/{name}/resolve/"):
                return self._file(name, files, path.split("/resolve/", 1)[1].partition("/")[2], asked, method)
            _, is_tree, below = path.partition(f"/api/datasets/{name}/tree/")
            if is_tree:
                return _tree(files, below.partition("/")[2], query.get("recursive", ["false"])[0].lower() == "true")
            if path.startswith(f"/api/datasets/{name}/paths-info/"):
                return _paths(files, body.decode())
            if path == f"/api/datasets/{name}" or path.startswith(f"/api/datasets/{name}/revision/"):
                when = dict.fromkeys(("lastModified", "createdAt"), "2025-01-01T00:00:00.000Z")
                about = {"id": name, "sha": REVISION, "private": False, "gated": False, "tags": [], **when}
                siblings = [{"rfilename": path} for path in files]
                return 200, {}, json.dumps({**about, "siblings": siblings, "downloads": 0, "likes": 0}).encode()
        return 404, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}, b"{}"

    def _file(self, name, files, path, asked, method):
        if path not in files:
            return 404, {"X-Error-Code": "EntryNotFound"}, b""
        content, headers = files[path], {"ETag": f'"{"1" * 40}"', "X-Repo-Commit": REVISION, "Accept-Ranges": "bytes"}
        status, first, last = 200, 0, len(content) - 1
        if asked:
            start, _, end = asked.removeprefix("bytes=").partition("-")
            status, first, last = 206, int(start), min(int(end or last), last)
            headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
        if method == "HEAD":
            return status, {**headers, "Content-Length": str(last + 1 - first)}, b""
        self.served[f"{name}/{path}"] = self.served.get(f"{name}/{path}", 0) + last + 1 - first
        return status, headers, content[first : last + 1]


def _tree(files, below, recursive):
    prefix = f"{below}/" if below else ""
    inside = [path for path in files if path.startswith(prefix)]
    if not inside:
        return 404, {"X-Error-Code": "EntryNotFound"}, b"{}"
    folders = sorted({path[: path.index("/", len(prefix))] for path in inside if "/" in path[len(prefix) :]})
    shown = inside if recursive else [path for path in inside if "/" not in path[len(prefix) :]]
    return 200, {}, json.dumps([_entry(path, files) for path in (*shown, *folders)]).encode()


def _paths(files, text):
    wanted = json.loads(text)["paths"] if text.startswith("{") else parse_qs(text).get("paths", [])
    known = [path for path in wanted if any(file == path or file.startswith(f"{path}/") for file in files)]
    return 200, {}, json.dumps([_entry(path, files) for path in known]).encode()


def _entry(path, files):
    kind = "file" if path in files else "directory"
    return {"type": kind, "path": path, "oid": "1" * 40, "size": len(files.get(path, b""))}


@contextmanager
def local_hub(datasets):
    """A Hub with these datasets, and its address."""
    hub = LocalHub(datasets)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args):
            pass

        def do_GET(self):  # the library's name
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if hub.breaks:
                self.close_connection = True
                return
            status, headers, content = hub.answer(self.command, self.path, body, self.headers.get("Range"))
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", "Content-Length": len(content), **headers}.items():
                self.send_header(name, str(value))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_HEAD = do_POST = do_GET  # noqa: N815

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        hub.url = f"http://127.0.0.1:{server.server_port}"
        yield hub
        server.shutdown()


def prepare(environment):
    """Begin a process that knows this Hub only: its address is read when the library is imported."""
    os.environ.update(environment)


def opened(source, settings):
    """What a dataset is once it is open, or its error."""
    import sotdd

    try:
        data = sotdd.open_dataset(source, **settings)
    except sotdd.SotddError as error:
        return str(error)
    features = np.asarray(data.features[:])
    return data.classes, data.counts.tolist(), features.shape, data.columns, features.astype(float).sum(axis=0)


def command(arguments):
    """The command line: exit code, output, errors."""
    from sotdd.commands import main

    out, errors = io.StringIO(), io.StringIO()
    argv = mock.patch.object(sys, "argv", ["sotdd", *arguments])
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors), argv:
        try:
            main()
        except SystemExit as end:
            return end.code or 0, out.getvalue(), errors.getvalue()
    return 0, out.getvalue(), errors.getvalue()
