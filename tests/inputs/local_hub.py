"""A Hub on this machine: the few requests that `datasets` makes, answered from memory, with every byte counted."""

import json
import os
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import numpy as np

REVISION = "0" * 40


class LocalHub:
    """Datasets by name, each a dict of its files.

    Attributes
    ----------
    served
        How many bytes of each file were sent.
    breaks_after
        Connections are cut once this many bytes were sent; None for never.
    gated
        Names of datasets that are given to nobody here.
    """

    def __init__(self, datasets):
        self.datasets = datasets
        self.served = {}
        self.breaks_after = None
        self.gated = set()

    def answer(self, method, url, body, asked):  # noqa: PLR0911  # one for each kind of request
        """Status, headers and content of the answer."""
        if self.breaks_after is not None and sum(self.served.values()) >= self.breaks_after:
            return None
        path, query = urlsplit(url).path, parse_qs(urlsplit(url).query)
        for name, files in self.datasets.items():
            if name in self.gated and f"/{name}" in path:
                return 403, {"X-Error-Code": "GatedRepo"}, b"{}"
            if path.startswith(f"/datasets/{name}/resolve/"):
                return self._file(name, files, path.split("/resolve/", 1)[1].partition("/")[2], asked, method)
            for kind in ("tree", "paths-info", "revision"):
                if path.startswith(f"/api/datasets/{name}/{kind}/"):
                    below = path.split(f"/{kind}/", 1)[1].partition("/")[2]
                    if kind == "tree":
                        return self._tree(files, below, query.get("recursive", ["false"])[0].lower() == "true")
                    return self._paths(files, body) if kind == "paths-info" else self._about(name, files)
            if path == f"/api/datasets/{name}":
                return self._about(name, files)
        return 404, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}, b"{}"

    def _about(self, name, files):
        siblings = [{"rfilename": path} for path in files]
        when = {"lastModified": "2025-01-01T00:00:00.000Z", "createdAt": "2025-01-01T00:00:00.000Z"}
        about = {"id": name, "sha": REVISION, "private": False, "gated": False, "siblings": siblings, "tags": []}
        return 200, {}, json.dumps({**about, **when, "downloads": 0, "likes": 0}).encode()

    def _tree(self, files, below, recursive):
        prefix = f"{below}/" if below else ""
        inside = [path for path in files if path.startswith(prefix)]
        if not inside:
            return 404, {"X-Error-Code": "EntryNotFound"}, b"{}"
        folders = sorted({path[: path.index("/", len(prefix))] for path in inside if "/" in path[len(prefix) :]})
        shown = inside if recursive else [path for path in inside if "/" not in path[len(prefix) :]]
        entries = [_entry(path, files) for path in shown]
        return 200, {}, json.dumps(entries + [_entry(folder, files) for folder in folders]).encode()

    def _paths(self, files, body):
        text = body.decode()
        wanted = json.loads(text)["paths"] if text.startswith("{") else parse_qs(text).get("paths", [])
        known = [path for path in wanted if any(file == path or file.startswith(f"{path}/") for file in files)]
        return 200, {}, json.dumps([_entry(path, files) for path in known]).encode()

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


def _entry(path, files):
    if path not in files:
        return {"type": "directory", "path": path, "oid": "2" * 40, "size": 0}
    return {"type": "file", "path": path, "oid": "1" * 40, "size": len(files[path])}


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
            answer = hub.answer(self.command, self.path, body, self.headers.get("Range"))
            if answer is None:
                self.close_connection = True
                return
            status, headers, content = answer
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", "Content-Length": len(content), **headers}.items():
                self.send_header(name, str(value))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_HEAD = do_POST = do_GET  # noqa: N815

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


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
    import contextlib
    import io
    import sys
    from unittest import mock

    from sotdd.commands import main

    out, errors = io.StringIO(), io.StringIO()
    code = 0
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(errors),
        mock.patch.object(sys, "argv", ["sotdd", *arguments]),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    return code, out.getvalue(), errors.getvalue()
