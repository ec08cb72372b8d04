"""Mutants that no test can tell from the code, each with the reason: they count neither as killed nor as survived."""

import re
from typing import get_args

from lab.mutants.operators import Mutant
from varitext.runtime.randomness import Purpose

# (file, function, before, after): why
REASONS: dict[tuple[str, str, str, str], str] = {
    ("latent/bound.py", "Bound.kl", "-1", "1"): "of two axes, the last is 1",
    ("latent/estimators.py", "LocalExpectation.forward", "-1", "1"): "of two axes, the last is 1",
    ("models/documents/nvdm_gsm.py", "GSM.document_vectors", "-1", "1"): "of two axes, the last is 1",
    ("latent/discrete.py", "Categoricals._expected", "0.0", "1.0"): "it is multiplied by a probability of 0",
    ("latent/estimators.py", "every_value", "6", "7"): "the wording of a message",
    ("latent/estimators.py", "every_value", "size > 10 ** 6", "size >= 10 ** 6"): "the wording of a message",
    ("models/answers/cross_encoder.py", "CrossEncoder.__init__", "1", "2"): "word vectors that it does not have",
    ("models/documents/base.py", "varimax", "skewness < 0", "skewness <= 0"): "it is never exactly zero",
    ("models/documents/bounds.py", "document_bounds", "1", "2"): "how many documents are evaluated at once",
    ("training/trainer.py", "Trainer._round", "True", "False"): "the next batch is found by the number of steps",
    (
        "training/trainer.py",
        "Trainer._rescue",
        "self.settings.learning_rate * scale",
        "self.settings.learning_rate / scale",
    ): "the wording of a message",
    ("latent/estimators.py", "_expectation", "0.0", "1.0"): "it is multiplied by a probability of 0",
    ("latent/estimators.py", "every_value", "10", "11"): "the wording of a message",
    ("layers/lstm.py", "chunk_bounds", "waited > CALL", "waited >= CALL"): "where chunks are cut changes no value",
    ("layers/lstm.py", "chunk_bounds", "0", "1"): "where chunks are cut changes no value",
    ("layers/lstm.py", "_chunks", "max(1, one) / ROUND", "max(1, one) * ROUND"): "more padding changes no value",
    ("layers/lstm.py", "_chunks", "1", "2"): "more padding changes no value",
    ("layers/lstm.py", "run_in_parallel", "0", "1"): "all jobs are on one device",
    ("layers/lstm.py", "_InParallel.backward", "False", "True"): "a gradient of a gradient is never asked for",
    ("layers/lstm.py", "_in_threads", "2", "3"): "all jobs have words of the same width",
    ("layers/lstm.py", "_in_threads", "True", "False"): "which job begins first changes no value",
    (
        "models/documents/docnade.py",
        "_balanced_codes",
        "place == 2 * parent + 1",
        "place != 2 * parent + 1",
    ): "left and right are exchanged at every node: the same tree",
    ("models/documents/docnade.py", "_huffman_codes", "0", "1"): "every place is filled before it is read",
    ("models/documents/docnade.py", "_huffman_codes", "2 * size - 1", "2 * size + 1"): "places that are never read",
    ("models/documents/docnade.py", "_huffman_codes", "2", "3"): "places that are never read",
    ("models/documents/docnade.py", "_huffman_codes", "1", "2"): "the root, the last place, has no parent to be read",
    (
        "models/documents/docnade.py",
        "WordTree._build",
        "torch.tensor(nodes, dtype=torch.int32)",
        "torch.tensor(nodes)",
    ): ("it is copied into a buffer of that type"),
    (
        "models/documents/docnade.py",
        "WordTree._build",
        "torch.tensor(turns, dtype=torch.int8)",
        "torch.tensor(turns)",
    ): ("it is copied into a buffer of that type"),
    ("layers/words.py", "Dropout.forward", "values.numel() // 4", "values.numel() * 4"): "bits that are not used",
    ("layers/words.py", "Dropout.forward", "1", "2"): "bits that are not used",
    ("models/answers/features/alignment.py", "padded_candidates", "0", "1"): "at least 1 is taken anyway",
    (
        "models/documents/rsm.py",
        "ReplicatedSoftmax.summed_words",
        "length > scores.shape[1]",
        "length >= scores.shape[1]",
    ): "words named or counted are the same draws: a matter of speed",
    (
        "models/documents/lda.py",
        "_rows",
        "scipy.sparse.csr_matrix(entries, shape=(len(batch), batch.vocabulary_size))",
        "scipy.sparse.csr_matrix(entries)",
    ): "inference reads rows and word numbers, not how many columns there are",
    ("models/documents/lda.py", "_converged", "break", "pass"): "rounds without a document in them",
    ("latent/discrete.py", "AutoregressiveBernoullis.sample", "-1", "1"): "units that are not drawn yet are zero",
    ("models/documents/rsm.py", "RSM.evaluate", "512", "513"): "how many documents are evaluated at once",
    ("models/documents/bernoulli.py", "BernoulliNetwork.refine", "-1", "1"): "of two axes, the last is 1",
    (
        "layers/dcm.py",
        "Urns.gradient",
        "self.rising.slope * factorials.signs",
        "self.rising.slope / factorials.signs",
    ): "times or over a sign",
    ("models/documents/base.py", "varimax", "break", "pass"): "rounds in which nothing moves any more",
    ("evaluation/calibration.py", "log_loss", "1", "2"): "no probability is above 1",
    (
        "models/answers/scorer.py",
        "AnswerScorer._standardised",
        "np.nan_to_num(standardise(values), nan=0.0)",
        "np.nan_to_num(standardise(values))",
    ): "zero is what numpy puts there, too",
    (
        "models/answers/paragraph_vectors.py",
        "ParagraphVectors.features",
        "functional.normalize(self.vectors(sentences), dim=1)",
        "functional.normalize(self.vectors(sentences))",
    ): "the second axis is usual",
    ("evaluation/calibration.py", "risk_coverage", "-confidence[order]", "confidence[order]"): (
        "groups are numbered from the other end: each has the same members"
    ),
    (
        "evaluation/calibration.py",
        "risk_coverage",
        "np.argsort(-confidence, kind='stable')",
        "np.argsort(-confidence)",
    ): "tied answers share their errors in whatever order",
    (
        "evaluation/classification.py",
        "_choose_penalty",
        "GridSearchCV(_classifier(), {'logisticregression__C': list(PENALTIES)}, cv=folds, refit=False)",
        "GridSearchCV(_classifier(), {'logisticregression__C': list(PENALTIES)}, cv=folds)",
    ): "one more fit, which nobody asks for anything",
    (
        "evaluation/classification.py",
        "_choose_penalty",
        "False",
        "True",
    ): "one more fit, which nobody asks for anything",
    ("evaluation/map_layout.py", "_principal_components", "vectors.mean(0, keepdims=True)", "vectors.mean(0)"): (
        "a row is taken from every row either way"
    ),
    ("evaluation/map_layout.py", "_principal_components", "True", "False"): "a row is taken from every row either way",
    ("evaluation/posterior_ranks.py", "_best_in_order", "-1", "1"): "of two axes, the last is 1",
    (
        "evaluation/posterior_ranks.py",
        "_ranks_of_one",
        "np.lexsort((jitter, np.broadcast_to(-p, jitter.shape)), axis=1)",
        "np.lexsort((jitter, np.broadcast_to(-p, jitter.shape)))",
    ): "of two axes, the last is 1, and the last is usual",
    ("evaluation/posterior_ranks.py", "_ranks_of_one", "place > best", "place >= best"): "the best is right anyway",
    (
        "evaluation/posterior_ranks.py",
        "rank_calibration",
        "np.argsort(question_of, kind='stable')",
        "np.argsort(question_of)",
    ): "the order of a question's rows changes no mean",
    ("evaluation/ranking.py", "_places", "-1", "1"): "questions are numbered from 0: the first row is new either way",
    ("evaluation/ranking.py", "_places", "1", "2"): "questions are numbered from 0: the first row is new either way",
    ("evaluation/ranking.py", "_reciprocal_parts", "1", "2"): "a place that cannot be the first has a chance of 0",
    (
        "evaluation/ranking.py",
        "_reciprocal_parts",
        "n - r",
        "n + r",
    ): "a place that cannot be the first has a chance of 0",
    (
        "evaluation/ranking.py",
        "_reciprocal_parts",
        "r > 0",
        "r >= 0",
    ): "a group without a right answer has a chance of 0",
    ("evaluation/retrieval.py", "_rankings", "np.sort(keys, axis=1)", "np.sort(keys)"): (
        "of two axes, the last is 1, and the last is usual"
    ),
    ("evaluation/retrieval.py", "_rankings", "1", "2"): "how many queries are taken at once",
    ("evaluation/retrieval.py", "_rankings", "MAX_BLOCK // len(train)", "MAX_BLOCK * len(train)"): (
        "how many queries are taken at once"
    ),
    (
        "evaluation/completion.py",
        "split_words",
        "np.bincount(owner, minlength=counts.shape[0])",
        "np.bincount(owner)",
    ): "documents at the end that have no word own none",
    (
        "evaluation/cooccurrence.py",
        "_blocks",
        "np.cumsum(sizes) // MAX_BLOCK",
        "np.cumsum(sizes) * MAX_BLOCK",
    ): ("how many pairs are held at once"),
    ("evaluation/cooccurrence.py", "_blocks", "1", "2"): "how many pairs are held at once",
    (
        "evaluation/cooccurrence.py",
        "_overlaps",
        "np.argsort(stretches.starts, kind='stable')",
        "np.argsort(stretches.starts)",
    ): "stretches that start together overlap as much in whatever order",
    (
        "evaluation/distinct_words.py",
        "distinct_words",
        "np.bincount(rows, minlength=len(names))",
        "np.bincount(rows)",
    ): "every value has a document",
    ("evaluation/distinct_words.py", "_z", "1.0", "2.0"): "of a single document no word is clear",
    ("evaluation/map_layout.py", "_principal_components", "2", "3"): "there are two columns, however many are named",
    (
        "evaluation/posterior_ranks.py",
        "best_probability",
        "np.argsort(-sampled, 1, kind='stable')",
        "np.argsort(-sampled, 1)",
    ): "equal candidates share in whatever order",
    (
        "evaluation/posterior_ranks.py",
        "ranks_given",
        "np.lexsort((generator.random(labels.shape), np.broadcast_to(-scores, labels.shape)), axis=1)",
        "np.lexsort((generator.random(labels.shape), np.broadcast_to(-scores, labels.shape)))",
    ): "of two axes, the last is 1, and the last is usual",
    (
        "evaluation/stability.py",
        "nearest_documents",
        "np.argsort(-merge_ties(similarity), axis=1, kind='stable')",
        "np.argsort(-merge_ties(similarity), kind='stable')",
    ): "of two axes, the last is 1, and the last is usual",
    (
        "evaluation/topic_alignment.py",
        "_first_words",
        "sorted(topics, key=lambda topic: topic.number)",
        "sorted(topics)",
    ): "a topic begins with its number",
    ("evaluation/topic_alignment.py", "alignment_record", "1", "2"): "numpy takes any negative length so",
    (
        "evaluation/classification.py",
        "classification_record",
        "f1_score(truth, said, labels=np.unique(truth), average='macro', zero_division=0)",
        "f1_score(truth, said, labels=np.unique(truth), average='macro')",
    ): "a label that occurs has an F1",
    ("evaluation/classification.py", "classification_record", "0", "1"): "a label that occurs has an F1",
    ("evaluation/stability.py", "neighbourhood_stability_record", "0", "1"): "without fits both are refused",
    (
        "evaluation/ties.py",
        "_merged_in_order",
        "(last > first) & ~_close(falling[first], falling[last], WIDEST)",
        "(last > first) | ~_close(falling[first], falling[last], WIDEST)",
    ): "a tie that is not too wide is looked at and not cut",
    ("evaluation/ties.py", "_merged_in_order", "last > first", "last >= first"): "a score is close to itself",
    ("evaluation/completion.py", "split_words", "0", "1"): "documents at the end that have no word own none",
    (
        "evaluation/topic_words.py",
        "rank_biased_overlap",
        "1",
        "2",
    ): "a depth that no topic has, or nothing over 1, adds nothing",
    ("evaluation/topic_words.py", "rank_biased_overlap", "0", "1"): "a depth that no topic has adds nothing",
    ("evaluation/vectors.py", "unit_rows", "0", "1"): "no row is shorter than 1 by then, and over 1 is as it is",
    ("evaluation/vectors.py", "unit_rows", "1", "2"): "zeros over any number",
    ("evaluation/windows.py", "_sliding", "1", "2"): "any line that is longer than the last place",
    ("training/optimizer.py", "AdamW.restore", "1", "2"): "what stands before the first dot is the same",
    ("training/progress.py", "LineProgress.__init__", "0.0", "1.0"): "the first step sets it before it is read",
    ("training/trainer.py", "Trainer._round", "state.stopped = ''", "pass"): "the roll-back brings its own state",
    ("training/trainer.py", "Trainer._round", "''", "'XX'"): "the roll-back brings its own state",
}
STABLE = "the order among equal numbers changes no value"
WORDING = {
    ("models/answers/minilm.py", "'likeness'"),
}
SORTING = {  # functions in which `True` that may be turned without effect is that of a stable sort
    ("layers/counts.py", "_SparseTimesDense.backward"),
    ("layers/lstm.py", "_chunks"),
    ("layers/grouped_counts.py", "WordGroups.of"),
    ("layers/grouped_counts.py", "_falling_order"),
}


def reason(mutant: Mutant) -> str | None:
    """Also for a sort that need not be stable, a sign, and the purpose of a stream of random numbers."""
    unstable = "stable=True" in mutant.before and mutant.after == mutant.before.replace(", stable=True", "")
    if unstable or ((mutant.path, mutant.function) in SORTING and (mutant.before, mutant.after) == ("True", "False")):
        return STABLE
    if re.search(r"np\.(where\(.*, -1\.0, 1\.0\)|sign\(.*\))$", mutant.before) and mutant.operator == "arithmetic":
        return "times or over a sign"
    if (mutant.before, mutant.after) == ("'stable'", "'stableXX'"):
        return "numpy reads the first letter"
    if (mutant.path, mutant.before) in WORDING:
        return "the wording of a message"
    if mutant.operator == "string" and mutant.before[1:-1] in get_args(Purpose):
        return "mypy refuses the name"
    return REASONS.get((mutant.path, mutant.function, mutant.before, mutant.after))
