# The child process that a local model runs in: llama.cpp's own HTTP server, inside the package xllamacpp.
#
# It is started by server.py as a plain script, so that the engine is not imported a second time:
# only the standard library and xllamacpp may be imported here.
# Its one argument is a JSON object (`ServeOptions` and the path). When it is ready it writes one line to its standard
# output, the base URL; all else goes to standard error.
# It must not outlive its parent. The parent holds the other end of our standard input: when that closes, for whatever
# reason, we go at once. A process forked from the parent may hold that end too, so the parent's id is watched as well.
# While weights load, xllamacpp holds the interpreter and neither watch runs: then we end when they are loaded.

"""Serve one GGUF file on loopback until standard input closes."""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import threading
import time
from typing import Any, NoReturn

_ERRORS_ONLY = 1  # llama.cpp's verbosity
_PARENT_CHECK_S = 1.0
# How long OpenMP's threads spin for one another before they sleep. By default that is very long: as soon as another program
# wants a core, a spinning thread keeps it from the one that it waits for, and Qwen 1.5B on 2 cores fell from 35 tokens a
# second to 1. With 1,000 it stays at 13 or more, and on an idle machine it is as fast as ever. A user's own setting wins.
_SPIN_COUNT = "1000"


def main(argument: str) -> NoReturn:
    """Serve as the options in `argument` say; ends the process and never returns."""
    options = json.loads(argument)
    parent = os.getppid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    announce = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # nothing that a library prints may be taken for the announcement
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    server = _serve(options)
    announce.write(f"{server.listening_address}\n")
    announce.close()
    while os.getppid() == parent:
        time.sleep(_PARENT_CHECK_S)
    os._exit(0)


def _serve(options: dict[str, Any]) -> Any:
    """The running server, its weights loaded. On failure the reason is on standard error and the process ends."""
    os.environ.setdefault("GOMP_SPINCOUNT", _SPIN_COUNT)  # read once, when the library is loaded
    try:
        llama: Any = importlib.import_module("xllamacpp")
        return llama.Server(_params(llama, options))
    except Exception as problem:
        sys.stderr.write(f"{problem}\n")
        sys.stderr.flush()
        os._exit(1)


def _params(llama: Any, options: dict[str, Any]) -> Any:
    params = llama.CommonParams()
    params.model.path = options["path"]
    params.model_alias = {options["name"]}
    params.hostnames = ["127.0.0.1"]
    params.port = 0  # the system chooses a free one
    params.n_parallel = options["parallel"]
    params.n_ctx = options["context_window"] * options["parallel"]  # it is divided among the slots
    # Not `kv_unified`: with one pool for all, two long conversations at once both fail in the middle of a word.
    params.cpuparams.n_threads = options["threads"]
    params.cpuparams_batch.n_threads = options["threads"]
    params.n_batch = options["prompt_batch"]
    params.n_ubatch = options["prompt_batch"]
    params.cache_ram_mib = options["cache_mib"]
    params.verbosity = _ERRORS_ONLY
    params.ui = False
    params.endpoint_slots = False  # it shows other people's prompts
    params.cors_origins = "http://127.0.0.1"  # no web page may read answers
    return params


def _end_with_stdin() -> NoReturn:
    while os.read(0, 4096):
        pass
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
