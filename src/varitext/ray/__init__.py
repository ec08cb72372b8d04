"""Work on documents in bulk, spread over the cores of a machine or the machines of a cluster by Ray.

    cluster        a local cluster of one's own, or another's by its address
    pieces         a corpus cut into what one worker takes at a time
    counting       words counted on Ray Data; the shards are those that `varitext prepare` writes without it
    transforming   document vectors on Ray Data, as a folder of Parquet files
    fitting        processes of one training run, started by Ray Train

Whatever a worker did when it died is done again by another: a piece is counted, or written, whole or not at all.
"""
