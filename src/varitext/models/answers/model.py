"""What fitting and ranking need to know of a model of answers, whether a network or a scorer."""


class AnswerModel:
    """The properties that fitting needs of a network or a scorer (`scorer.py`), with the most common values."""

    has_latent = False
    latent_of_question = False  # whether all candidates of a question share its h
    training_samples = 1  # of h, per example
    learns_from = "answerable"  # the protocol of its training questions
    fewest_latent_dims = 1
    trained_by_gradient = True
    mixes_lists = False  # whether it also trains on lists with candidates of other questions: `training_data.py`
    parallel_training = False  # whether its training can use several workers
    updates = 700  # about 13 epochs of WikiQA; 25 were no better in cross-validation
    passes: int | None = None  # epochs of training; None: as many as `updates` need
    fewest_passes = 8  # at least, if `updates` decides; for very many questions, as in QASent
    patience = 5  # epochs without improvement before training stops
    learning_rate_factor = 1.0
    batch_factor = 1.0  # of the pairs per update
    joins_columns = True  # whether counts and position can be added to its probability
    feature_names: tuple[str, ...] = ()  # what a user can choose from
    reads_positions = False  # whether it reads the position of a candidate in its document
    reads_states = False  # whether it reads states of a pretrained encoder instead of word vectors
    pretrained = False  # whether it has a pretrained encoder, which needs no word vectors
    reads_word_vectors = True
    knows_every_word = False  # whether it can rank words that are not in its vocabulary
    untrained: "type[AnswerModel] | None" = None  # the scorer that ranks in its place before any fit
