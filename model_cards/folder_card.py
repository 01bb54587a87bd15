"""The card of a dataset folder, for the code that writes one."""

from collections.abc import Sequence

from temporalwiki.builders.manifests import BuiltManifest, CklManifest, ImportedManifest, Manifest


def folder_card(manifests: Sequence[Manifest]) -> str:
    """Return the text of README.md for a dataset folder with these manifests, oldest interval first."""
    # imported here: importing huggingface_hub takes a second, and only a finished build needs it
    from temporalwiki.model_cards.ckl_dataset import ckl_card
    from temporalwiki.model_cards.dataset import dataset_card

    of_ckl = [manifest for manifest in manifests if isinstance(manifest, CklManifest)]
    intervals = [manifest for manifest in manifests if isinstance(manifest, BuiltManifest | ImportedManifest)]
    return ckl_card(of_ckl) if of_ckl else dataset_card(intervals)
