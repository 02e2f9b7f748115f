"""Faults that let timings, which follow from the rows, out of the operator's hands."""

from planted import fault

WRITTEN = "tests/e2e/test_timings.py::test_nothing_that_is_written_or_shown_has_them[o.parquet]"

FAULTS = (
    fault(
        "a certificate tells how long counting took",
        WRITTEN,
        (
            "dpsyn_sql/front/publish.py",
            "                progress.writing()\n",
            "                progress.writing()\n"
            '                drawing_rows.written[0].kept.facts["t"] = progress.timings()\n',
        ),
    ),
    fault(
        "a certificate tells the second of the debit",
        WRITTEN,
        ("dpsyn_sql/ledger/entries.py", 'row["debited_at"][:10]', 'row["debited_at"]'),
    ),
    fault(
        "a release is printed with its timings",
        WRITTEN,
        ("dpsyn_sql/report/result.py", "id={self.id}{replayed})", "id={self.id}{replayed}{self.timings})"),
    ),
    fault(
        "timings tell how many slices the source has",
        "tests/unit/test_stopwatch.py::test_steps_that_follow_the_rows_of_the_source_are_not_told",
        (
            "dpsyn_sql/common/progress.py",
            '_STEPS = {"discover": "columns"',
            '_STEPS = {"count": "slices", "discover": "columns"',
        ),
    ),
    fault(
        "timings are printed among what a command gives",
        "tests/unit/cli/test_cli_timings.py::test_the_json_document_is_the_same_with_and_without",
        (
            "dpsyn_sql/cli/output.py",
            "aligned(names, cells, right)]), err=aside)",
            "aligned(names, cells, right)]))",
        ),
    ),
)
