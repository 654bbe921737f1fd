"""`ddx-local serve`: an OpenAI-compatible endpoint and the clinicians' panel on this machine."""

from pathlib import Path
from typing import Annotated, Any

import typer

EXAMPLES = """\b
Examples:
    ddx-local serve
    ddx-local serve --demo
    ddx-local serve --model gemma3-270m --port 8080
    ddx-local serve --uds /run/ddx-local/socket
    ddx-local keys add --name ward --scope ddx --scope panel
    ddx-local serve --host 0.0.0.0 --ssl-certfile cert.pem --ssl-keyfile key.pem --allow-host ddx.example
"""


def serve(
    model: Annotated[str | None, typer.Option(help="Model: see `ddx-local models list`. [smollm2-135m]")] = None,
    host: Annotated[
        str, typer.Option(help="Numeric address to listen on; others than loopback need a key and TLS.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes any that is free.")] = 8000,
    uds: Annotated[Path | None, typer.Option(metavar="PATH", help="Listen on a Unix socket instead.")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Made-up answers, no model: to look at the panel.")] = False,
    keys: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File of API keys. [keys.json beside the settings]")
    ] = None,
    ssl_certfile: Annotated[Path | None, typer.Option(metavar="FILE", help="TLS certificate, PEM.")] = None,
    ssl_keyfile: Annotated[Path | None, typer.Option(metavar="FILE", help="TLS private key, PEM.")] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Host name to answer to; repeatable.")
    ] = None,
    store: Annotated[Path | None, typer.Option(help="Run store to use.")] = None,
    no_store: Annotated[bool, typer.Option("--no-store", help="Keep nothing on disk.")] = False,
    engine: Annotated[str | None, typer.Option(help="vllm, transformers or scripted. [vllm]")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda. [auto]")] = None,
    dtype: Annotated[str | None, typer.Option(help="auto, float32, bfloat16 or float16. [auto]")] = None,
    max_model_len: Annotated[int | None, typer.Option(help="Context in tokens. [the model's]")] = None,
    kv_cache_gib: Annotated[float | None, typer.Option(help="KV cache on a CPU, in GiB. [2]")] = None,
    gpu_memory_fraction: Annotated[float | None, typer.Option(help="Share of the GPU's memory. [0.9]")] = None,
    tensor_parallel: Annotated[int | None, typer.Option(help="GPUs that share each layer. [1]")] = None,
    quantization: Annotated[str | None, typer.Option(help="As vLLM names it, or bitsandbytes-4bit, -8bit.")] = None,
    thinking: Annotated[
        bool | None, typer.Option("--thinking/--no-thinking", help="Let a thinking model think.")
    ] = None,
    per_minute: Annotated[int, typer.Option(min=1, help="Requests a minute of one key.")] = 3000,
    at_once: Annotated[int, typer.Option(min=1, help="Model requests in flight.")] = 64,
    runs_at_once: Annotated[int, typer.Option(min=1, help="Runs in flight.")] = 8,
    max_body: Annotated[int, typer.Option(min=1024, help="Longest body in bytes.")] = 1 << 20,
    demo_delay: Annotated[float, typer.Option(min=0, help="Seconds that a round of --demo takes.")] = 0.6,
) -> None:
    """Serve the model and the methods (`ddx/scot` ...) to any OpenAI client, and the panel to a browser.

    Without an API key it listens on this machine alone. Ends with 75 when the engine died, so that systemd starts it again.
    """
    from ddx_local.cli.serving import Wished, run

    flags: dict[str, Any] = {
        "model": model,
        "store": store,
        "engine": "scripted" if demo else engine,
        "device": device,
        "dtype": dtype,
        "max_model_len": max_model_len,
        "kv_cache_gib": kv_cache_gib,
        "gpu_memory_fraction": gpu_memory_fraction,
        "tensor_parallel": tensor_parallel,
        "quantization": quantization,
        "thinking": thinking,
    }
    run(
        Wished(
            host=host,
            port=port,
            uds=uds,
            certificate=ssl_certfile,
            private_key=ssl_keyfile,
            hosts=tuple(allow_host or ()),
            keys=keys,
            demo=demo,
            demo_delay=demo_delay,
            keeps=not no_store and not (demo and store is None),
            per_minute=per_minute,
            at_once=at_once,
            runs_at_once=runs_at_once,
            body_bytes=max_body,
            flags={name: value for name, value in flags.items() if value is not None},
        )
    )
