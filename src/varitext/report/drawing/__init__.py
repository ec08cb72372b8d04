"""Charts as records, and the libraries that draw them; where these are missing, one line says what to install."""

from varitext.report.extra import check_drawing_packages

check_drawing_packages()
