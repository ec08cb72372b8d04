"""DocumentModel, what a user holds, and what surrounds it."""
