"""The card of a metric's Space: the README.md of the metric's folder, with the name of the Space in its example."""

from pathlib import Path

import evaluate
import yaml

from temporalwiki.base.errors import InputError

_LONGEST = 60  # characters that the Hub accepts as a short description


def metric_card(folder: Path, repo_id: str) -> str:
    """Return the card of the metric in ``folder`` for the Space ``repo_id``.

    ``evaluate`` loads the module FOLDER/NAME.py, which runs its code, so use it only for your own metrics. Raises
    InputError if the module cannot be loaded, or if a file or a setting of the Space is missing.
    """
    name = folder.resolve().name
    for file in (f"{name}.py", "README.md", "requirements.txt", "app.py"):
        if not (folder / file).is_file():
            raise InputError(f"{folder}: no {file}; a metric's Space needs it")
    try:
        evaluate.load(str(folder / f"{name}.py"), keep_in_memory=True)
    except Exception as error:  # the metric's own code ran and can raise anything
        raise InputError(f"{folder / name}.py: evaluate cannot load it: {type(error).__name__}: {error}") from error
    readme = folder / "README.md"
    card = readme.read_text("utf-8")
    try:
        settings = yaml.safe_load(card.split("---\n")[1])
        described = str(settings["short_description"])
        wrong = settings["sdk"] != "gradio" or settings["app_file"] != "app.py" or len(described) > _LONGEST
    except (IndexError, KeyError, TypeError, yaml.YAMLError):
        wrong = True
    if wrong:
        raise InputError(
            f"{readme}: it must begin with the settings of a Space: sdk: gradio, app_file: app.py, and a "
            f"short_description of at most {_LONGEST} characters"
        )
    return card.replace(f'evaluate.load("eval_harness/metrics/{name}")', f'evaluate.load("{repo_id}")')
