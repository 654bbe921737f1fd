"""The environment variables that keep the libraries offline and quiet. Data only; offline.py puts them in place.

Loaded at the start of every guarded Python child.
"""

ENFORCED = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",  # huggingface_hub takes it as HF_HUB_OFFLINE
    "HF_DATASETS_OFFLINE": "1",  # no dependency of ours; sentence_transformers imports it where it is there
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_UPDATE_CHECK": "1",
    "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",  # a token that lies on this machine goes with no request
    "HF_HUB_DISABLE_XET": "1",  # its transport is Rust, beyond the audit hook
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_DO_NOT_TRACK": "1",  # vLLM looks here before it looks at DO_NOT_TRACK, so a 0 here would win
    "DO_NOT_TRACK": "1",
    "VLLM_USE_MODELSCOPE": "False",  # a second hub
    "VLLM_HOST_IP": "127.0.0.1",  # else vLLM connects to a public name server to learn its own address
    "GLOO_SOCKET_IFNAME": "lo",  # these three: process groups on loopback, without a look-up of the host's name
    "NCCL_SOCKET_IFNAME": "lo",
    "TP_SOCKET_IFNAME": "lo",
    "OTEL_SDK_DISABLED": "true",
    "RAY_USAGE_STATS_ENABLED": "0",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "NO_PROXY": "*",  # a proxy on loopback would carry anything out past every check here
    "no_proxy": "*",
}
"""Set whatever the user has set."""

QUIET = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the engine in this process, under this hook (AsyncLLM has children anyway)
    "VLLM_LOGGING_LEVEL": "ERROR",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
    "TRANSFORMERS_VERBOSITY": "error",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TOKENIZERS_PARALLELISM": "false",  # else tokenizers warns at every fork
}
"""Set where the user has set nothing."""

UNSET = (
    *("http_proxy", "https_proxy", "ftp_proxy", "all_proxy"),
    *("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY"),
    "SENTRY_DSN",
)
"""Environment variables that name a way out; taken away while the guard is closed."""
