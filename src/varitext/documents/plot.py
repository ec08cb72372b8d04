"""`model.plot`: plotly figures of a document model, for notebooks. Plotly is in the extra `report`."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from varitext.charts.colours import ACCENT, MIDDLE_INK
from varitext.charts.records import Axis, Chart, Curve, Intervals, Map, for_plotly, one_line
from varitext.corpora import load_again
from varitext.corpora.dates import bins_of, parse_dates
from varitext.documents.charts import (
    NAME_LENGTH,
    TopicModel,
    choose_documents,
    document_map,
    label_groups,
    share_charts,
    topic_charts,
    topic_groups,
)
from varitext.documents.topic_model import regions_of
from varitext.documents.topic_records import TopicInfo
from varitext.errors import InputError
from varitext.evaluation.map_layout import lay_out, towards_topics
from varitext.evaluation.shares import NO_VALUE, Bins
from varitext.evaluation.vectors import unit_rows

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

SHOWN = 12  # topics, the largest


class Effect(Protocol):
    """The change in a topic's prevalence due to one term of a formula."""

    @property
    def topic(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def term(self) -> str: ...
    @property
    def estimate(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


class EffectRows(Protocol):
    """The part of what `DocumentModel.effects` returns that figures need."""

    @property
    def rows(self) -> Sequence[Effect]: ...


class DocumentPlots:
    """Figures of a fitted model: `model.plot.map(texts)`. A notebook displays the figure that a method returns.

    Parameters
    ----------
    model : DocumentModel
        A fitted model.

    Examples
    --------
    >>> from varitext import DocumentModel
    >>> texts = ["the cat sat on the warm mat", "a dog ran in the green park", "cats like warm mats"] * 6
    >>> model = DocumentModel(latent_dim=2, epochs=1, threads=1).fit(texts)
    >>> figure = model.plot.map(texts)  # doctest: +SKIP
    """

    def __init__(self, model: TopicModel):
        self._model = model

    def map(self, X: Any = None, labels: Sequence[str] | None = None, titles: Sequence[str] | None = None) -> "Figure":
        """A map of at most 4,000 documents, drawn with the seed: dots coloured by topic, and the names of the topics.

        Parameters
        ----------
        X : documents, optional
            Default: the training documents, if the model was fitted on a corpus or a file that still exists.
        labels : sequence of str, optional
            One label per document: colours follow the labels instead of the topics.
        titles : sequence of str, optional
            One text per document, shown for its dot (default: the documents, if they are texts).

        Returns
        -------
        plotly.graph_objects.Figure
        """
        _check_plotly()
        X = self._training_documents() if X is None else X
        if titles is None:
            texts = getattr(X, "texts", X)
            titles = texts if isinstance(texts, list | tuple) and all(isinstance(one, str) for one in texts) else None
        sample = choose_documents(self._model, X, labels, titles)
        topics = self._model.topics()
        places = lay_out(towards_topics(sample.mean, sample.memberships, self._centres()), self._model.seed)
        groups = topic_groups(sample, topics, places) if sample.labels is None else label_groups(sample.labels)
        return _figure(document_map(sample, topics, places, groups))

    def topics(self, n: int = SHOWN) -> "Figure":
        """The words of the `n` largest topics, with p(word | topic)."""
        return _panels(topic_charts(self._model.topics(), n), columns=3)

    def hierarchy(self) -> "Figure":
        """The tree of topics; similar topics merge at a small distance 1 - cosine."""
        topics = self._model.topics()
        if len(topics) < 2:
            raise InputError("a hierarchy needs at least two topics")
        _check_plotly()
        from varitext.charts.plotly_figures import tree_figure

        places: dict[tuple[int, ...], tuple[float, float]] = {}  # x and y at which each cluster ends
        order = [topic.number for topic in self._by_likeness()]
        for y, number in enumerate(order):
            places[(number,)] = (0.0, float(y))
        branches = []
        for merge in self._model.topic_tree():
            (x0, y0), (x1, y1) = places[merge.left], places[merge.right]
            branches.append(([x0, merge.distance, merge.distance, x1], [y0, y0, y1, y1]))
            places[tuple(sorted(merge.left + merge.right))] = (merge.distance, (y0 + y1) / 2)
        names = {topic.number: one_line(topic.name, NAME_LENGTH) for topic in topics}
        return tree_figure([names[number] for number in order], branches, Axis("1 - cosine", from_zero=True))

    def similarity(self) -> "Figure":
        """The cosine of every pair of topics, with similar topics side by side."""
        _check_plotly()
        from varitext.charts.plotly_figures import matrix_figure

        ordered = self._by_likeness()
        place = {topic.number: row for row, topic in enumerate(self._model.topics())}
        rows = [place[topic.number] for topic in ordered]
        cosines = self._cosines()[np.ix_(rows, rows)]
        return matrix_figure([one_line(topic.name, NAME_LENGTH) for topic in ordered], cosines, "cosine")

    def over_time(self, X: Any, dates: Sequence[object], bins: str | None = None, n: int = SHOWN) -> "Figure":
        """Shares of the `n` largest topics by period with 95 % intervals; periods without documents are gaps.

        Parameters
        ----------
        X : documents
        dates : sequence
            One date per document: dates, or texts such as 2026-01-31 or 2026.
        bins : {"day", "week", "month", "quarter", "year"} or None, default=None
            None: chosen to suit the range of the dates.
        n : int, default=12

        Returns
        -------
        plotly.graph_objects.Figure
        """
        _check_plotly()
        names = bins_of(parse_dates(dates, "dates", "over_time"), bins)
        shares = self._model.topic_shares(X, [name or NO_VALUE for name in names])
        kept = [one for one in shares if one.value != NO_VALUE]
        return _panels(share_charts(kept, over_time=True, most=n))

    def by(self, X: Any, values: Sequence[object], bins: Bins = None, n: int = SHOWN) -> "Figure":
        """Shares of the `n` largest topics by class or by bins of a number, with 95 % intervals.

        Parameters
        ----------
        X : documents
        values : sequence
            One value per document.
        bins : int, str, sequence of float or None, default=None
            As for `DocumentModel.topic_shares`.
        n : int, default=12

        Returns
        -------
        plotly.graph_objects.Figure
        """
        _check_plotly()
        return _panels(share_charts(self._model.topic_shares(X, values, bins), over_time=False, most=n))

    def k_curve(self) -> "Figure":
        """The held-out log-likelihood by number of topics, from which the number was chosen.

        Bars are standard errors of the difference to the best number.
        """
        choice = regions_of(self._model.fitted_).choice
        if not choice.log_likelihoods:
            raise InputError(f"the number of topics was not searched for ({choice.how}): fit with n_topics=None")
        numbers, values = (np.array(column) for column in zip(*choice.log_likelihoods, strict=True))
        error = np.array(choice.standard_errors, np.float64)
        interval = (values - error, values + error) if len(error) == len(values) else None
        hover = [f"{number} topics: {value:.2f}" for number, value in zip(numbers, values, strict=True)]
        axes = (Axis("topics"), Axis("held-out log-likelihood, nats per document"))
        return _figure(Curve(numbers, values, axes, hover, marker=7, interval=interval, title=f"Topics: {choice.how}"))

    def effects(self, effects: EffectRows, n: int = SHOWN) -> "Figure":
        """Estimated effects: for each term, the estimates for the `n` topics that it changes most, with intervals.

        Parameters
        ----------
        effects : Effects
            Its rows have a topic, name, term, estimate, low and high; the intercept is left out.
        n : int, default=12

        Returns
        -------
        plotly.graph_objects.Figure
        """
        by_term: dict[str, list[Effect]] = {}
        for one in effects.rows:
            if one.term != "Intercept":
                by_term.setdefault(one.term, []).append(one)
        if not by_term:
            raise InputError("there are no effects to show")
        strongest = {term: sorted(found, key=lambda one: -abs(one.estimate))[:n] for term, found in by_term.items()}
        return _panels([_effect_chart(term, found) for term, found in strongest.items()])

    # Inside

    def _training_documents(self) -> Any:
        corpus = self._model.fitted_.corpus
        if not corpus:
            raise InputError("the model does not keep its training documents: pass them, as in model.plot.map(texts)")
        return load_again(corpus, corpus["part"], None)

    def _centres(self) -> np.ndarray:
        return regions_of(self._model.fitted_).group_centres()

    def _cosines(self) -> np.ndarray:
        unit = unit_rows(self._centres())
        return np.asarray(unit @ unit.T)

    def _by_likeness(self) -> list[TopicInfo]:
        """The topics in the order of the leaves of their tree."""
        topics = self._model.topics()
        if len(topics) < 3:
            return list(topics)
        apart = np.maximum(1 - self._cosines(), 0)
        np.fill_diagonal(apart, 0)
        return [topics[place] for place in leaves_list(linkage(squareform(apart, checks=False), "average"))]


def _effect_chart(term: str, found: Sequence[Effect]) -> Intervals:
    estimate, low, high = np.array([(one.estimate, one.low, one.high) for one in found], np.float64).T
    names = [one_line(one.name, NAME_LENGTH) for one in found]
    hover = [f"{for_plotly(one.name)}: {one.estimate:+.3g} [{one.low:+.3g}, {one.high:+.3g}]" for one in found]
    clear = (low > 0) | (high < 0)
    colours = [ACCENT if one else MIDDLE_INK for one in clear]
    room = 0.05 * float(high.max() - low.min())
    axis = Axis("change of the topic's share", limits=(float(low.min()) - room, float(high.max()) + room))
    return Intervals(names, estimate, low, high, colours, hover, axis, 24, zero_line=True, title=one_line(term))


def _figure(chart: Chart | Map) -> "Figure":
    _check_plotly()
    from varitext.charts.plotly_figures import plotly_figure

    return plotly_figure(chart)


def _panels(charts: Sequence[Chart], columns: int = 2) -> "Figure":
    if not charts:
        raise InputError("there is nothing to show")
    _check_plotly()
    from varitext.charts.plotly_figures import panel_figure

    return panel_figure(charts, columns)


def _check_plotly() -> None:
    if find_spec("plotly") is None:
        raise InputError("figures need plotly: pip install 'varitext[report]'")
