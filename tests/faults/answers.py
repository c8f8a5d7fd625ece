"""What a server may do to a request."""

import time
from email.utils import formatdate


def limited(headers):
    return {"status": 429, "headers": headers}


def rate_limits(longest_s):
    """429 with each form of its headers; the last, which has none, means a minute."""
    return [limited({"X-Sentry-Rate-Limits": f"{longest_s}:profile_chunk;profile:organization:quota"}),
            limited({"X-Sentry-Rate-Limits": f"{longest_s}:error:key, {longest_s}:profile_chunk:project, 1:transaction:key"}),
            limited({"X-Sentry-Rate-Limits": f"{longest_s}::organization"}),
            limited({"Retry-After": f"{longest_s}"}),
            limited({"Retry-After": formatdate(time.time() + longest_s, usegmt=True)}),
            # Limits of others alone: nobody says how long chunks have to wait.
            limited({"X-Sentry-Rate-Limits": f"{longest_s}:error;session:key"}),
            limited({})]


def failures():
    return [500, 503, {"status": 503, "headers": {"Retry-After": "1"}}, {"do": "reset"}, {"do": "reset-early"},
            {"do": "close"}, {"do": "stall", "seconds": 0.1}, {"do": "stall-early", "seconds": 0.1},
            {"do": "status-line"}, {"do": "half-head"}, {"do": "garbage"}, {"do": "restart", "seconds": 0.1}]


def successes():
    """Also late ones, and one whose body is cut: its head says all."""
    return [200, {"status": 200, "delay": 0.01}, {"status": 200, "delay": 0.03}, {"do": "half-body"},
            {"status": 200, "headers": {"X-Sentry-Rate-Limits": "60:error:key"}}]


def mix(draw, longest_limit_s, long_stalls=False, successes_each=1):
    """For each other answer about so many successes."""
    others = rate_limits(longest_limit_s) + failures()
    answers = 20 * (others + successes() * (successes_each * len(others) // len(successes())))
    if long_stalls:  # until the client has had enough of it
        answers.append({"do": "stall", "seconds": 45})
    return {"mix": answers, "seed": draw.getrandbits(32)}
