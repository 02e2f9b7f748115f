"""``python .ci/packed.py WHEEL SDIST``: every file of the package and every template is in both."""

import subprocess
import sys
import tarfile
import zipfile

wheel, sdist = sys.argv[1:]
listed = subprocess.run(["git", "ls-files", "dpsyn_sql", "sql"], capture_output=True, text=True, check=True)
files = listed.stdout.split()
assert any(name.startswith("sql/") for name in files), "git lists no template"

in_wheel = set(zipfile.ZipFile(wheel).namelist())
with tarfile.open(sdist) as archive:
    in_sdist = {name.partition("/")[2] for name in archive.getnames()}
installed = {
    name: name.replace("sql/", "dpsyn_sql/_sql/", 1) if name.startswith("sql/") else name for name in files
}

missing = [f"wheel: {path}" for path in installed.values() if path not in in_wheel]
missing += [f"sdist: {name}" for name in files if name not in in_sdist]
if missing:
    sys.exit("These files are missing:\n" + "\n".join(missing))
print(f"{len(files)} files of the package are in the wheel and in the sdist")
