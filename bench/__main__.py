"""`make bench`: print the guard's figures and the speeds; exit 1 above a recorded limit."""

from __future__ import annotations

import sys

from bench import guard, speed, starts
from smithers.sql.embedded import Place
from support.postgres import TestServer as Server
from support.postgres import database_on, throwaway_cluster


def main() -> int:
    with throwaway_cluster(full_page_writes="off", autovacuum="off") as home:
        server = Server(Place(home).dsn("postgres"), "throwaway")
        with database_on(server, None) as name:
            measured = guard.measure(server.url(name))
    for what, value in measured.items():
        print(f"{what:<48} {value:10.2f}")
    above = guard.judge(measured)
    for line in above:
        print(f"ABOVE ITS LIMIT  {line}")
    for what, text in {**starts.measure(), **speed.measure()}.items():
        print(f"{what:<48} {text}")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
