"""64 clients at once against `ddx-local serve --demo`: errors, the server's own overhead, memory.

    python -m bench.load [--clients 64] [--seconds 60] [--delay 0.5] [--limit 48] [--json]

The demonstration's engine takes `delay` seconds for each answer; what a request takes beyond that is the server's own
overhead (and the client's). One client in eight is over the limit, so that 429 with Retry-After comes too.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

BODY = {"model": "scripted", "messages": [{"role": "user", "content": "load"}], "max_tokens": 64, "temperature": 0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--delay", type=float, default=0.5)
    parser.add_argument("--limit", type=int, default=56)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = _with_server(asked, Path(folder))
    if asked.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name}: {value}")
    if figures["errors"] or figures["without_retry_after"]:
        sys.exit(1)


def _with_server(asked: argparse.Namespace, folder: Path) -> dict[str, Any]:
    env = {**os.environ, "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    command = [sys.executable, "-m", "ddx_local.cli.main", "serve", "--demo", "--port", "0", "--store", str(folder / "runs.sqlite"),
               "--demo-delay", str(asked.delay), "--at-once", str(asked.limit), "--per-minute", "1000000"]  # fmt: skip
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            line = server.stderr.readline()
            url = line.partition("serving on ")[2].partition(" ")[0]
            assert url, line
            return asyncio.run(_load(asked, url, server.pid))
        finally:
            server.terminate()
            server.wait(20)


async def _load(asked: argparse.Namespace, url: str, pid: int) -> dict[str, Any]:
    limits = httpx.Limits(max_connections=asked.clients, max_keepalive_connections=asked.clients)
    async with httpx.AsyncClient(base_url=url, timeout=60, trust_env=False, limits=limits) as http:
        while (await http.get("/readyz")).status_code != 200:
            await asyncio.sleep(0.05)
        end = time.monotonic() + asked.seconds
        took: list[float] = []
        codes: dict[int, int] = {}
        silent = 0

        async def client(number: int) -> None:
            nonlocal silent
            await asyncio.sleep(asked.delay * number / asked.clients)
            while time.monotonic() < end:
                began = time.perf_counter()
                reply = await http.post("/v1/chat/completions", json=BODY)
                codes[reply.status_code] = codes.get(reply.status_code, 0) + 1
                if reply.status_code == 200:
                    took.append(time.perf_counter() - began)
                elif reply.status_code == 429:
                    silent += "retry-after" not in reply.headers
                    await asyncio.sleep(float(reply.headers.get("retry-after", 1)))

        memory, cpu = [_memory(pid)], _cpu(pid)
        clients = [asyncio.ensure_future(client(number)) for number in range(asked.clients)]
        for part in range(4):
            await asyncio.sleep(asked.seconds / 4 * (0.9 if part == 3 else 1))
            memory.append(_memory(pid))
        await asyncio.gather(*clients)
        cpu = _cpu(pid) - cpu
    over = sorted(1000 * (seconds - asked.delay) for seconds in took)
    return {
        "requests": sum(codes.values()),
        "codes": codes,
        "errors": sum(count for code, count in codes.items() if code not in (200, 429)),
        "without_retry_after": silent,
        "overhead_ms_median": round(statistics.median(over), 2),
        "overhead_ms_p99": round(over[int(len(over) * 0.99)], 2),
        "cpu_ms_a_request": round(1000 * cpu / sum(codes.values()), 2),
        "memory_mib": [round(value, 1) for value in memory],
        "memory_growth_mib": round(memory[-1] - memory[1], 1),
    }


def _cpu(pid: int) -> float:
    """Seconds of processor time that the server has had."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


if __name__ == "__main__":
    main()
