"""A wall between two sides of a network: TCP proxies that forward everything, or nothing, as if a
cable were cut."""

import contextlib
import socket
import threading


class Wall:
    """`pass_through(host, port)` gives a port behind which that address is; `cut` and `heal` all of
    them."""

    def __init__(self):
        self.avoid = set()  # ports that belong to others who do not listen yet
        self._open = threading.Event()
        self._open.set()
        self._sockets = []
        self._over = False

    def pass_through(self, host, port):
        server = socket.create_server(("127.0.0.1", 0))
        self._sockets.append(server)
        while server.getsockname()[1] in self.avoid:  # kept, so that the next one is another
            server = socket.create_server(("127.0.0.1", 0))
            self._sockets.append(server)
        threading.Thread(target=self._accept, args=(server, host, port), daemon=True).start()
        return server.getsockname()[1]

    def cut(self):
        """From now on nothing gets through, and nobody is told."""
        self._open.clear()

    def heal(self):
        self._open.set()

    def close(self):
        self._over = True
        self._open.set()
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.close()

    def _accept(self, server, host, port):
        while not self._over:
            try:
                caller, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(caller, host, port), daemon=True).start()

    def _connect(self, caller, host, port):
        self._open.wait()
        try:
            callee = socket.create_connection((host, port))
        except OSError:
            caller.close()
            return
        self._sockets += [caller, callee]
        for here, there in ((caller, callee), (callee, caller)):
            threading.Thread(target=self._pump, args=(here, there), daemon=True).start()

    def _pump(self, here, there):
        """Bytes one way until either side ends; while the wall is closed they wait here."""
        with contextlib.suppress(OSError):
            while data := here.recv(65536):
                self._open.wait()
                there.sendall(data)
        for one in (here, there):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
