"""The card of a dataset folder, which holds either intervals or CKL configs."""

from __future__ import annotations

from temporalwiki.builders.dataset_folder import Manifest, is_ckl


def folder_card(manifests: list[Manifest]) -> str:
    """Return the README.md of a dataset folder with these manifests, oldest interval first."""
    # imported here: a builder takes this function as an argument, and only a finished build needs the Hub's client
    if any(map(is_ckl, manifests)):
        from temporalwiki.model_cards.ckl_dataset import ckl_card

        return ckl_card(manifests)
    from temporalwiki.model_cards.dataset import dataset_card

    return dataset_card(manifests)
