"""Hand-worked cases for the parts of the reference (tests/reference.py) that no test of the builder repeats.

The other parts need none: the tests of the builder have hand-worked cases, and compare the builder with the reference
on real dumps, on generated worlds and on random inputs.
"""

from __future__ import annotations

import pytest

from . import reference as ref


def test_align_and_filter() -> None:
    labels = {
        "Q1": "Ada",
        "Q2": "Paris",
        "Q3": "Rome",
        "Q4": "Lisbon",
        "Q5": None,
        "Q6": "Adam",
        "Q7": "Bea",
        "P1": "home",
    }
    categories = ref.RefCategories(
        changed={
            ("Q1", "P1", "Q3"): ("new_object", ("Q2",)),
            ("Q1", "P1", "Q2"): ("new_object", ("Q4",)),
            ("Q1", "P1", "Q4"): ("new_object", ("Q2",)),  # only in the full text
            ("Q1", "P1", "Q5"): ("new_object", ("Q2",)),  # no label
            ("Q1", "P1", "Q6"): ("new_object", ("Q2",)),  # holds the subject's label
            ("Q1", "P9", "Q2"): ("new_relation", ()),  # the relation has no label
            ("Q7", "P1", "Q2"): ("new_subject", ()),  # its page is not in the diffset
            ("Q8", "P1", "Q2"): ("new_subject", ()),  # no page
        },
        unchanged={("Q1", "P1", "Q4"), ("Q1", "P1", "Q2"), ("Q7", "P1", "Q2")},
        deleted={
            ("Q1", "P1", "Q2"): "replaced",
            ("Q9", "P1", "Q3"): "removed",
            ("Q7", "P1", "Q3"): "ended",
        },
    )
    labels["Q9"] = "Cid"
    result = ref.align_and_filter(
        categories,
        labels,
        pages={"Q1": 1, "Q7": 7},
        deleted_pages={"Q7": 70, "Q9": 90},
        diffset_texts={1: [["She left.", "Rome it was, with Adam."], ["rome or PARIS."]]},
        recent_texts={1: [["Rome it was, with Adam.", "Lisbon."]], 7: [["In Paris."]]},
        deletion_texts={1: [["Ah, Paris."]], 90: [["To Rome."]], 70: [["To Rome."]]},
    )
    assert result == ref.RefCandidates(
        changed=[
            ref.RefProbe(("Q1", "P1", "Q2"), "new_object", ("Ada", "home", "Paris"), ("Q4",), 1, "rome or PARIS."),
            ref.RefProbe(
                ("Q1", "P1", "Q3"),
                "new_object",
                ("Ada", "home", "Rome"),
                ("Q2",),
                1,
                "Rome it was, with Adam.",
            ),
        ],
        unchanged=[
            ref.RefProbe(("Q1", "P1", "Q4"), "unchanged", ("Ada", "home", "Lisbon"), (), 1, "Lisbon."),
            ref.RefProbe(("Q7", "P1", "Q2"), "unchanged", ("Bea", "home", "Paris"), (), 7, "In Paris."),
        ],
        deleted=[
            ref.RefProbe(("Q1", "P1", "Q2"), "replaced", ("Ada", "home", "Paris"), (), 1, "Ah, Paris."),
            ref.RefProbe(("Q9", "P1", "Q3"), "removed", ("Cid", "home", "Rome"), (), 90, "To Rome."),
        ],
        aligned={"changed": 3, "unchanged": 2, "deleted": 2},
    )


@pytest.mark.parametrize(
    ("total", "subjects", "relations", "objects", "broken"),
    [
        # rows, spread evenly over so many subjects, relations and objects, and the share that is too large
        (0, 1, 1, 1, None),
        (1, 1, 1, 1, None),
        (2, 2, 2, 2, None),
        (2, 1, 2, 2, "subject"),
        (39, 39, 39, 39, None),
        (39, 39, 38, 39, "relation"),
        (40, 40, 20, 20, None),
        (40, 39, 20, 20, "subject"),
        (40, 40, 20, 19, "object"),
        (199, 198, 50, 50, "subject"),
        (200, 100, 20, 20, None),
        (200, 100, 19, 20, "relation"),
        (2900, 100, 20, 20, None),
        (2900, 99, 20, 20, "subject"),
    ],
)
def test_check_caps(total: int, subjects: int, relations: int, objects: int, broken: str | None) -> None:
    table = [(f"s{n % subjects}", f"r{n % relations}", f"o{n % objects}") for n in range(total)]
    if broken is None:
        ref.check_caps(table)
    else:
        with pytest.raises(AssertionError, match=broken):
            ref.check_caps(table)
