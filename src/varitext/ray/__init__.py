"""Documents in bulk, spread by Ray over the cores of a machine or the machines of a cluster.

    cluster        a cluster on this machine, or a running one by its address; training processes on it
    pieces         a corpus cut into what one worker takes at a time
    counting       words counted on Ray Data, into the same shards as `varitext prepare` writes without it
    transforming   document vectors on Ray Data, as a folder of Parquet files

When a worker dies, another repeats its piece: a piece is counted, or written, whole or not at all.
"""
