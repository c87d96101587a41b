"""The wire: what is written is read, and nothing else is."""

import struct
import tracemalloc
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spota.deploy import cobs, frames
from spota.deploy.device import Device
from spota.deploy.emulator import drawn_domain, emulator
from spota.envs import make

ENV = make("cart-pole")
floats = st.floats(width=32, allow_nan=False)
words = st.integers(0, 2**32 - 1)


def received(inbox: frames.Inbox, data: bytes) -> bool:
    inbox.buffer[: len(data)] = data[: len(inbox.buffer)]
    return inbox.take(len(data))


@given(words, words, st.integers(0, 2**64 - 1), st.lists(floats, min_size=4, max_size=4), st.integers(0, 255))
def test_what_is_written_is_read(seq, echo, time, values, flags):
    inbox = frames.Inbox(frames.SENSOR, 4)
    data = bytes(frames.Outbox(frames.SENSOR, 4).write(seq, echo, time, np.array(values), flags))
    assert len(data) == 44
    assert received(inbox, data)
    assert (inbox.seq, inbox.echo, inbox.time, inbox.flags) == (seq, echo, time, flags)
    assert inbox.values.tolist() == values


def test_the_bytes_are_those_of_the_docs():
    """Packed by hand, with the checksum that zlib, Ethernet and PNG have."""
    data = bytes(frames.Outbox(frames.COMMAND, 1).write(7, 1234, 5_000_000, np.array([1.5]), 3))
    body = b"SPTA" + bytes([1, 4, 3, 1]) + struct.pack("<IIQf", 7, 1234, 5_000_000, 1.5)
    assert data == body + struct.pack("<I", zlib.crc32(body))


@pytest.mark.parametrize("bit", range(8 * 32))
def test_no_single_wrong_bit_passes(bit):
    data = bytearray(frames.Outbox(frames.COMMAND, 1).write(7, 8, 9, np.array([1.5])))
    data[bit // 8] ^= 1 << bit % 8
    assert not received(frames.Inbox(frames.COMMAND, 1), bytes(data))
    assert frames.read_signal(bytes(data)) is None


def test_only_newer_frames_count_also_beyond_the_last_number():
    inbox, outbox = frames.Inbox(frames.SENSOR, 1), frames.Outbox(frames.SENSOR, 1)
    order = [2**32 - 2, 2**32 - 1, 0, 1, 1, 2**32 - 1, 3]
    got = [received(inbox, bytes(outbox.write(seq, 0, 0, np.zeros(1)))) for seq in order]
    assert got == [True, True, True, True, False, False, True]
    assert (inbox.taken, inbox.old, inbox.damaged) == (5, 2, 0)


def test_receiving_keeps_no_memory():
    inbox, outbox, values = frames.Inbox(frames.SENSOR, 8), frames.Outbox(frames.SENSOR, 8), np.ones(8)

    def exchange(first: int) -> None:
        for seq in range(first, first + 1000):
            buffer = outbox.write(seq, seq, seq, values)
            inbox.buffer[: len(buffer)] = buffer
            assert inbox.take(len(buffer))

    exchange(1)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    exchange(2000)
    kept = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert kept < 4000  # less than one value a frame: a few numbers in all


@given(st.binary(max_size=700))
def test_cobs_has_no_zero_and_comes_back(data):
    line = cobs.encode(data)
    assert line[-1] == 0 and 0 not in line[:-1]
    assert len(line) <= len(data) + len(data) // 254 + 2
    assert cobs.decode(line[:-1]) == data


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=5), st.binary(max_size=10), st.integers(1, 7))
def test_a_line_that_was_joined_in_the_middle_is_right_after_the_next_zero(packets, noise, piece):
    stream = noise.replace(b"\0", b"\1") + b"\0" + b"".join(map(cobs.encode, packets))
    unstuffer = cobs.Unstuffer(100)
    got = [frame for i in range(0, len(stream), piece) for frame in unstuffer.feed(stream[i : i + piece])]
    assert got[len(got) - len(packets) :] == packets


def mutated(random: np.random.Generator, good: list[bytes]) -> bytes:
    """A frame that something has happened to, or noise."""
    data = bytearray(good[random.integers(len(good))])
    kind = random.integers(6)
    if kind == 0:
        return random.bytes(int(random.integers(0, 1600)))
    if kind == 1:
        return bytes(data[: random.integers(len(data))])
    if kind == 2:
        return bytes(data + random.bytes(int(random.integers(1, 9))))
    for _ in range(random.integers(1, 6)):
        data[random.integers(len(data))] = random.integers(256)
    if kind == 3:  # with a checksum that is right: strange fields, but a whole frame
        data[-4:] = struct.pack("<I", zlib.crc32(bytes(data[:-4])))
    if kind == 4 and len(data) >= 32:
        data[24:28] = struct.pack("<f", float(random.choice([np.nan, np.inf, -np.inf, 1e30])))
        data[-4:] = struct.pack("<I", zlib.crc32(bytes(data[:-4])))
    return bytes(data)


def is_good_command(data: bytes) -> bool:
    """By the words of the docs, not by our reader."""
    if len(data) != 32 or data[:8] != b"SPTA" + bytes([1, 4, data[6], 1]):
        return False
    value = struct.unpack("<f", data[24:28])[0]
    return zlib.crc32(data[:-4]) == struct.unpack("<I", data[-4:])[0] and np.isfinite(value)


def is_good_sensor(data: bytes) -> bool:
    """By the words of the docs, too."""
    whole = len(data) == 44 and data[:8] == b"SPTA" + bytes([1, 3, data[6], 4])
    return whole and zlib.crc32(data[:-4]) == struct.unpack("<I", data[-4:])[0]


def assault(n: int, seed: int) -> None:
    """Throw n packets at a device and at a host; only good commands reach the drive, only good frames the policy."""
    random = np.random.default_rng(seed)
    device: Device = emulator(ENV, drawn_domain(ENV, 0, nominal=True)).device
    device.hear(0, "host", frames.signal_frame(frames.HELLO))
    outbox = frames.Outbox(frames.COMMAND, 1)
    sensor = frames.Outbox(frames.SENSOR, 4)
    inbox = frames.Inbox(frames.SENSOR, 4)
    taken = seen = 0
    for i in range(n):
        good = [bytes(outbox.write(i + 1, i, i, np.array([1.0]), 4)), frames.signal_frame(frames.BUSY)]
        data = mutated(random, [*good, bytes(sensor.write(i + 1, i, i, np.ones(4)))])
        before = device.drive._number, device.drive._wanted.copy()
        device.hear(i, "host", data)
        changed = device.drive._number != before[0] or (device.drive._wanted != before[1]).any()
        if changed:
            taken += 1
            assert is_good_command(data) or device.drive._wanted[0] == 0.0  # a hello or a good-bye sets it to rest
            assert abs(device.drive._wanted[0]) <= ENV.actions[0].high
        values = inbox.values.copy()
        if received(inbox, data[:1401]):  # as much as a socket takes
            seen += 1
            assert is_good_sensor(data)
        else:
            assert (inbox.values == values).all() or np.isnan(values).any()
        signal = frames.read_signal(data)
        assert signal is None or zlib.crc32(data[:-4]) == struct.unpack("<I", data[-4:])[0]
    assert 0 < taken < n / 10 and 0 < seen < n / 10


def test_no_command_comes_from_a_bad_frame():
    assault(1_000, 0)


@pytest.mark.slow
def test_no_command_comes_from_a_hundred_thousand_bad_frames():
    assault(100_000, 1)


@settings(max_examples=200)
@given(st.binary(max_size=1500))
def test_noise_is_nothing_at_both_ends(data):
    assert frames.read_signal(data) is None
    if len(data) <= frames.LONGEST:
        assert not received(frames.Inbox(frames.SENSOR, 4), data)


def test_a_text_that_is_too_long_is_refused():
    with pytest.raises(ValueError, match="longest has 1400"):
        frames.signal_frame(frames.CONTRACT, b"x" * 1400)
