"""Asks a server on a Unix socket whether it lives: `python healthcheck.py SOCKET`. Exit code 0 or 1, standard library only."""

import socket
import sys


def alive(path: str) -> bool:
    """Whether the server answers 200."""
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(4)
            connection.connect(path)
            connection.sendall(request)
            return connection.recv(64).split(b" ")[1:2] == [b"200"]
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(0 if alive(sys.argv[1]) else 1)
