"""Speed and quality measured against the peers, and growth of cost: `varitext benchmark`.

systems/       one file for each system that is measured, ours among them: `System` is what each must do
measuring.py   one system in a process of its own
running.py     all systems one after another, a small JSON file for each
growth.py      cost against documents, words and latent size
"""
