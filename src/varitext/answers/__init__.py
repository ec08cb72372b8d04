"""AnswerRanker, the class that users work with, and its parts."""
