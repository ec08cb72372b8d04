"""The service: models behind a JSON API, and a page that uses it. Needs the extra: pip install 'varitext[serve]'.

running.py        the command's work: load models, open the socket, stop cleanly
application.py    the application: routes, errors and guards put together
guards.py         what every request passes: host, token, size; and the headers that every answer gets
*_routes.py       one function per address; bodies.py has what goes in and comes out
batch_queue.py    requests wait here for their model, and go through it together
document_jobs.py  what is asked of a model of documents
corpus_index.py   the documents that it was fitted on, and corpus_map.py their map
static/           the page, written by hand: no build step, nothing from elsewhere
"""
