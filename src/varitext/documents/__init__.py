"""DocumentModel, the class that users work with, and the modules that support it."""
