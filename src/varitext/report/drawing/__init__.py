"""How figures are drawn, on the page and into files."""
