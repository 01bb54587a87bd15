"""The rows of the table of faults, in its order: what the world does to this program."""

ROWS = (
    "kill -9",
    "full disk",
    "too little memory",
    "two at once",
    "cut dump",
    "wrong checksum or missing part",
    "kept file gone or damaged",
    "server that misbehaves",
    "dead network in a push",
    "hostile XML",
    "bomb",
    "nested wikitext",
    "broken wikitext",
    "large page",
    "hostile titles",
    "hostile JSON",
    "hostile YAML",
    "hostile CSV",
    "hostile archive",
    "hostile model folder",
    "pages that move and vanish",
    "ranks that flip",
    "connections that nobody asked for",
    "secrets",
)

# What happens in several rows.
SAME_BYTES = "nothing half written has a final name, and a rerun ends with the same bytes"
ONE_LINE = "one line names the disk; nothing half written has a final name; a rerun with room ends with the same bytes"
REFUSED = "the second is refused in one line, and the first ends with the same bytes"
