"""How the share of documents in each topic depends on covariates such as an author's party or the date.

Estimand: P(document belongs to topic t | covariates), linear in the terms of the formula. We observe only the
memberships r = p(t | X), which carry each document's posterior uncertainty but pull the shares together: an uncertain
document belongs a little to all topics, whatever its covariates. If memberships are calibrated and depend on covariates
through the topic alone,

    E[r | topic t]      =  M_t,     M_tu = sum_d r_dt r_du / sum_d r_dt
    E[r M^-1 | x]       =  P(topic | x)

so corrected memberships r M^-1 (Bolck, Croon and Hagenaars 2004) are regressed on the terms by least squares. Standard
errors are heteroscedasticity-consistent (HC3): uncertain documents have larger residuals and so widen the intervals.
"""

import ast
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import t as student

from varitext.corpora.dates import parse_dates
from varitext.documents.topic_records import Effect, Prediction, Records
from varitext.errors import InputError
from varitext.records import check_choice

if TYPE_CHECKING:
    import pandas

SPLINE = re.compile(r"\bs\(\s*([^\W\d]\w*|`[^`]+`)\s*(?:,\s*(?:df\s*=\s*)?(\d+)\s*)?\)")  # s(date), s(date, 8)
SPLINE_COLUMNS = 5  # of a cubic B-spline
# formulaic evaluates formulas as Python: they may use these functions of formulaic, and arithmetic
FUNCTIONS = ("log", "log2", "log10", "exp", "exp2", "bs", "cc", "cr", "center", "scale", "poly", "lag", "C", "I")
CONTRASTS = "contr"  # C(party, contr.sum)
EXPRESSIONS = (
    *(ast.Expression, ast.Call, ast.keyword, ast.Name, ast.Load, ast.Constant, ast.List, ast.Tuple),
    *(ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop, ast.Compare, ast.cmpop),
)
COVERAGE = 0.95
POINTS = 40  # of a curve
MAX_AVERAGED = 2000  # documents over which a curve or contrast is averaged
MAX_CLASSES = 200  # of a column of texts
MAX_CONDITION = 20  # of M: beyond it, memberships are too uncertain to be corrected, and effects would be inflated
ORIGIN = datetime(1970, 1, 1)


class _Regression(NamedTuple):
    coefficients: np.ndarray  # [P, T]
    covariances: np.ndarray  # [T, P, P]
    degrees: int  # of freedom

    def combined(self, weights: np.ndarray) -> Iterator[tuple[float, ...]]:
        """Estimate, standard error, interval bounds and p of a combination of coefficients, topic by topic."""
        reach = student.ppf((1 + COVERAGE) / 2, self.degrees)
        for coefficients, covariance in zip(self.coefficients.T, self.covariances, strict=True):
            estimate, error = float(weights @ coefficients), float(np.sqrt(max(weights @ covariance @ weights, 0.0)))
            p = float(2 * student.sf(abs(estimate) / error, self.degrees)) if error > 0 else float(estimate == 0)
            yield estimate, error, estimate - reach * error, estimate + reach * error, p


@dataclass(frozen=True)
class Effects:
    """Effects of covariates on topics, as `DocumentModel.effects` estimates them.

    Attributes
    ----------
    formula : str
        The formula, as given.
    documents : int
        Number of documents that were used.
    rows : Records[Effect]
        One per topic and term.
    """

    formula: str
    documents: int
    rows: Records[Effect]
    _regression: _Regression = field(repr=False)
    _design: "_Design" = field(repr=False)
    _topics: tuple[tuple[int, str], ...] = field(repr=False)

    def to_frame(self) -> "pandas.DataFrame":
        """The rows as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
        """
        return self.rows.to_frame()

    def contrast(self, column: str, first: Any, second: Any, at: Mapping[str, Any] | None = None) -> Records[Effect]:
        """The share of each topic at one value of a covariate minus the share at another.

        Parameters
        ----------
        column : str
            The covariate.
        first, second : str, float or date
            The two values to compare.
        at : mapping or None, default=None
            Values of other covariates, such as `{"date": "2020-01-31"}`. Those not named are as in the documents.

        Returns
        -------
        list of Effect
            One per topic; `to_frame()` converts them to a pandas DataFrame.
        """
        held = dict(at or {})
        weights = self._design.average(held | {column: first}) - self._design.average(held | {column: second})
        term = f"{column}: {first} - {second}"
        found = zip(self._topics, self._regression.combined(weights), strict=True)
        return Records(Effect(*topic, term, *values) for topic, values in found)

    def predict(
        self, column: str, by: str | None = None, values: Sequence[Any] | None = None, points: int = POINTS
    ) -> Records[Prediction]:
        """The share of each topic over the values of a covariate, for a curve or bars.

        Parameters
        ----------
        column : str
            The covariate.
        by : str or None, default=None
            A second covariate with classes: one curve for each.
        values : sequence or None, default=None
            Values of `column`. None: its classes, or equal steps over its range.
        points : int, default=40
            Number of these steps.

        Returns
        -------
        list of Prediction
            Sorted by topic, then `by`, then value.
        """
        found: list[Prediction] = []
        for other in [None] if by is None else self._design.values(by, points):
            for value in self._design.values(column, points) if values is None else values:
                weights = self._design.average({column: value} | ({} if by is None else {by: other}))
                shown = value if isinstance(value, (int, float)) else str(value)
                rows = zip(self._topics, self._regression.combined(weights), strict=True)
                found += [
                    Prediction(*topic, column, shown, None if by is None else str(other), *values[:4])
                    for topic, values in rows
                ]
        order = [topic for topic, _ in self._topics]
        return Records(sorted(found, key=lambda one: order.index(one.topic)))  # stable


def estimate_effects(
    formula: str,
    table: "Mapping[str, Sequence[Any]] | pandas.DataFrame",
    memberships: np.ndarray,
    topics: Sequence[tuple[int, str]],
    known: np.ndarray | None = None,
) -> Effects:
    """Effects from memberships [D, T] and covariates of the same documents; `known` marks those with known words."""
    design = _Design.of(formula, table, len(memberships), known)
    regression = regress(design.matrix, corrected_memberships(memberships[design.kept]))
    rows = [
        (place, Effect(*topic, term, *values))
        for column, term in enumerate(design.terms)
        for place, (topic, values) in enumerate(
            zip(topics, regression.combined(np.eye(len(design.terms))[column]), strict=True)
        )
    ]
    by_topic = Records(effect for _, effect in sorted(rows, key=lambda row: row[0]))
    return Effects(formula, len(design.matrix), by_topic, regression, design, tuple(topics))


def corrected_memberships(memberships: np.ndarray) -> np.ndarray:
    """r M^-1, whose mean given the covariates is the share of documents in each topic.  [D, T]"""
    memberships = np.asarray(memberships, np.float64)
    totals = np.maximum(memberships.sum(0), 1e-12)
    confusion = (memberships / totals).T @ memberships  # [T, T]   rows sum to one
    if np.linalg.cond(confusion) > MAX_CONDITION:
        overlap = "topics overlap too much for uncertain documents to be corrected: effects are understated"
        warnings.warn(f"{overlap}. Merge topics (reduce_topics) or use longer documents", UserWarning, stacklevel=4)
        return memberships
    return np.asarray(np.linalg.solve(confusion.T, memberships.T).T)


def regress(design: np.ndarray, shares: np.ndarray) -> _Regression:
    """Regress every column of `shares` [D, T] on `design` [D, P] by least squares, with HC3 covariances."""
    inverse = np.linalg.inv(design.T @ design)
    coefficients = inverse @ (design.T @ shares)
    leverage = np.einsum("dp,pq,dq->d", design, inverse, design)
    residuals = (shares - design @ coefficients) / np.maximum(1 - leverage, 1e-6)[:, None]
    pieces = [(design * residuals[:, [topic]]) @ inverse for topic in range(shares.shape[1])]
    return _Regression(coefficients, np.stack([one.T @ one for one in pieces]), len(design) - design.shape[1])


# Formulas


@dataclass(frozen=True)
class _Design:
    matrix: np.ndarray  # [D, P]
    terms: tuple[str, ...]
    kept: np.ndarray  # rows of the documents that have all covariates
    columns: dict[str, np.ndarray]  # the covariates of these documents
    dates: tuple[str, ...]  # columns that are dates, as days since 1970
    spec: Any  # formulaic's, which computes the same terms for other values

    @classmethod
    def of(
        cls,
        formula: str,
        table: "Mapping[str, Sequence[Any]] | pandas.DataFrame",
        documents: int,
        known: np.ndarray | None,
    ) -> "_Design":
        formulaic, pandas = _libraries()
        right = _right_side(formula)
        try:
            _refuse_code(formulaic, right)
            names = set(map(str, formulaic.Formula(right).required_variables))  # without those inside bs(...)
        except InputError:
            raise
        except Exception as error:
            raise InputError(f"the formula {formula!r} cannot be read: {_first_line(error)}") from None
        names |= {name for name in map(str, table) if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", right)}
        columns, dates = {}, []
        for name in sorted(names | _splined(formula)):
            columns[name], is_date = _column(name, table, documents, in_spline=name in _splined(formula))
            dates += [name] if is_date else []
        complete = np.full(documents, True) if known is None else np.array(known, bool)
        for values in columns.values():
            complete &= ~np.asarray(pandas.isna(values))
        if missing := documents - int(complete.sum()):
            warnings.warn(
                f"{missing:,} of {documents:,} documents lack a covariate or known words, and are left out",
                UserWarning,
                stacklevel=5,
            )
        kept = {name: values[complete] for name, values in columns.items()}
        frame = pandas.DataFrame(kept, index=range(int(complete.sum())))
        try:
            matrix = formulaic.model_matrix(right, frame, context={}) if len(frame) else None
        except Exception as error:
            raise InputError(f"the formula {formula!r} does not fit the table: {_first_line(error)}") from None
        if matrix is None or len(matrix) <= matrix.shape[1]:
            raise InputError(f"the formula {formula!r} has more terms than the {len(frame)} documents can tell apart")
        values = np.asarray(matrix, np.float64)
        if np.linalg.matrix_rank(values) < values.shape[1]:
            raise InputError(
                f"terms of the formula {formula!r} say the same: leave one out, or use fewer columns of a spline, "
                "such as s(date, 3)"
            )
        terms = tuple(map(str, matrix.columns))
        return cls(values, terms, np.flatnonzero(complete), kept, tuple(dates), matrix.model_spec)

    def values(self, column: str, points: int) -> list[Any]:
        """The classes of a column, or equal steps over its range."""
        values = self._known(column)
        if not np.issubdtype(values.dtype, np.number):
            return sorted(set(values.tolist()), key=str)
        steps = np.linspace(values.min(), values.max(), points).tolist()
        return [_date_of(step) for step in steps] if column in self.dates else steps

    def average(self, fixed: Mapping[str, Any]) -> np.ndarray:
        """The mean row of the design if these columns had these values in all documents.  [P]"""
        _, pandas = _libraries()
        step = max(1, len(self.matrix) // MAX_AVERAGED)
        columns = {name: values[::step] for name, values in self.columns.items()}
        for name, value in fixed.items():
            columns[name] = np.full(len(columns[name]), self._checked(name, value), self._known(name).dtype)
        rows: np.ndarray = np.asarray(self.spec.get_model_matrix(pandas.DataFrame(columns)), np.float64)
        return np.asarray(rows.mean(0))

    def _known(self, column: str) -> np.ndarray:
        check_choice("column", column, tuple(self.columns))
        return self.columns[column]

    def _checked(self, column: str, value: Any) -> Any:
        values = self._known(column)
        if column in self.dates:
            value = _days(parse_dates([value], column, "effects"))[0]
        if np.issubdtype(values.dtype, np.number):
            try:
                value = float(value)
            except (TypeError, ValueError):
                raise InputError(f"{column!r} is a column of numbers; {value!r} is not one") from None
            return float(np.clip(value, values.min(), values.max()))  # a spline does not extend beyond its documents
        if value not in (classes := set(values.tolist())):
            shown = ", ".join(sorted(map(str, classes))[:10])
            raise InputError(f"no document has {value!r} in {column!r}; there are {shown}")
        return value


def _libraries() -> tuple[Any, Any]:
    try:
        import formulaic
        import pandas
    except ImportError:
        raise InputError("effects need formulaic: pip install 'varitext[effects]'") from None
    return formulaic, pandas


def _right_side(formula: str) -> str:
    """The formula to the right of "topic ~", with s(x) as one of formulaic's B-splines."""
    left, tilde, right = formula.partition("~")
    if tilde and left.strip() not in ("", "topic", "topics"):
        raise InputError(f"the formula {formula!r} must begin with 'topic ~': every topic is on its left side")
    right = (right if tilde else left).strip()
    if not right:
        raise InputError("the formula has no terms. Example: topic ~ party + s(date)")
    return SPLINE.sub(lambda found: f"bs({found[1]}, df={max(3, int(found[2] or SPLINE_COLUMNS))})", right)


def _refuse_code(formulaic: Any, formula: str) -> None:
    """Formulas are untrusted input: they may call formulaic's functions on columns, and nothing else."""
    for token in formulaic.parser.DefaultFormulaParser().get_tokens(formula):
        if token.kind is token.Kind.PYTHON:
            tree = ast.parse(re.sub("`[^`]*`", "column", token.token), mode="eval")
            if not all(map(_is_harmless, ast.walk(tree))):
                raise InputError(
                    f"the formula has {token.token!r}: besides columns and arithmetic it may have "
                    + ", ".join(FUNCTIONS)
                )


def _is_harmless(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in FUNCTIONS
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute)  # which comes next
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name) and node.value.id == CONTRASTS and not node.attr.startswith("_")
    return isinstance(node, EXPRESSIONS)


def _splined(formula: str) -> set[str]:
    return {found[1].strip("`") for found in SPLINE.finditer(formula)}


def _column(name: str, table: Any, documents: int, in_spline: bool) -> tuple[np.ndarray, bool]:
    """The values of a column, and whether they are dates; numbers as floats, dates as days, all else as text."""
    _, pandas = _libraries()
    if name not in table:
        raise InputError(f"the table has no column {name!r}. Columns: {', '.join(map(str, table)) or 'none'}")
    values = pandas.Series(list(table[name]))
    if len(values) != documents:
        raise InputError(f"column {name!r} has {len(values):,} rows for {documents:,} documents")
    values = values.where(values.astype(str).str.strip() != "", None)
    numbers = pandas.to_numeric(values, errors="coerce")
    is_time = pandas.api.types.is_datetime64_any_dtype(values)
    if not is_time and bool((numbers.notna() == values.notna()).all()):
        return np.asarray(numbers, np.float64), False
    if in_spline or is_time:
        given = [None if pandas.isna(one) else one for one in values]
        return _days(parse_dates(given, name, "the table")), True
    if (classes := values.nunique()) > MAX_CLASSES:
        raise InputError(
            f"column {name!r} has {classes:,} different texts, more than {MAX_CLASSES} classes; a date is s({name})"
        )
    return np.array([None if pandas.isna(one) else str(one) for one in values], object), False


def _days(dates: Sequence[datetime | None]) -> np.ndarray:
    return np.array([np.nan if one is None else (one - ORIGIN) / timedelta(days=1) for one in dates])


def _date_of(days: float) -> str:
    return f"{ORIGIN + timedelta(days=days):%Y-%m-%d}"


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
