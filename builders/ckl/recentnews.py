"""RecentNews: articles that are newer than a language model, as in CKL (section 3.1.1 and appendix).

CKL's CC-RecentNews has articles from May 2020 to April 2021. Here the articles come from the given files, and are
filtered by language and date. The small version is a tenth of them; two phases of it are for training in two steps.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from hashlib import blake2b
from pathlib import Path

from temporalwiki.base.errors import UsageError
from temporalwiki.base.files import only_one, whole_folder
from temporalwiki.base.json_files import fingerprint, read_json, write_json
from temporalwiki.base.options import check_options, option
from temporalwiki.builders.ckl.config import CklConfig, Row, RowCounts, is_drawn
from temporalwiki.builders.ckl.near_duplicates import near_duplicates
from temporalwiki.builders.ckl.news_pages import ARTICLES, Extracted, extract
from temporalwiki.builders.ckl.schemas import SCHEMAS
from temporalwiki.builders.parquet import ParquetWriter, read_rows
from temporalwiki.builders.sql import database, rows_of

VERSION = 3  # increase it when the filters change: kept articles of other versions are not used
_MEMORY = 1 << 30  # bytes for sorting; the rest goes to disk


@dataclass(frozen=True)
class NewsOptions:
    """The options that decide the rows."""

    language: str = option("en", "language of the articles, ISO 639-1")
    since: str | None = option(None, "first day, as 2020-05-01")
    until: str | None = option(None, "last day")
    least_words: int = option(50, "words of the shortest article")
    small_share: float = option(0.1, "share of the articles in the small news", above=0, at_most=1)
    phase_two: str = option("2020-11-01", "first day of the second phase of the small news")
    seed: int = option(0, "seed of the draw")

    def __post_init__(self) -> None:
        check_options(self)
        for name in ("since", "until", "phase_two"):
            seconds(name, getattr(self, name))
        if self.since and self.until and self.since > self.until:
            raise UsageError(f"news since {self.since} until {self.until}: the first day is after the last")
        if len(self.language) != 2 or not self.language.islower():
            raise UsageError(f"{self.language!r} is not a language; give two letters, such as en")


def seconds(name: str, day: str | None) -> int | None:
    """Return the first second of a day, or None for None; raise UsageError for any other text."""
    if day is None:
        return None
    try:
        moment = datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC)
        if moment.strftime("%Y-%m-%d") != day:
            raise ValueError
    except ValueError:
        raise UsageError(f"{name.replace('_', ' ')} {day!r}: not a day such as 2020-11-01") from None
    return int(moment.timestamp())


@dataclass(frozen=True)
class News:
    """The articles that passed the filters, in order of time, and the counts of pages."""

    file: Path
    pages: Extracted
    dropped: dict[str, int]  # pages by reason, in all steps

    def rows(self) -> Iterator[Row]:
        """Yield the articles: id, url, title, text and published, in order of time."""
        return read_rows([self.file], batch=1_000)


def recentnews(paths: list[Path], options: NewsOptions, work: Path, jobs: int = 1) -> list[CklConfig]:
    """Return the configs recentnews, recentnews-small, recentnews-small-p1 and recentnews-small-p2.

    The articles of the pages are kept in the folder ``work``. Raises InputError for files that cannot be used.
    """
    news = find_news(paths, options, work, jobs)
    about = {
        "recentnews": "one article of a news site",
        "recentnews-small": f"one article of {options.small_share:.0%} of recentnews",
        "recentnews-small-p1": f"one article of recentnews-small from before {options.phase_two}",
        "recentnews-small-p2": f"one article of recentnews-small from {options.phase_two} on",
    }
    configs = []
    for name, text in about.items():
        counts = RowCounts()
        configs.append(
            CklConfig(
                name=name,
                kind="news",
                splits={"train": _chosen(news, name, options, counts)},
                about=text,
                licences=("other",),
                source="News pages, read with trafilatura; the texts belong to their publishers.",
                inputs=news.pages.inputs,
                options=asdict(options) | {"libraries": news.pages.libraries},
                counts=counts,
                language=options.language,
                warnings=_warnings(news),
            )
        )
    return configs


def find_news(paths: list[Path], options: NewsOptions, work: Path, jobs: int = 1) -> News:
    """Return the articles that pass the filters. ``work`` keeps the results, and a later call reuses them.

    ``paths`` may include Parquet files of an earlier ``recentnews``. All filters except the language apply to them.
    """
    work.mkdir(parents=True, exist_ok=True)
    with only_one(work.resolve() / "news", "reading of news"):
        pages = extract(paths, work, jobs)
        deciding = {name: value for name, value in asdict(options).items() if name in _FILTERS}
        folder = work / f"news-{fingerprint(VERSION, pages.key, deciding)}"
        if not folder.is_dir():
            with whole_folder(folder) as part:
                write_json(part / "news.json", _filter(pages, options, part))
    dropped = read_json(folder / "news.json", dict[str, int], "the counts of news; remove its folder")
    return News(folder / "articles.parquet", pages, dropped)


_FILTERS = ("language", "since", "until", "least_words")


def _filter(pages: Extracted, options: NewsOptions, folder: Path) -> dict[str, int]:
    """Write the articles that pass the filters, by time and address; return the dropped pages by reason."""
    dropped = Counter(pages.dropped)
    schema = SCHEMAS["news"]
    with (
        database(folder, _MEMORY) as db,
        near_duplicates(folder) as texts,
        ParquetWriter(folder / "articles.parquet", schema, rows=20_000) as out,
    ):
        columns = ", ".join(f'"{name}"' for name in ARTICLES.names)
        order = ", ".join(f'"{name}"' for name in ("published", "url", "title", "text", "language"))
        ordered = db.sql(f"SELECT {columns} FROM {rows_of(pages.articles)} ORDER BY {order}")
        for batch in ordered.to_arrow_reader(1_000):
            for row in batch.to_pylist():
                reason = _unfit(row, options) or texts.seen(row["url"], row["text"])
                if reason:
                    dropped[reason] += 1
                    continue
                article = {name: row[name] for name in ("url", "title", "text")} | {
                    "id": blake2b(row["url"].encode(), digest_size=8).hexdigest(),
                    "published": datetime.fromtimestamp(row["published"], UTC),
                }
                out.write(article, size=len(row["text"]) + 200)
    return dict(sorted(dropped.items()))


def _unfit(row: Row, options: NewsOptions) -> str | None:
    since, until = seconds("since", options.since), seconds("until", options.until)
    if row["language"] is not None and row["language"] != options.language:
        return "other language" if row["language"] else "unknown language"
    if (since is not None and row["published"] < since) or (until is not None and row["published"] >= until + 86_400):
        return "other date"
    if len(row["text"].split()) < options.least_words:
        return f"fewer than {options.least_words} words"
    return None


# Rows


def _chosen(news: News, name: str, options: NewsOptions, counts: RowCounts) -> Iterator[Row]:
    """Yield the rows of one config; its counts include the pages without an article."""
    counts.read = news.pages.read
    counts.dropped.update(news.dropped)
    drawn_by = options.small_share, options.phase_two, options.seed
    for row in news.rows():
        if reason := reason_to_leave_out(name, row["url"], row["published"], *drawn_by):
            counts.drop(reason)
        else:
            counts.kept += 1
            yield row


def reason_to_leave_out(
    name: str, url: str, published: datetime, small_share: float, phase_two: str, seed: int
) -> str | None:
    """Return why a config "...-small", "...-small-p1" or "...-small-p2" leaves out a page; None for other names."""
    if "-small" not in name:
        return None
    if not is_drawn(url, small_share, seed):
        return "not drawn"
    second = published.astimezone(UTC).date() >= date.fromisoformat(phase_two)
    if name.endswith("-p1") and second:
        return "published in phase two"
    return "published in phase one" if name.endswith("-p2") and not second else None


def _warnings(news: News) -> list[str]:
    ignored = news.pages.ignored
    if not ignored:
        return []
    some = ", ".join(map(repr, ignored[:3])) + (" ..." if len(ignored) > 3 else "")
    return [f"recentnews: {len(ignored)} files of other kinds in the folders were not read: {some}"]
