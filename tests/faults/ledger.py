"""Who has which chunk: what the server wrote down, what lies in the spool."""

import functools
import gzip
import json
from pathlib import Path

from harness import check


def chunk_ids_in(envelope):
    """Of an envelope's text: the ids of its chunks."""
    _, _, rest = envelope.partition(b"\n")
    while rest.strip():
        head, _, rest = rest.partition(b"\n")
        item = json.loads(head)
        payload, rest = rest[:item["length"]], rest[item["length"] + 1:]
        if item["type"] == "profile_chunk":
            yield json.loads(payload)["chunk_id"]


def chunk_id_in(packed):
    ids = list(chunk_ids_in(gzip.decompress(packed)))
    check(len(ids) == 1, f"an envelope with {len(ids)} chunks")
    return ids[0]


class Request:
    """One that arrived. `is_taken`: the client was told 2xx. `is_unclear`: it never got a whole head of an answer."""

    def __init__(self, number, facts, body):
        self.number, self.body, self.connection = number, body, facts["connection"]
        answer, action = facts["answer"], facts["answer"].get("do")
        self.action = action or f"{answer['status']}"
        self.is_whole = facts["whole"]
        self.is_taken = self.is_whole and (action == "half-body" or (action is None and answer["status"] == 200))
        self.is_unclear = action not in (None, "half-body")
        self.chunk_id = chunk_id_in(body) if self.is_whole else None


class Ledger:
    def __init__(self, server_folder):
        self.folder, self.requests = Path(server_folder), []
        self.bodies = {}  # by chunk_id

    def read_news(self):
        while (path := self.folder / f"{len(self.requests) + 1}.json").exists():
            request = Request(len(self.requests) + 1, json.loads(path.read_text()), path.with_suffix(".body").read_bytes())
            self.requests.append(request)
            if request.is_whole:
                first = self.bodies.setdefault(request.chunk_id, request.body)
                check(first == request.body, f"request {request.number}: another body for chunk {request.chunk_id}")

    def taken_ids(self):
        self.read_news()
        return {request.chunk_id for request in self.requests if request.is_taken}

    def check_pieces(self):
        """What came cut off is the beginning of something whole."""
        for request in self.requests:
            is_known = request.is_whole or any(body.startswith(request.body) for body in self.bodies.values())
            check(is_known, f"request {request.number}: {len(request.body)} bytes of no known chunk")

    def repeated(self):
        """Requests whose chunk came again although the server had said 2xx."""
        last = {request.chunk_id: request for request in self.requests if request.is_whole}
        return [request for request in self.requests if request.is_taken and last[request.chunk_id] is not request]

    def check_repetitions(self, excuses):
        """At most `excuses` answers were lost in dying processes and torn connections; those were the connections' last."""
        repeated = self.repeated()
        end = {request.connection: request for request in self.requests}
        for request in repeated:
            check(end[request.connection] is request, f"chunk {request.chunk_id} was sent again after an answer that was heard")
        check(len(repeated) <= excuses, f"{len(repeated)} chunks sent again, {excuses} answers lost")
        return len(repeated)

    def actions(self):
        counts = {}
        for request in self.requests:
            counts[request.action] = counts.get(request.action, 0) + 1
        return dict(sorted(counts.items()))


@functools.cache  # sentry-prof writes a file once: what a name stands for does not change
def chunk_id_in_file(path):
    return chunk_id_in(path.read_bytes())


def spooled_ids(spool):
    """Of what lies in a spool now; files that vanish meanwhile are left out."""
    ids = set()
    for path in Path(spool).glob("*.envelope"):
        try:
            ids.add(chunk_id_in_file(path))
        except FileNotFoundError:
            pass
    return ids


def check_none_lost(known, ledger, spool, when):
    # The spool first: what leaves it in between is then among the accepted.
    lost = known - spooled_ids(spool) - ledger.taken_ids()
    check(not lost, f"{when}: {len(lost)} chunks neither accepted nor in the spool: {sorted(lost)[:5]}")
