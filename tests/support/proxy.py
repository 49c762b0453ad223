"""A wire to Postgres that can be cut, silenced, or made to lose one answer."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from pathlib import Path

from psycopg import conninfo


class Proxy:
    """Listens on a port of this host and passes everything on to the server of `dsn`."""

    def __init__(self, dsn: str) -> None:
        self._parts = conninfo.conninfo_to_dict(dsn)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._flowing = threading.Event()
        self._flowing.set()
        self._refusing = False
        self._lock = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lose: bytes | None = None
        self.lost = threading.Event()
        """Set when an answer was thrown away."""
        self._closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def dsn(self) -> str:
        """The way through this wire."""
        port = self._listener.getsockname()[1]
        parts = {k: v for k, v in self._parts.items() if k not in ("host", "port", "hostaddr")}
        return conninfo.make_conninfo("", **parts, host="127.0.0.1", port=port, sslmode="disable")

    def silence(self) -> None:
        """Pass nothing on, and close nothing: a network that swallows."""
        self._flowing.clear()

    def cut(self) -> None:
        """Close all connections and refuse new ones."""
        self._refusing = True
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            self._shut(*pair)

    def restore(self) -> None:
        """Be a good wire again."""
        self._refusing = False
        self._flowing.set()

    def lose_answer_to(self, words: bytes) -> None:
        """Deliver the next request that holds `words`, and close instead of answering it."""
        self.lost.clear()
        self._lose = words

    def close(self) -> None:
        self._closed = True
        self._flowing.set()
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._refusing:
                client.close()
                continue
            try:
                server = self._connect()
            except OSError:
                client.close()
                continue
            with self._lock:
                self._pairs.append((client, server))
            threading.Thread(target=self._pass_on, args=(client, server), daemon=True).start()

    def _connect(self) -> socket.socket:
        host = str(self._parts.get("host") or "127.0.0.1")
        port = int(str(self._parts.get("port") or 5432))
        if host.startswith("/"):
            server = socket.socket(socket.AF_UNIX)
            server.connect(str(Path(host) / f".s.PGSQL.{port}"))
            return server
        return socket.create_connection((host, port))

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        other = {client: server, server: client}
        losing = False
        try:
            while True:
                readable, _, _ = select.select([client, server], [], [])
                self._flowing.wait()
                for end in readable:
                    data = end.recv(1 << 16)
                    if not data:
                        return
                    if end is client and self._lose is not None and self._lose in data:
                        self._lose, losing = None, True
                    if end is server and losing:
                        # The server has done it: its answer is what is thrown away.
                        self.lost.set()
                        return
                    other[end].sendall(data)
        except (OSError, ValueError):
            return
        finally:
            self._shut(client, server)

    @staticmethod
    def _shut(*ends: socket.socket) -> None:
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
