"""Settings of other libraries, made before they are imported: no reports to their makers, and no noise in a log."""

import os
import sys
import warnings
from typing import Any

# Settings that keep libraries from sending data about their use. Each library reads its own when it is imported, also
# in child processes.
SILENT = {
    "DISABLE_SAFETENSORS_CONVERSION": "1",  # else a Space converts weights and receives the user's token
    "GRADIO_ANALYTICS_ENABLED": "False",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_UPDATE_DOWNLOAD_COUNTS": "0",  # else each dataset and metric sends a request to a host other than the Hub
    "RAY_USAGE_STATS_ENABLED": "0",
    "USE_HUB_KERNELS": "0",  # else some models run code from the Hub if the package kernels is installed
}
_QUIET = {"TRANSFORMERS_VERBOSITY": "error"}
_NO_BARS = ("TQDM_DISABLE", "HF_DATASETS_DISABLE_PROGRESS_BARS", "HF_HUB_DISABLE_PROGRESS_BARS")


def keep_silent() -> None:
    """Turn off the usage reports of libraries, unless the user has set their variables."""
    for name, value in SILENT.items():
        if os.environ.setdefault(name, value) == value:
            # who has a model in memory has imported libraries, which have read the variables before
            for module in ("huggingface_hub.constants", "datasets.config"):
                if hasattr(sys.modules.get(module), name):
                    setattr(sys.modules[module], name, value == "1")


def quiet() -> None:
    """Turn off the messages of libraries, and their progress bars unless there is a terminal."""
    warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")  # they concern peft and trl
    bars = sys.stderr.isatty()
    for name, value in (_QUIET if bars else _QUIET | dict.fromkeys(_NO_BARS, "1")).items():
        os.environ.setdefault(name, value)
    # a library that is imported already has read its variables
    transformers: Any = sys.modules.get("transformers.utils.logging")
    if transformers is not None:
        transformers.set_verbosity_error()
        if not bars:
            transformers.disable_progress_bar()
    datasets: Any = sys.modules.get("datasets.utils")
    if datasets is not None and not bars:
        datasets.disable_progress_bars()
