"""A Hub on this machine: the few requests that `datasets` makes, answered from memory, with every byte counted."""

import contextlib
import io
import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

import sotdd
from sotdd.cli import main

REVISION = "0" * 40


class LocalHub:
    """Datasets by name, each a dict of its files, or None for one that is closed; how many bytes of files were sent."""

    def __init__(self, datasets):
        self.datasets = datasets
        self.served = 0
        self.breaks = False  # connections are cut

    def answer(self, path, asked):
        """Status, headers and content of the answer."""
        found = re.fullmatch(r"(?:/api)?/datasets/(\w+/\w+)(?:/([a-z]+)/\w+/?(.*?))?(?:\?.*)?", path)
        if found is None or found[1] not in self.datasets:
            return 404, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}, b"{}"
        name, kind, place = found.groups()
        files = self.datasets[name]
        if files is None:
            return 403, {"X-Error-Code": "GatedRepo"}, b"{}"
        if kind == "resolve":
            return _part(files[place], asked) if place in files else (404, {"X-Error-Code": "EntryNotFound"}, b"")
        if kind == "tree":
            below = f"{place}/" if place else ""
            shown = {below + file.removeprefix(below).split("/")[0] for file in files if file.startswith(below)}
            entries = [{"path": file, "type": "file" if file in files else "directory", "oid": "1" * 40,
                        "size": len(files.get(file, b""))} for file in sorted(shown)]  # fmt: skip
            return 200, {}, json.dumps(entries).encode()
        about = {"id": name, "sha": REVISION, "private": False, "gated": False, "tags": [], "downloads": 0, "likes": 0}
        when = dict.fromkeys(("lastModified", "createdAt"), "2025-01-01T00:00:00.000Z")
        return 200, {}, json.dumps({**about, **when, "siblings": [{"rfilename": file} for file in files]}).encode()


def _part(content, asked):
    """A file, or the range of it that was asked for."""
    headers = {"ETag": f'"{"1" * 40}"', "X-Repo-Commit": REVISION, "Accept-Ranges": "bytes"}
    if not asked:
        return 200, headers, content
    start, _, end = asked.removeprefix("bytes=").partition("-")
    part = content[int(start) : int(end or len(content)) + 1]
    return 206, {**headers, "Content-Range": f"bytes {start}-{int(start) + len(part) - 1}/{len(content)}"}, part


@contextlib.contextmanager
def local_hub(datasets):
    """A Hub with these datasets, and its address."""
    hub = LocalHub(datasets)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args):
            pass

        def do_GET(self):  # the library's name
            if hub.breaks:
                self.close_connection = True
                return
            status, headers, content = hub.answer(self.path, self.headers.get("Range"))
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", "Content-Length": len(content), **headers}.items():
                self.send_header(name, str(value))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)
                hub.served += len(content) if "/resolve/" in self.path else 0

        do_HEAD = do_GET  # noqa: N815

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        hub.url = f"http://127.0.0.1:{server.server_port}"
        yield hub
        server.shutdown()


def opened(source, settings):
    """What a dataset is once it is open, or its error."""
    try:
        data = sotdd.open_dataset(source, **settings)
    except sotdd.SotddError as error:
        return str(error)
    features = np.asarray(data.features[:])
    return data.classes, data.counts.tolist(), features.shape, data.columns, features.astype(float).sum(axis=0)


def command(arguments):
    """The command line: exit code, output, errors."""
    out, errors, code = io.StringIO(), io.StringIO(), 0
    sys.argv = ["sotdd", *arguments]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    return code, out.getvalue(), errors.getvalue()
