"""Faults of how CSV files are read: encodings, decimals, options of queries."""

from planted import fault

FORMS = "tests/e2e/test_csv_forms.py"
AS_STATED = f"{FORMS}::test_every_row_is_read_as_it_is_stated"
REFUSED = f"{FORMS}::test_a_file_that_is_not_as_stated_is_refused_before_the_debit"
RELEASED = f"{FORMS}::test_a_release_has_the_right_values_and_another_form_is_another_release"
QUERIES = f"{FORMS}::test_options_of_a_query_are_total_functions_of_a_line"
CSV = "dpsyn_sql/engines/csv_files.py"
RESOLVE = "dpsyn_sql/engines/resolve.py"

FAULTS = (
    fault(
        "lines that are not UTF-8 are left out, and paid for",
        f"{REFUSED}[latin-1 as utf-8]",
        (
            "dpsyn_sql/front/prepare.py",
            "                release.session.refuse_undecodable()\n",
            "                pass\n",
        ),
    ),
    fault(
        "a replay reads the rows of its file",
        RELEASED,
        ("dpsyn_sql/front/prepare.py", "if job.preview.debits:", "if job.preview:"),
    ),
    fault(
        "bytes of Windows pass for Latin-1",
        f"{REFUSED}[windows as latin-1]",
        (CSV, "if _NO_LATIN.search(block):", "if False:"),
    ),
    fault(
        "half of a character at the end of a file passes",
        f"{REFUSED}[half of a character]",
        (CSV, "final=not block", "final=False"),
    ),
    fault(
        "an encoding is stated and not read",
        f"{AS_STATED}[latin-1-False]",
        (CSV, "encoding=literal(form.encoding)", 'encoding=literal("utf-8")'),
    ),
    fault(
        "a decimal comma is stated and not read",
        f"{AS_STATED}[tab-False]",
        (RESOLVE, 'decimal=form.decimal or "."', 'decimal="."'),
    ),
    fault(
        "numbers with a comma are no numbers where types are learnt",
        RELEASED,
        (
            "dpsyn_sql/private/count/discovery.py",
            'number_text(f"trim({ident(query.attr)})", self._decimal)',
            'Fragment(f"trim({ident(query.attr)})")',
        ),
    ),
    fault(
        "points between thousands are taken for decimals",
        f"{FORMS}::test_numbers_with_a_comma",
        ("dpsyn_sql/sqltext/fragments.py", "translate({text}, '.,', ',.')", "replace({text}, ',', '.')"),
    ),
    fault(
        "the form of a file is no part of a release",
        RELEASED,
        (RESOLVE, 'if form.stated and files.format == "csv" else ()', "if False else ()"),
    ),
    fault(
        "a line goes for a value that is not of its type",
        f"{QUERIES}[query]",
        (
            "dpsyn_sql/sqltext/fragments.py",
            'f"TRY_CAST(trim({text}) AS {kind})"',
            'f"CAST(trim({text}) AS {kind})"',
        ),
    ),
    fault(
        "any option of read_csv is allowed",
        f"{FORMS}::test_an_option_that_is_not_listed_is_refused_whoever_answers_for_the_query[store_rejects]",
        (
            "dpsyn_sql/source/file_options.py",
            "        if key not in _READ:\n            raise",
            "        if key not in _READ:\n            continue\n            raise",
        ),
    ),
)
