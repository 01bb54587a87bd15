"""The corpus that Mix-Review mixes into training, from files of an older corpus such as Wikipedia (CKL, section 5)."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from temporalwiki.base.errors import InputError
from temporalwiki.builders.ckl.config import CklConfig, Row, RowCounts, is_drawn
from temporalwiki.builders.ckl.corpus_index import corpus_files, read_documents

SMALL_SHARE = 0.1  # of the documents, as in recentnews-small


def past_corpus(paths: Sequence[Path], seed: int = 0) -> list[CklConfig]:
    """Return the configs ``wikipedia`` and ``wikipedia-small`` of a corpus, in the formats of ``build_index``.

    A document keeps its address or id, even if others have the same: not all ids of a corpus fit into memory. The
    small config is a tenth of the documents, drawn by a hash of their ids. Raises InputError if files are missing,
    and, when the rows are read, if a file is damaged.
    """
    files = corpus_files(paths)
    configs = []
    for name, share in (("wikipedia", 1.0), ("wikipedia-small", SMALL_SHARE)):
        counts = RowCounts()
        configs.append(
            CklConfig(
                name=name,
                kind="news",
                splits={"train": _rows(files, share, seed, counts)},
                about=f"a document of an older corpus, {share:.0%} of them, for Mix-Review",
                licences=("other",),
                source="files of an older corpus; the texts belong to their authors",
                inputs=files,
                options={"share": share, "seed": seed},
                counts=counts,
            )
        )
    return configs


def _rows(files: Sequence[Path], share: float, seed: int, counts: RowCounts) -> Iterator[Row]:
    for file in files:
        for id, title, text in read_documents(file):
            counts.read += 1
            if not is_drawn(id, share, seed):
                counts.drop("not drawn")
            elif not (stripped := text.strip()):
                counts.drop("no text")
            else:
                counts.kept += 1
                url = id if id.startswith(("https://", "http://")) else None
                yield {"id": id, "url": url, "title": title or None, "text": stripped, "published": None}
    if not counts.kept and share == 1:
        raise InputError(f"{files[0]}: no text in this corpus ({counts.read:,} documents)")
