"""What the commands print: results on standard output, the rest on standard error."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from varitext.answers.ranking import AnswerEvaluation, RankedCandidate, Ranking
    from varitext.corpora import CorpusStatus, Documents
    from varitext.documents.evaluation import DocumentEvaluation
    from varitext.evaluation.perplexity import PerplexityRecord
    from varitext.evaluation.ranking import RankingComparison

ATTENDED = 4  # words of each candidate that are shown, those with most attention
NOTEWORTHY = 1.2  # times the attention that each would get if all got the same


def print_corpus(status: "CorpusStatus") -> None:
    print(f"{status.name}\n  {status.description}\n  {status.where}")
    if status.sha256:
        print(f"  sha256 {status.sha256}")


def print_record(record: "PerplexityRecord", corpus: str) -> None:
    low, high = record.per_document_interval_95
    nats = record.kl_per_word + record.reconstruction_per_word
    rows = [
        ("per-document perplexity", record.per_document_perplexity, f"95 % interval {low:.1f} to {high:.1f}"),
        ("importance-weighted", record.iwae_per_document_perplexity, f"tighter bound, {record.n_samples} samples"),
        ("unigram model", record.unigram_per_document_perplexity, f"ratio {record.ratio_to_unigram:.3f}"),
        ("per-corpus perplexity", record.corpus_perplexity, f"importance-weighted {record.iwae_corpus_perplexity:.1f}"),
        ("KL", record.kl_per_document, f"nats per document; {record.kl_per_word:.3f} of {nats:.3f} per word"),
    ]
    if record.kind != "bound":  # then there is nothing tighter, and no KL
        rows = [rows[0], rows[2], ("per-corpus perplexity", record.corpus_perplexity, record.figure)]
    if record.standard_error:
        rows.insert(1, ("standard error", record.standard_error, "of that, from the estimate itself"))
    left_out = f" ({record.n_empty_documents} without a known word left out)" if record.n_empty_documents else ""
    likelihood = "" if record.likelihood == "multinomial" else f"; likelihood: {record.likelihood}"
    print(f"{corpus}: {record.n_documents} documents{left_out}, {record.n_tokens} words{likelihood}")
    for name, value, note in rows:
        print(f"  {name:24} {value:8.1f}   {note}")


def print_document_evaluation(found: "DocumentEvaluation") -> None:
    """What stands below the perplexity."""
    completion, npmi, c_v, diversity = found.completion, found.npmi, found.c_v, found.diversity
    ratio = f"hidden half given the other, {completion.estimator}; ratio to unigram {completion.ratio_to_unigram:.3f}"
    window = f"windows of {npmi.window} words" if npmi.window else "whole documents"
    rows = [
        ("completion perplexity", f"{completion.per_document_perplexity:8.1f}", ratio),
        ("NPMI of topics", f"{npmi.coherence:8.3f}", f"{npmi.n_topics} topics, {window}"),
    ]
    if c_v:
        rows.append(("C_V of topics", f"{c_v.coherence:8.3f}", f"windows of {c_v.window} words"))
    rows.append(("unique words", f"{diversity.unique_words:8.3f}", f"first {diversity.words_per_topic} of each topic"))
    if retrieval := found.retrieval:
        chance = f"of the first 2 % retrieved; by chance {retrieval.by_chance:.3f}"
        rows.append(("precision", f"{retrieval.precision_at_2_percent:8.3f}", chance))
    if classes := found.classification:
        note = f"macro F1 {classes.macro_f1:.3f}; most frequent label {classes.majority_accuracy:.3f}"
        rows.append(("classification accuracy", f"{classes.accuracy:8.3f}", note))
    for name, value, note in rows:
        print(f"  {name:24} {value}   {note}")


def print_neighbours(neighbours: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        return print_json({"similar": neighbours})
    for entry in neighbours:
        similarity, *columns = entry.values()
        print(f"{similarity:6.3f}", *columns, sep="  ")


def document_entry(documents: "Documents", index: int, similarity: float) -> dict[str, Any]:
    entry: dict[str, Any] = {"similarity": similarity, "index": index}
    if documents.labels is not None:
        entry["label"] = documents.labels[index]
    if documents.texts is not None:
        entry["text"] = _first_words(documents.texts[index])
    return entry


def print_answer_evaluation(record: "AnswerEvaluation") -> None:
    ranking, calibration, uncertainty = record.ranking, record.calibration, record.uncertainty
    maps, mrrs = ranking.map_interval_95, ranking.mrr_interval_95
    promise = f"promise {uncertainty.nominal_coverage:.4f}"
    rows = [
        ("MAP", ranking.map, f"95 % interval {maps[0]:.3f} to {maps[1]:.3f}; ties: {ranking.ties}"),
        ("MRR", ranking.mrr, f"95 % interval {mrrs[0]:.3f} to {mrrs[1]:.3f}"),
        ("log loss", calibration.log_loss, f"nats per pair{_of_samples(record.n_samples)}"),
        ("Brier score", calibration.brier, f"{calibration.share_right:.1%} of the pairs are right"),
        ("calibration error", calibration.ece, f"expected, over {calibration.ece_binning} bins"),
        ("top answer is wrong", calibration.risk, f"{calibration.risk_of_surer_half:.4f} among the surer half"),
        ("rank intervals hold", uncertainty.rank_interval_coverage, f"of the ranks under known labels; they {promise}"),
    ]
    if no_answer := record.no_answer:
        share, error = f"{no_answer.share_without_answer:.4f} of all questions have none", no_answer.none_ece
        chance = f"calibration error {error:.4f}, by chance {no_answer.none_ece_by_chance:.4f}"
        rows.append(("P(no right answer)", no_answer.mean_probability_none, f"{share}; {chance}"))
    left_out = f" ({ranking.n_questions_left_out} left out)" if ranking.n_questions_left_out else ""
    print(f"{record.corpus} ({record.part}): {ranking.n_questions} questions{left_out}, {ranking.n_pairs} pairs")
    print(f"  {ranking.protocol}: {ranking.questions}")
    for name, value, note in rows:
        print(f"  {name:20} {value:8.4f}   {note}")
    groups = (f"{one.question_word} {one.map:.3f} ({one.n_questions})" for one in record.by_question_word)
    print(f"  MAP by question word: {', '.join(groups)}")


def print_ranking(ranking: "Ranking", shown: int) -> None:
    """A line for each candidate, and under it what the model looked at."""
    total = len(ranking.candidates)
    if not ranking.answered:
        print(f"no answer: the first candidate is right with probability {ranking.probability_top:.3f}")
    print(f"rank  right   best  90 % of ranks   {total} candidates{_of_samples(ranking.n_samples)}")
    for one in ranking.candidates[:shown]:
        low, high = one.rank_interval
        ranks = str(low) if low == high else f"{low} to {high}"
        text = _first_words(one.text) if one.known else f"(no known word) {_first_words(one.text)}".rstrip()
        print(f"{one.rank:4}  {one.probability:.3f}  {one.probability_best:.3f}  {ranks:13}   {text}")
        if one.known and one.attention_mean is not None:
            print(f"{'':36}{_most_attended(one)}")
    if ranking.probability_none is not None:
        print(f"none of these is right with probability {ranking.probability_none:.3f}")
    if total > shown:
        print(f"and {total - shown} more: -n {total} shows all")


def _of_samples(n_samples: int) -> str:
    """Nothing for one: it is all that a model without a latent has."""
    return f", {n_samples} samples" if n_samples > 1 else ""


def _most_attended(candidate: "RankedCandidate") -> str:
    """The words with most attention, as multiples of equal weights, and its spread over samples where there is one."""
    from varitext.evaluation.attention import times_equal

    mean, std = candidate.attention_mean or (), candidate.attention_std or ()
    weights = zip(candidate.words, times_equal(mean), (len(std) * one for one in std), strict=True)
    best = [one for one in sorted(weights, key=lambda one: -one[1])[:ATTENDED] if one[1] >= NOTEWORTHY]
    said = (f"{word} {mean:.1f}x" + (f" ± {std:.1f}" if std >= 0.05 else "") for word, mean, std in best)
    return ", ".join(said) or "(even attention)"


def print_comparison(
    records: Sequence["AnswerEvaluation"], comparison: "RankingComparison", folders: Sequence[Path]
) -> None:
    first, second = (record.ranking for record in records)
    print(f"{records[0].corpus} ({records[0].part}): {first.n_questions} questions, {first.protocol}")
    width = max(12, *(len(str(folder)) for folder in folders))
    print(f"       {folders[0]!s:>{width}}  {folders[1]!s:>{width}}  difference  p")
    for name, test in zip(("MAP", "MRR"), comparison, strict=True):
        values = (getattr(record, name.lower()) for record in (first, second))
        columns = "  ".join(f"{value:{width}.4f}" for value in values)
        print(f"  {name}  {columns}  {test.difference:+10.4f}  {test.p_value:.2g}")
    drawn = "all" if comparison.map.exact else f"{comparison.map.n_assignments:,} random"
    print(f"  paired randomisation test over questions, {drawn} assignments")


def _first_words(text: str, length: int = 100) -> str:
    line = " ".join(text[: 5 * length].split())
    return line if len(line) <= length else line[:length].rsplit(" ", 1)[0] + " ..."


def print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value, ensure_ascii=(sys.stdout.encoding or "").lower() not in ("utf-8", "utf8")))


def log(message: str) -> None:
    print(message, file=sys.stderr)
