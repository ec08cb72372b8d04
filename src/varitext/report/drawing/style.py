"""The look that all plotly figures share: quiet, transparent, readable on light and on dark paper."""

from collections.abc import Sequence

import plotly.graph_objects as go

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"
MIDDLE_INK = "#717882"  # readable on white and on near-black; the page swaps in its own ink
GRID = "rgba(128, 136, 148, 0.22)"
ACCENT = "#3f7cd6"
WARM = "#d9772e"
FAINT = "#8b929c"

# Ten hues, each strong and then light: neighbours in the list differ in hue, all are mid-tones.
PALETTE = (
    *("#3b6fd4", "#d9722e", "#2e9a5b", "#cf4452", "#8459c9", "#1496a8", "#b8901c", "#c94f94", "#6f8a26", "#94694d"),
    *("#7fa3ee", "#f0a878", "#74c69b", "#ee8b93", "#b79ae6", "#6cc7d4", "#dcc05f", "#e791c0", "#a8c063", "#c4a084"),
)


def quiet_figure(traces: Sequence[go.Scatter | go.Bar], height: int) -> go.Figure:
    """A figure without plotly's template: no frames, faint grid, the page's font."""
    axis = {"gridcolor": GRID, "zeroline": False, "automargin": True, "title": {"standoff": 10, "font": {"size": 13}}}
    return go.Figure(
        data=list(traces),
        layout={
            "template": "none",
            "height": height,
            "margin": {"l": 12, "r": 14, "t": 14, "b": 12},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"family": FONT, "size": 13, "color": MIDDLE_INK},
            "hoverlabel": {"align": "left", "font": {"family": FONT, "size": 13}},
            "showlegend": False,
            "xaxis": axis,
            "yaxis": axis,
        },
    )
