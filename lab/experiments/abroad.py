"""Questions unlike those of the fit: how often a ranker notices, how well it ranks there, and what widening changes.

All but the last set are made of the test parts of our own corpora: their own lists; search, the 50 best by BM25 of all
sentences; passages of five neighbouring sentences; and questions as keywords, without question words and stop words.
Forum replies are from 20 Newsgroups: a quoted question, the paragraph that replies to it, and nine other replies in the
same group. Every forum question has its answer among the candidates.
"""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from varitext.answers.baselines import corpus_bm25
from varitext.answers.familiarity import list_statistics
from varitext.answers.index import CandidateIndex
from varitext.answers.prediction import log_odds
from varitext.answers.ranker import AnswerRanker
from varitext.answers.ranking import RankingPosterior, ranking_posterior
from varitext.corpora import load_documents
from varitext.corpora.question_answers import (
    Candidate,
    Question,
    QuestionAnswers,
    canonical_order,
    sentence_words,
)
from varitext.evaluation.calibration import expected_calibration_error
from varitext.evaluation.ranking import QUESTION_WORDS, question_values
from varitext.models.answers.features.overlap import STOP_WORDS, is_word
from varitext.reproduce.answer_fits import fitted_ranker, load_part
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table, results

RANKERS = (("compare", "wikiqa"), ("overlap", "wikiqa"), ("overlap", "qasent"))  # the model, and what it is fitted on
FOUND = 50  # sentences by BM25
PASSAGE = 5  # sentences
REPLIES, FORUM_QUESTIONS = 10, 300
QUOTED = re.compile(r"((?:^>[^\n]*\n)+)\s*\n((?:[^>\n][^\n]*\n)+)", re.MULTILINE)  # quoted lines, and the reply
MARKS = re.compile(r"^[>\s|:]+")


def measure(model: str, corpus: str, plan: Plan) -> dict[str, Any]:
    ranker = fitted_ranker(corpus, model, 0, plan)
    return {name: _measured(ranker, questions) for name, questions in other_questions(plan)}


def _measured(ranker: AnswerRanker, questions: QuestionAnswers) -> dict[str, Any]:
    """Measures of the questions that the ranker calls unfamiliar, and of the others."""
    questions = canonical_order(questions).question_answers
    fitted = ranker.fitted_
    found = fitted.predict(questions, ranker)
    assert fitted.familiarity is not None
    statistics = list_statistics(questions, fitted.overlap, log_odds(found.probability))
    unfamiliar = fitted.familiarity.unfamiliar(statistics)
    plain, widened = (ranking_posterior(fitted.joint, found, questions, why) for why in ((), unfamiliar))
    scores = {"ranker": found.probability, "bm25": corpus_bm25(questions)}
    precision = {name: question_values(one, questions.labels, questions.groups) for name, one in scores.items()}
    noticed = np.array([one is not None for one in unfamiliar])
    record: dict[str, Any] = {"n_questions": len(noticed), "unfamiliar": round(float(noticed.mean()), 4)}
    for name, chosen in (("noticed", noticed), ("others", ~noticed)):
        answerable = chosen & (precision["ranker"].n_right > 0)
        record[name] = {f"{one}_map": _mean(values.average_precision[answerable]) for one, values in precision.items()}
        for kind, posterior in (("plain", plain), ("widened", widened)):
            record[name][kind] = _calibration(posterior, questions, chosen)
    return record


def _calibration(posterior: RankingPosterior, questions: QuestionAnswers, chosen: np.ndarray) -> dict[str, Any]:
    rows = chosen[questions.groups]
    if not chosen.any() or posterior.none is None:
        return {}
    none = np.bincount(questions.groups, questions.labels) == 0
    return {
        "ece": round(expected_calibration_error(posterior.right[rows], questions.labels[rows]), 4),
        "none": _mean(posterior.none[chosen]),
        "true_none": _mean(none[chosen]),
        "none_log_loss": _mean(-np.log(np.where(none, posterior.none, 1 - posterior.none))[chosen]),
    }


def _mean(values: np.ndarray) -> float | None:
    return round(float(values.mean()), 4) if len(values) else None


# The questions


def other_questions(plan: Plan) -> Iterator[tuple[str, QuestionAnswers]]:
    wikiqa, qasent = (load_part(corpus, "test", plan) for corpus in ("wikiqa", "qasent"))
    yield "WikiQA", wikiqa
    yield "QASent", qasent
    yield "WikiQA, search", searched(wikiqa)
    yield "QASent, search", searched(qasent)
    yield "WikiQA, passages", passages(wikiqa)
    yield "WikiQA, keywords", keywords(wikiqa)
    articles = load_documents("20newsgroups", "test", data_dir=plan.data_dir)
    yield "forum replies", forum(list(articles.texts or ()), list(articles.labels or ()))


def searched(questions: QuestionAnswers) -> QuestionAnswers:
    """Each question with the sentences that BM25 finds among those of all questions."""
    sentence = {one.text: one for question in questions.questions for one in question.candidates}
    texts, made = list(sentence), []
    index = CandidateIndex(texts)
    for question in questions.questions:
        right = {one.text for one in question.candidates if one.label}
        found = (sentence[texts[place]] for place in index.search(question.text, FOUND))
        candidates = tuple(one._replace(label=int(one.text in right), position=None) for one in found)
        made += [question._replace(candidates=candidates)] if candidates else []
    return QuestionAnswers(questions.name, questions.part, (), tuple(made))


def passages(questions: QuestionAnswers) -> QuestionAnswers:
    """Questions with neighbouring sentences joined into passages; those with only one passage are left out."""
    made = []
    for question in questions.questions:
        in_order = sorted(question.candidates, key=lambda one: one.position or 0)
        joined = tuple(_joined(in_order[first : first + PASSAGE]) for first in range(0, len(in_order), PASSAGE))
        made += [question._replace(candidates=joined)] if len(joined) > 1 else []
    return QuestionAnswers(questions.name, questions.part, (), tuple(made))


def _joined(sentences: list[Candidate]) -> Candidate:
    words = tuple(word for one in sentences for word in one.words)
    label = int(any(one.label for one in sentences))
    return Candidate(sentences[0].id, words, " ".join(one.text for one in sentences), label)


def keywords(questions: QuestionAnswers) -> QuestionAnswers:
    dropped = STOP_WORDS.union(QUESTION_WORDS)
    made = []
    for question in questions.questions:
        words = tuple(word for word in question.words if is_word(word) and word.lower() not in dropped)
        made.append(question._replace(words=words, text=" ".join(words)) if words else question)
    return QuestionAnswers(questions.name, questions.part, (), tuple(made))


def forum(texts: list[str], groups: list[str]) -> QuestionAnswers:
    generator, made = np.random.default_rng(0), []
    replies: dict[str, list[tuple[str, str]]] = {}
    for text, group in zip(texts, groups, strict=True):
        replies.setdefault(group, []).extend(_quoted_questions(text))
    for group, pairs in replies.items():
        for number, (asked, reply) in enumerate(pairs):
            others = [other for other in generator.permutation(len(pairs)).tolist() if other != number]
            answers = [(reply, 1), *((pairs[other][1], 0) for other in others[: REPLIES - 1])]
            candidates = tuple(
                Candidate(str(place), sentence_words(answer), answer, label)
                for place, (answer, label) in enumerate(answers)
            )
            made.append(Question(f"{group}-{number}", sentence_words(asked), asked, candidates))
    made = [one for one in made if len(one.candidates) == REPLIES]
    chosen = sorted(generator.permutation(len(made))[:FORUM_QUESTIONS].tolist())
    return QuestionAnswers("20newsgroups", "test", (), tuple(made[place] for place in chosen))


def _quoted_questions(text: str) -> Iterator[tuple[str, str]]:
    """Quoted sentences that end in a question mark, and the paragraph right below."""
    for quoted, reply in QUOTED.findall(text):
        last = re.split(r"(?<=[.!?])\s+", " ".join(MARKS.sub("", line) for line in quoted.splitlines()).strip())[-1]
        if last.endswith("?") and 4 <= len(last.split()) <= 40 and len(reply.split()) > 5:
            yield last, " ".join(reply.split())


# The table


def runs(plan: Plan) -> Iterator[Run]:
    for model, corpus in RANKERS:
        yield Run({"model": model, "corpus": corpus}, lambda model=model, corpus=corpus: measure(model, corpus, plan))


def table(records: list[Record]) -> str:
    head = ["fitted", "questions", "noticed", "MAP, BM25's", "ECE, widened", "P(none), widened, true"]
    head += ["others: MAP, BM25's", "ECE", "P(none), true"]
    rows = []
    for model, corpus in RANKERS:
        for found in results(records, model=model, corpus=corpus):
            rows += [[f"`{model}` on {corpus}", name, *_cells(one)] for name, one in found.items()]
    return markdown_table(head, rows)


def _cells(found: dict[str, Any]) -> Iterator[str]:
    noticed, others = found["noticed"], found["others"]
    yield f"{found['unfamiliar']:.1%} of {found['n_questions']}"
    yield _figures(noticed["ranker_map"], noticed["bm25_map"])
    plain, widened, other = noticed["plain"], noticed["widened"], others["plain"]
    yield _figures(plain.get("ece"), widened.get("ece"))
    yield _figures(plain.get("none"), widened.get("none"), plain.get("true_none"))
    yield _figures(others["ranker_map"], others["bm25_map"])
    yield _figures(other.get("ece"))
    yield _figures(other.get("none"), other.get("true_none"))


def _figures(*values: float | None) -> str:
    return ", ".join("" if one is None else f"{one:.3f}" for one in values).strip(", ")


EXPERIMENT = Experiment("abroad", "rankers on questions unlike those they were fitted on", runs, table)
