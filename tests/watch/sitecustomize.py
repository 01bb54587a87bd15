"""End a process that uses the network. Python imports this module at its start if its folder is on PYTHONPATH.

The children of a watched process are watched as well. WATCH names a file that gets a line for each attempt, and
WATCH_ALLOWED lists the allowed addresses (HOST:PORT, separated by spaces).
"""

import os
import sys

_ALLOWED = os.environ.get("WATCH_ALLOWED", "").split()
_HERE = {None, "", b"", *(address.rpartition(":")[0] for address in _ALLOWED)}
_HOSTS = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")
_ADDRESSES = ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.getnameinfo")


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if event in _HOSTS:
        host = arguments[0]
        asked = host.decode() if isinstance(host, bytes) else host
        fine = host in _HERE or asked in _HERE
    elif event in _ADDRESSES:
        address = arguments[0] if event == "socket.getnameinfo" else arguments[1]
        # not a tuple: a socket in the file system, or one that is connected already
        asked = address
        fine = not isinstance(address, tuple) or f"{address[0]}:{address[1]}" in _ALLOWED
    else:
        return
    if not fine:
        with open(os.environ["WATCH"], "a") as file:  # noqa: PTH123 - nothing is imported here
            file.write(f"{event} {asked!r} by {sys.argv!r}\n")
        os._exit(97)  # so that no error handler hides it


if "WATCH" in os.environ:
    sys.addaudithook(_watch)
