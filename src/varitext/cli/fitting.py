"""`varitext fit`: one command for models of documents and of answers, which the model's name decides."""

from pathlib import Path
from typing import Annotated, Any

import typer

from varitext.cli.answer_input import check_answer_options, learning_questions, vector_source
from varitext.cli.checks import (
    check_device,
    check_estimator,
    check_place_for_model,
    check_preset,
    given,
    is_answer_model,
    is_finished_model,
    refuse_many_processes,
    refuse_options,
    seconds_of,
)
from varitext.cli.continuing import continue_fit
from varitext.cli.inputs import load_documents
from varitext.cli.options import Corpus, DataDir, Device, RayAddress, Threads, Updates
from varitext.cli.ray_work import fit_on_ray
from varitext.cli.running_fit import Lesson, answers_learned, documents_learned, fit_and_save
from varitext.errors import InputError


def fit(
    corpus: Corpus,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the model folder goes; must not exist yet.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Documents: nvdm, nvdm_categorical, nvdm_softmax, sbn, fdarn, docnade, rsm, lda, swv. "
            "Answers: nasm, lstm_attention, lstm, bigram_cnn, deep_cnn, overlap, pv, word_alignment, lclr. "
            "nvdm if left out.",
        ),
    ] = None,
    continued: Annotated[
        Path | None,
        typer.Option(
            "--continue",
            metavar="DIR",
            help="Documents: go on from the model in DIR, which stays as it is with --out.",
        ),
    ] = None,
    new_words: Annotated[
        bool, typer.Option("--new-words", help="With --continue: also learn words that the model does not have yet.")
    ] = False,
    latent_dim: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Latent dimensions (topics); 50 if left out.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, max=2**32 - 1, metavar="N", help="Same seed, same bits, on one machine and thread count; 0 at first."
        ),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Passes over the training part; else the model decides.")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Documents, or pairs, per update; else the model decides.")
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(metavar="RATE", help="The highest of the run; else the model decides.")
    ] = None,
    time_limit: Annotated[
        str | None, typer.Option(metavar="TIME", help="For example 60s, 10m or 2h; the schedule adapts.")
    ] = None,
    threads: Threads = None,
    device: Device = "cpu",
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint in DIR.")] = False,
    ray_workers: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Documents: in so many processes, started by Ray Train.")
    ] = None,
    ray_address: RayAddress = None,
    part: Annotated[
        str, typer.Option(metavar="NAME", help="The part to learn from; qasent also has train-all.")
    ] = "train",
    data_dir: DataDir = None,
    preset: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Documents: settings by name, recommended if left out; nvdm also has paper."),
    ] = None,
    updates: Annotated[Updates | None, typer.Option(help="Documents: together, or in turn as in the paper.")] = None,
    estimator: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Documents, discrete h: how gradients are estimated, for example nvil."),
    ] = None,
    vocabulary_size: Annotated[
        int | None, typer.Option(min=2, metavar="N", help="Documents: most words to keep, for corpora of text.")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, max=256, metavar="N", help="Documents: processes that count words.")
    ] = None,
    text_column: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Documents: which column of a .jsonl, .csv or .parquet has the text."),
    ] = None,
    counts: Annotated[
        bool, typer.Option("--counts", help="Answers: join the model with counts of shared words (paper: +Cnt).")
    ] = False,
    position: Annotated[
        bool, typer.Option("--position", help="Answers: join the sentence's place in its document and its length.")
    ] = False,
    features: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME",
            help="Answers: what overlap, word_alignment or lclr looks at, else all it has; `overlap` for deep_cnn.",
        ),
    ] = None,
    vectors: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Answers: word2vec or GloVe file, or `random`; else those of the data folder."
        ),
    ] = None,
    embedding_dim: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Answers: numbers per word vector; wider ones are reduced.")
    ] = None,
    unseen_words: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="N", help="Answers: words that only the vectors have, kept at most; 50,000 if left out."
        ),
    ] = None,
    tune_vectors: Annotated[
        bool, typer.Option("--tune-vectors", help="Answers: learn the vectors of all words, not only of new ones.")
    ] = False,
    longest_answer: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Answers: leave out training candidates of more words; none if not said."
        ),
    ] = None,
    kl_warm_up: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Answers: share of the steps in which the weight of the KL rises to 1."),
    ] = None,
    free_bits: Annotated[
        float | None, typer.Option(metavar="NATS", help="Answers: KL per pair that costs nothing; keeps h alive.")
    ] = None,
) -> None:
    """Fit a model to a corpus and write the model folder.

    Documents of yours: a folder of .txt; a .jsonl, .csv or .parquet with a text column; counts as .npz or .feat. All
    but .npz may be gzipped. A folder with train and test (sub-folders, or files such as train.jsonl) is divided.

    Questions of yours: a .jsonl or .csv with question, answer and label (1 right, 0 wrong) a row; or a folder with
    train, dev and test files of that kind.

    The dev part chooses when to stop; without one a share is held out. Ctrl-C keeps the best model so far; the same
    command with --resume goes on, and ends with the same bits as a run that was never stopped.

    \b
    Examples:
      varitext fit 20newsgroups --out models/news
      varitext fit articles.csv --text-column body --latent-dim 20 --out models/mine
      varitext fit wikiqa --model nasm --counts --position --out models/answers
      varitext fit qasent --part train-all --longest-answer 40 --model nasm --counts --out models/trec
      varitext fit wikiqa --model overlap --features bm25 --out models/bm25
      varitext fit pairs.jsonl --model lstm_attention --vectors glove.6B.50d.txt --out models/pairs
      varitext fit --continue models/mine march.csv --text-column body --new-words --out models/march
    """
    from varitext.runtime.processes import rank_at_launch, restarts, use_own_gpu

    of_documents = {
        "preset": preset,
        "updates": updates and updates.value,
        "estimator": estimator,
        "vocabulary_size": vocabulary_size,
        "processes": processes,
        "text_column": text_column,
        "ray_workers": ray_workers,
        "ray_address": ray_address,
    }
    of_answers = {
        "counts": counts,
        "position": position,
        "features": features,
        "vectors": vectors,
        "embedding_dim": embedding_dim,
        "unseen_words": unseen_words,
        "tune_vectors": tune_vectors,
        "longest_answer": longest_answer,
        "kl_warm_up": kl_warm_up,
        "free_bits": free_bits,
    }
    settings = {
        "latent_dim": latent_dim,
        "epochs": epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "time_limit": seconds_of(time_limit),
        "threads": threads,
        "device": device,
        "seed": seed,
    }
    if continued is not None:
        refuse_options({"model": model} | of_answers, "--continue goes on from a model of documents as it was fitted")
        typed = settings | of_documents
        return continue_fit(continued, corpus, part, data_dir, out, new_words, typed, resume)
    refuse_options({"new_words": new_words}, "it belongs to --continue")
    if out is None:
        raise InputError("say with --out where the model folder goes")
    if restarts():  # by torchrun, because a process died: on from the checkpoint, if the run was not over by then
        if is_finished_model(out):
            return
        resume = True
    if rank_at_launch() == 0:
        check_place_for_model(out, resume)
    model = model or "nvdm"
    answers = is_answer_model(model)
    if answers:
        refuse_many_processes(model)
        refuse_options(of_documents, f"{model} is a model of answers")
    else:
        refuse_options(of_answers, f"{model} is a model of documents")
        check_preset(model, preset or "recommended")
        check_estimator(model, estimator)
    use_own_gpu(device)
    check_device(device)
    if answers:
        check_answer_options(model, settings | of_answers, resume)
        lesson = _answer_lesson(corpus, part, data_dir, model, settings | of_answers)
    else:
        lesson = document_lesson(corpus, part, data_dir, model, settings | of_documents)
    if ray_workers or ray_address:
        return fit_on_ray((corpus, part, data_dir, model, settings | of_documents), out)
    fit_and_save(lesson, out, resume)


def document_lesson(corpus: str, part: str, data_dir: Path | None, model: str, settings: dict[str, Any]) -> Lesson:
    from varitext.documents.model import DocumentModel
    from varitext.text import VocabularyRules

    chosen = given(settings)
    text_column = chosen.pop("text_column", None)
    chosen = {name: value for name, value in chosen.items() if not name.startswith("ray_")}
    if size := chosen.pop("vocabulary_size", None):
        chosen["vocabulary_rules"] = VocabularyRules(size=size)
    documents = load_documents(corpus, part, data_dir, text_column)
    typed = {"name": corpus, "text_column": text_column}
    return Lesson(DocumentModel(model, **chosen), documents, None, typed, "word", True, documents_learned)


def _answer_lesson(corpus: str, part: str, data_dir: Path | None, model: str, settings: dict[str, Any]) -> Lesson:
    from varitext.answers.ranker import AnswerRanker
    from varitext.answers.settings import AnswerSettings
    from varitext.models.answers import ANSWER_MODELS

    train, dev = learning_questions(corpus, part, data_dir)
    chosen = given(settings | {"vectors": vector_source(settings["vectors"], data_dir)})
    named = {"model": model, "tune_word_vectors": chosen.pop("tune_vectors", False)}
    ranker = AnswerRanker(**vars(AnswerSettings.from_flat(named | chosen)))
    return Lesson(ranker, train, dev, {"name": corpus}, "pair", ANSWER_MODELS[model].has_latent, answers_learned)
