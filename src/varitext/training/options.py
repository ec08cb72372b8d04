"""Options that every fit has, of documents and of answers: the fields of both settings records share them."""

from varitext.records import MODEL, TRAINING, WHERE_IT_RUNS, Option

LATENT_DIM = Option("Latent dimensions (topics); else 50, or as the model has it.", MODEL, "N", minimum=1)
EPOCHS = Option("Passes over the training part; else the model decides.", TRAINING, "N", minimum=1)
LEARNING_RATE = Option("The highest of the run; else the model decides.", TRAINING, "RATE")
TIME_LIMIT = Option("For example 60s, 10m or 2h; the schedule adapts.", TRAINING, "TIME")
SEED = Option("Same seed, same bits, on one machine and thread count.", TRAINING, "N", minimum=0, maximum=2**32 - 1)
THREADS = Option("CPU threads; all cores if left out.", WHERE_IT_RUNS, "N", minimum=1, maximum=1024)
DEVICE = Option("cpu or cuda.", WHERE_IT_RUNS, "NAME")
