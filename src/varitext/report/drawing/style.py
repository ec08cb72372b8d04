"""Colours that all figures share: mid-tones, readable on light and on dark paper."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"
INK = "#30363d"  # on white
MIDDLE_INK = "#717882"  # readable on white and on near-black; the page swaps in its own ink
ACCENT = "#3f7cd6"
WARM = "#d9772e"
FAINT = "#8b929c"

# Ten hues, each strong and then light: neighbours in the list differ in hue, all are mid-tones.
PALETTE = (
    *("#3b6fd4", "#d9722e", "#2e9a5b", "#cf4452", "#8459c9", "#1496a8", "#b8901c", "#c94f94", "#6f8a26", "#94694d"),
    *("#7fa3ee", "#f0a878", "#74c69b", "#ee8b93", "#b79ae6", "#6cc7d4", "#dcc05f", "#e791c0", "#a8c063", "#c4a084"),
)
