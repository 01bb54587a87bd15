"""The card of a dataset folder, for whoever writes one."""

from __future__ import annotations

from collections.abc import Sequence

from temporalwiki.builders.manifests import CklManifest, Manifest


def folder_card(manifests: Sequence[Manifest]) -> str:
    """Return the text of README.md for a dataset folder with these manifests, oldest interval first."""
    contents = [manifest.content for manifest in manifests]
    # imported here: cards need `datasets` for its feature types, which takes seconds
    if isinstance(manifests[0], CklManifest):
        from temporalwiki.model_cards.ckl_dataset import ckl_card

        return ckl_card(contents)
    from temporalwiki.model_cards.dataset import dataset_card

    return dataset_card(contents)
