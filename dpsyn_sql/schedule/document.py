"""The format of a schedule (pydantic models) and its JSON schema. The options of a release are those of
``Request``: here stands only which of them belong to a source and which to a release.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    WithJsonSchema,
    create_model,
)

from dpsyn_sql.accounting.account import USUAL_DELTA, grant_delta, granted_budget
from dpsyn_sql.accounting.budget import Budget, exact_number
from dpsyn_sql.front.request import DEFAULTS, OPTIONS

_OF_FILE = ("on_error", "encoding", "delimiter", "decimal", "quote")
OF_SOURCE = ("domain", "account", "trust_query", "public_tables", *_OF_FILE)
"""Options of a release that belong to its source."""

_OWN_WORDS = ("source", "into", "name", "version", "ledger", "new_debit")
"""What a schedule decides itself, or spells otherwise."""

OF_RELEASE = tuple(name for name in OPTIONS if name not in (*OF_SOURCE, *_OWN_WORDS))
"""The other options of a release."""

_YEARS = range(1900, 2200)
_WAIT = re.compile(r"([0-9]{1,4}) +(day|hour)s?")
_PLACEHOLDERS = "{release}, {period} and {partition}"


def _moment(value: Any) -> datetime:
    text = value.strip() if isinstance(value, str) else ""
    moment = None
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2})?)?", text):
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise ValueError("must be a date that exists") from None
    if moment is None or moment.year not in _YEARS:
        raise ValueError("must be a date such as 2013-01-31, or 2013-01-31 05:00, from 1900 to 2199")
    return moment


def _wait(value: Any) -> timedelta:
    match = _WAIT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError("must be a number of days or hours, such as 3 days or 12 hours")
    return timedelta(**{f"{match[2]}s": int(match[1])})


def _label(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        raise ValueError("must be text: write it in quotes")
    if not isinstance(value, int | str):
        raise ValueError("must be text or a whole number: write it in quotes")
    return str(value)


Moment = Annotated[datetime, PlainValidator(_moment), WithJsonSchema({"type": "string"})]
Wait = Annotated[timedelta, PlainValidator(_wait), WithJsonSchema({"type": "string"})]
Label = Annotated[str, PlainValidator(_label), WithJsonSchema({"type": ["string", "integer"]})]
Number = Annotated[StrictInt | StrictFloat | StrictStr, Field()]


def _texts(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class _Spec(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LimitSpec(_Spec):
    """A limit; without ``delta`` 1e-9 for each whole epsilon."""

    epsilon: Number
    delta: Number | None = None

    @property
    def pair(self) -> tuple[str, str]:
        """(epsilon, delta) as the ledger records them."""
        delta = grant_delta(self.epsilon) if self.delta is None else self.delta
        return str(self.epsilon).strip(), str(delta).strip()

    @property
    def budget(self) -> Budget:
        """In the units of an account; a limit without a delta is pure."""
        return granted_budget(*self.pair)

    @property
    def shown_delta(self) -> Fraction:
        """The delta at which people see what it holds."""
        return exact_number("delta", self.pair[1]) or USUAL_DELTA

    def __str__(self) -> str:
        return "epsilon={}, delta={}".format(*self.pair)


class PerSpec(_Spec):
    """Limits of every budget period of a length."""

    month: LimitSpec | None = None
    quarter: LimitSpec | None = None
    year: LimitSpec | None = None


class AccountSpec(_Spec):
    """An account of the ledger: a limit for its lifetime, and limits for every year, quarter or month."""

    limit: Annotated[LimitSpec | None, Field(description="What all releases together may spend.")] = None
    per: Annotated[
        PerSpec, Field(description="What the releases of each year, quarter or month may spend.")
    ] = PerSpec()

    @property
    def of_periods(self) -> dict[str, LimitSpec]:
        """The limits of budget periods, by their length."""
        return {length: limit for length, limit in self.per if limit is not None}


class WindowSpec(_Spec):
    """A window of an explicit list: from ``from`` until before ``to``."""

    label: Label
    begins: Annotated[Moment, Field(alias="from")]
    ends: Annotated[Moment, Field(alias="to")]


def _options(names: tuple[str, ...]) -> dict[str, Any]:
    """Fields for options of a request, with its help."""
    return {name: (_type(name) | None, Field(default=None, description=OPTIONS[name].help)) for name in names}


def _type(name: str) -> Any:
    types: dict[str, Any] = {
        "account": Label,
        "method": StrictStr | dict[str, Any],
        "domain": StrictStr | dict[str, Any],
        "workload": dict[str, Number],
        "most": StrictInt | dict[str, StrictInt],
        "memory_limit": StrictInt | StrictStr,
    }
    if name in types:
        return types[name]
    if isinstance(DEFAULTS[name], bool):
        return StrictBool
    kinds: dict[type, Any] = {int: StrictInt, float: StrictInt | StrictFloat}
    if OPTIONS[name].reads is list:
        return Annotated[list[StrictStr], BeforeValidator(_texts)]
    return Number if name in ("epsilon", "delta") else kinds.get(OPTIONS[name].reads, StrictStr)


class _Source(_Spec):
    """What is read: a file, a table of a database, a query, or tables of a database that keys tie."""

    path: Annotated[
        StrictStr | None,
        Field(description="A CSV or Parquet file, glob or folder; {period} or {partition}: one file each."),
    ] = None
    database: Annotated[
        StrictStr | None, Field(description="A DuckDB file; with tables: {period} or {partition}, one each.")
    ] = None
    table: Annotated[StrictStr | None, Field(description="A table or view of the database.")] = None
    tables: Annotated[
        list[StrictStr] | None, Field(description="Tables of the database that keys tie, released together.")
    ] = None
    query: Annotated[StrictStr | None, Field(description="A query over the database or over files.")] = None
    window: Annotated[
        StrictStr | None, Field(description="The column of dates or timestamps that periods go by.")
    ] = None


class _Release(_Spec):
    """A series of releases of a source, one for each period or partition."""

    source: Annotated[StrictStr, Field(description="A name under sources:.")]
    output: Annotated[
        StrictStr,
        Field(
            description="The table or file to write, for tables: a schema, DuckDB file or folder; "
            f"{_PLACEHOLDERS} stand for their values."
        ),
    ]
    cadence: Annotated[
        Literal["hour", "day", "week", "month", "quarter", "year", "once"] | None,
        Field(description="The length of a period."),
    ] = None
    start: Annotated[
        Moment | None, Field(description="Where the first period begins; for once: the day it is due.")
    ] = None
    end: Annotated[Moment | None, Field(description="Where the last period ends.")] = None
    windows: Annotated[
        list[WindowSpec] | None, Field(min_length=1, description="Periods one by one, instead of cadence.")
    ] = None
    wait: Annotated[
        Wait | None, Field(description="How long after its end a period is due: 3 days, 12 hours.")
    ] = None
    windows_per_unit: Annotated[
        StrictInt | None, Field(ge=1, description="A unit counts in at most so many periods, and pays them.")
    ] = None
    cumulative: Annotated[
        StrictBool | None,
        Field(description="Running totals: epsilon and delta are for all periods up to end together."),
    ] = None
    panel: Annotated[
        StrictBool | None,
        Field(
            description="The same synthetic persons in one table that grows: epsilon and delta are for all "
            "periods up to end together."
        ),
    ] = None
    partition_by: Annotated[StrictStr | None, Field(description="A column: one release for each value.")] = (
        None
    )
    partitions: Annotated[list[Label] | None, Field(min_length=1, description="The declared values.")] = None


SourceSpec = create_model("SourceSpec", __base__=_Source, **_options(OF_SOURCE))
SourceSpec.__doc__ = _Source.__doc__
ReleaseSpec = create_model("ReleaseSpec", __base__=_Release, **_options(OF_RELEASE))
ReleaseSpec.__doc__ = _Release.__doc__


class ScheduleDocument(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid", title="dpsyn schedule")

    ledger: Annotated[StrictStr | None, Field(description=OPTIONS["ledger"].help)] = None
    accounts: dict[str, AccountSpec] = {}
    sources: Annotated[dict[str, SourceSpec], Field(min_length=1)]  # type: ignore[valid-type]
    releases: Annotated[dict[str, ReleaseSpec], Field(min_length=1)]  # type: ignore[valid-type]


def json_schema() -> dict[str, Any]:
    """The format as a JSON schema (docs/schedule.schema.json)."""
    return ScheduleDocument.model_json_schema()
