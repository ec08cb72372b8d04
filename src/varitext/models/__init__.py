"""One model per file: `documents/` and `answers/`, each with its registry."""
