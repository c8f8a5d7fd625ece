#!/usr/bin/env python3
"""chunk_text.py FILE: writes a V2 chunk of just under 50 MiB, the most that Sentry takes, that nothing can be said against."""

import json
import random
import sys

SIZE_BYTES = 50 * (1 << 20) - 4096
FRAMES, IMAGES, THREADS = 20_000, 40, 8
START_S, DURATION_S = 1_768_478_400, 60  # the longest chunk that a recorder cuts
IMAGE_SIZE = 0x400000


def compact(value):
    return json.dumps(value, separators=(",", ":"))


def image(number):
    return {"type": "symbolic", "code_file": f"/usr/lib/x86_64-linux-gnu/libpart{number}.so.1", "code_id": f"{number:040x}",
            "debug_id": f"00000000-0000-0000-0000-{number + 1:012x}", "image_addr": hex(0x7f0000000000 + number * IMAGE_SIZE),
            "image_size": IMAGE_SIZE, "image_vmaddr": "0x0", "arch": "x86_64"}


def frame(number):
    address = 0x7f0000000000 + number % IMAGES * IMAGE_SIZE + number * 32
    return {"function": f"std::__detail::_Compiler<std::regex_traits<char> >::part_{number}(char const*)",
            "instruction_addr": hex(address), "package": f"/usr/lib/x86_64-linux-gnu/libpart{number % IMAGES}.so.1"}


def stacks(pick, size_bytes):
    texts, length = [], 0
    while length < size_bytes:
        texts.append(compact([pick.randrange(FRAMES) for _ in range(pick.randrange(20, 60))]))
        length += len(texts[-1]) + 1
    return texts


def samples(pick, size_bytes, stack_count):
    size_of_one = len('{"timestamp":1768478400.000000,"thread_id":"4242","stack_id":12345},')
    count = size_bytes // size_of_one
    for number in range(count):
        # Not by way of a double: its digits would differ from a recorder's.
        after_us = number * DURATION_S * 1_000_000 // count
        timestamp = f"{START_S + after_us // 1_000_000}.{after_us % 1_000_000:06}"
        yield f'{{"timestamp":{timestamp},"thread_id":"{4242 + number % THREADS}","stack_id":{pick.randrange(stack_count)}}}'


def chunk():
    pick = random.Random(1)
    head = {"version": "2", "profiler_id": "71bba98d90b545c39f2ae73f702d7ef4", "chunk_id": "3e11a5c9831f4e49939c0a81944ea2cb",
            "platform": "rust", "release": "service@1.2.3", "environment": "production",
            "client_sdk": {"name": "sentry-prof", "version": "0.1.0"}, "debug_meta": {"images": [image(i) for i in range(IMAGES)]}}
    frames = compact([frame(i) for i in range(FRAMES)])
    names = compact({str(4242 + i): {"name": f"worker {i}"} for i in range(THREADS)})
    left = SIZE_BYTES - len(frames) - len(names) - len(compact(head))
    stack_texts = stacks(pick, left * 2 // 5)
    sample_texts = samples(pick, left * 3 // 5, len(stack_texts))
    return (f'{compact(head)[:-1]},"profile":{{"samples":[{",".join(sample_texts)}],"stacks":[{",".join(stack_texts)}],'
            f'"frames":{frames},"thread_metadata":{names}}}}}\n')


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(chunk())
