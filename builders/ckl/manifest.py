"""The check of a CKL manifest, for code that still takes manifests as mappings."""

from __future__ import annotations

from typing import Any

from temporalwiki.builders.manifests import CklManifest, checked_as


def check_ckl_manifest(manifest: Any, where: str) -> None:
    """Raise InputError, which names ``where`` it is from, unless a manifest is as `temporalwiki ckl` writes it."""
    checked_as(CklManifest, manifest, where)
