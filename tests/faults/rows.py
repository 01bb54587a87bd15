"""The kinds of faults in docs/faults.md, in their order."""

ROWS = (
    "kill -9",
    "power cut",
    "full disk",
    "too little memory",
    "limit of the system",
    "Ctrl-C",
    "two at once",
    "cut dump",
    "wrong checksum or missing part",
    "intermediate file missing or damaged",
    "server that misbehaves",
    "dead network in a push",
    "damage on the Hub",
    "no network",
    "unattended job",
    "hostile XML",
    "bomb",
    "nested wikitext",
    "broken wikitext",
    "large page",
    "hostile titles",
    "odd paths and streams",
    "hostile JSON",
    "hostile YAML",
    "hostile CSV",
    "hostile Parquet",
    "hostile archive",
    "hostile model folder",
    "misleading input",
    "pages that move and vanish",
    "ranks that flip",
    "unrequested connections",
    "secrets",
)

# Outcomes that several rows share.
SAME_BYTES = "no incomplete file has a final name, and a rerun ends with the same bytes"
ONE_LINE = (
    "one line names the disk; no incomplete file has a final name; a rerun with free space ends with the same bytes"
)
REFUSED = "the second is refused in one line, and the first ends with the same bytes"
