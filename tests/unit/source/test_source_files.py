"""Files as sources: what a path means and what a CSV header says."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn_sql.errors import SourceError
from dpsyn_sql.source.files import HEADER_LIMIT, find_files, read_csv_header


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


@pytest.mark.parametrize(
    ("text", "names", "delimiter"),
    [
        ("a,b\n1,2\n", ("a", "b"), ","),
        ("a;b,c;d\r\n", ("a", "b,c", "d"), ";"),
        ("a\tb", ("a", "b"), "\t"),
        ("a|b\r1|2", ("a", "b"), "|"),
        ("only\n1\n", ("only",), ","),
        ('"a,;;b";c\n', ("a,;;b", "c"), ";"),
        ('"two\nlines",b\n1,2\n', ("two\nlines", "b"), ","),
        ('"say ""hi""",b\n', ('say "hi"', "b"), ","),
        ("\ufeffa,b\n", ("a", "b"), ","),
        ("שלום,عمر\n", ("שלום", "عمر"), ","),
        (" a , b\n", (" a ", " b"), ","),
    ],
)
@pytest.mark.parametrize("gzipped", [False, True])
def test_headers(tmp_path, text, names, delimiter, gzipped):
    data = gzip.compress(text.encode()) if gzipped else text
    header = read_csv_header(write(tmp_path / "f", data), gzipped=gzipped)
    assert (header.names, header.delimiter) == (names, delimiter)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "empty"),
        ("\n1,2\n", "empty"),
        ("a,,c\n", "column 2"),
        ("a, ,c\n", "column 2"),
        ("a,b,A\n", "'a', 'A'"),
        ("a,a\n", "'a', 'a'"),
        (b"a,\xff\n", "UTF-8"),
        ("a" * (HEADER_LIMIT + 2), "1 MiB"),
        ("a\x00,b\n", "NUL"),
    ],
)
def test_bad_headers(tmp_path, text, word):
    with pytest.raises(SourceError, match=word):
        read_csv_header(write(tmp_path / "f.csv", text), gzipped=False)


def test_a_damaged_gzip_is_our_error(tmp_path):
    for data in (b"no gzip", gzip.compress(b"a,b\n" * 100)[:20]):
        with pytest.raises(SourceError) as caught:
            read_csv_header(write(tmp_path / "f.csv.gz", data), gzipped=True)
        assert caught.value.__context__ is None


@given(rest=st.binary(max_size=200))
def test_rows_never_change_what_the_header_says(tmp_path_factory, rest):
    path = write(tmp_path_factory.mktemp("h") / "f.csv", b"a;b\n" + rest)
    assert read_csv_header(path, gzipped=False).names == ("a", "b")


def test_paths_folders_and_globs(tmp_path):
    for name in ("b.csv", "a.csv", "[x]*?.csv", "notes.txt"):
        write(tmp_path / name, "a\n")
    single = find_files(str(tmp_path / "a.csv"))
    assert single.single and single.format == "csv" and not single.gzipped
    odd = find_files(str(tmp_path / "[x]*?.csv"))
    assert odd.single and odd.paths == (str(tmp_path / "[x]*?.csv"),)
    for text in (str(tmp_path), str(tmp_path / "*.csv")):
        found = find_files(text)
        assert not found.single and len(found.paths) == 3 and found.paths == tuple(sorted(found.paths))
    assert find_files(str(tmp_path / "none.csv")) is None
    assert find_files(str(tmp_path / "*.parquet")) is None


def test_mixed_unknown_remote_and_empty_are_refused(tmp_path):
    write(tmp_path / "a.csv", "a\n")
    write(tmp_path / "b.parquet", "")
    write(tmp_path / "c.txt", "")
    (tmp_path / "empty").mkdir()
    for text, word in [
        (str(tmp_path), "one kind"),
        (str(tmp_path / "c.txt"), "one kind"),
        (str(tmp_path / "*"), "one kind"),
        ("s3://bucket/x.parquet", "remote"),
        (str(tmp_path / "empty"), "holds no"),
    ]:
        with pytest.raises(SourceError, match=word):
            find_files(text)
