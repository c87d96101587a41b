"""Both ends of every line on loopback, each in a thread of its own: frames arrive, commands act."""

import socket
import threading
import time

import numpy as np
import pytest

from spota.deploy import frames
from spota.deploy.addresses import Address, is_loopback, parse
from spota.deploy.emulator import Emulator, drawn_domain, emulator
from spota.deploy.faults import Faults
from spota.deploy.hardware import hardware_of
from spota.deploy.introduction import Introduction
from spota.deploy.links import LostError, SerialLink, UdpLink
from spota.deploy.quarc import Collector, QuarcLink
from spota.deploy.quarc_serving import QuarcServer
from spota.deploy.serving import UdpWire
from spota.deploy.wear import Wear
from spota.envs import make

ENV = make("cart-pole-swing-up")
PATIENCE = 20.0


def device() -> Emulator:
    return emulator(ENV, drawn_domain(ENV, 0, nominal=True), Wear(noise=False))


def connect(address: Address):
    if address.scheme == "udp":
        return UdpLink(address)
    if address.scheme == "serial":
        return SerialLink(address)
    return QuarcLink(address, Introduction.of(ENV, None), hardware_of(ENV))


@pytest.mark.parametrize("scheme", ["udp", "serial", "quarc"])
def test_a_command_moves_the_cart_and_is_echoed(served, scheme):
    link = connect(served(device(), scheme))
    deadline = time.monotonic() + PATIENCE
    volts = np.array([4.0])
    while time.monotonic() < deadline:
        assert link.receive(PATIENCE)
        link.send(volts, 4)
        if link.inbox.values[0] > 0.01 and link.inbox.echo > 10:
            break
    link.send(np.zeros(1), 5)
    link.close()
    assert link.inbox.values[0] > 0.01  # the cart has moved by a centimetre
    assert abs(link.inbox.values[1]) > 3.0  # and the pole still hangs: π from upright


@pytest.mark.parametrize("scheme", ["udp", "serial"])
def test_the_device_says_what_it_is(served, scheme):
    link = connect(served(device(), scheme))
    said = link.introduction
    link.close()
    assert said == Introduction.of(ENV, 3 * ENV.dt)


def test_a_second_controller_is_refused_until_the_first_has_left(served):
    address = served(device(), "udp")
    first = UdpLink(address)
    with pytest.raises(ValueError, match="has a controller already"):
        UdpLink(address)
    first.close()
    time.sleep(0.1)
    UdpLink(address).close()


def test_a_second_client_of_the_bare_protocol_is_turned_away(served):
    address = served(device(), "quarc")
    first = connect(address)
    assert first.receive(PATIENCE)
    second = connect(address)
    with pytest.raises(LostError):
        second.receive(PATIENCE)
    first.close()
    second.close()


def test_commands_of_a_stranger_do_nothing(served):
    made = device()
    address = served(made, "udp")
    link = UdpLink(address)
    stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    outbox = frames.Outbox(frames.COMMAND, 1)
    for seq in range(1, 50):
        stranger.sendto(outbox.write(seq, 0, 0, np.array([8.0])), (address.place, address.port))
    assert link.receive(PATIENCE) and link.receive(PATIENCE)
    link.close()
    stranger.close()
    assert made.device.drive._number == 0


def test_nobody_there_is_one_sentence():
    with pytest.raises(ValueError, match="does not answer"):
        UdpLink(parse("udp://127.0.0.1:9"))
    with pytest.raises(ValueError, match="cannot be reached"):
        connect(parse("quarc://127.0.0.1:9"))


def test_no_port_is_one_sentence():
    pytest.importorskip("serial")
    with pytest.raises(ValueError, match="cannot be opened"):
        SerialLink(parse("serial:///dev/no-such-port"))


def dribble(listener: socket.socket, states: bytes, pieces: list[int]) -> None:
    """A server that sends states in pieces, as TCP may deliver them, and then leaves."""
    client, _ = listener.accept()
    client.recv(8)
    for size in pieces:
        client.send(states[:size])
        states = states[size:]
        time.sleep(0.01)
    client.recv(1)
    client.close()


def test_states_in_pieces_are_put_together_and_the_newest_counts():
    listener = socket.create_server(("127.0.0.1", 0))
    first, second = np.array([0.1, np.pi, 0.3, 0.4]), np.array([0.2, 0.0, 0.6, 0.8])
    both = first.astype(">f8").tobytes() + second.astype(">f8").tobytes()
    thread = threading.Thread(target=dribble, args=(listener, both, [3, 20, 30, 10]))
    thread.start()
    link = connect(Address("quarc", "127.0.0.1", listener.getsockname()[1]))
    assert link.receive(PATIENCE)
    if link.inbox.seq < 2:
        assert link.inbox.values == pytest.approx([0.1, 0.0, 0.3, 0.4])
    thread.join(0.5)
    assert not link.receive(0.2)  # the second is not whole: waiting ends
    link.send(np.zeros(1), 0)
    link.close()
    thread.join()
    listener.close()


@pytest.mark.parametrize("count", [1, 4, 8])
def test_a_hundred_thousand_bytes_in_pieces_are_the_same_numbers(count):
    """Whatever the pieces, the newest whole set is the one that NumPy reads there; NaN among them."""
    random = np.random.default_rng(count)
    stream = random.bytes(100_000 // (8 * count) * 8 * count)
    wanted = np.frombuffer(stream, ">f8").astype(float).reshape(-1, count)
    here, there = socket.socketpair()
    there.setblocking(False)
    collector, values, at = Collector(count), np.zeros(count), 0
    while stream:
        size = int(random.integers(1, 100))
        here.sendall(stream[:size])
        stream = stream[size:]
        sets = collector.fill(there)
        if sets:
            collector.take(sets, values)
            at += sets
            assert values.tobytes() == wanted[at - 1].tobytes()
    assert at == len(wanted)
    here.close()
    there.close()


def test_the_bare_protocol_takes_no_nonsense_as_a_command(served):
    made = emulator(ENV, drawn_domain(ENV, 0, nominal=True), watchdog=False)
    address = served(made, "quarc")
    line = socket.create_connection((address.place, address.port))
    line.settimeout(PATIENCE)
    for volts, wanted in ((2.0, 2.0), (np.nan, 2.0), (np.inf, 2.0), (1e30, ENV.actions[0].high)):
        line.sendall(np.array([volts], ">f8").tobytes())
        answer = b""
        while len(answer) < 32:
            answer += line.recv(32 - len(answer))
        assert made.device.drive._wanted.tolist() == [wanted]
    line.close()


def test_faults_that_the_bare_protocol_cannot_have_are_refused():
    made = emulator(ENV, drawn_domain(ENV, 0, nominal=True), faults=Faults(loss=0.1, during="run"))
    with pytest.raises(ValueError, match="--loss, --during: quarc:// is TCP"):
        QuarcServer(made, parse("quarc://127.0.0.1:0"))


def test_addresses():
    assert parse("udp://127.0.0.1:9095") == Address("udp", "127.0.0.1", 9095)
    assert parse("quarc://lab").port == 9095
    assert parse("serial:///dev/ttyACM0?baud=115200") == Address("serial", "/dev/ttyACM0", 0, {"baud": "115200"})
    assert str(parse("emulator://cart-pole?seed=3")) == "emulator://cart-pole?seed=3"
    for wrong in ("127.0.0.1:9095", "udp://127.0.0.1", "http://x", "udp://127.0.0.1:99999", "serial://"):
        with pytest.raises(ValueError, match="write|port is a number"):
            parse(wrong)


def test_listeners_stay_on_loopback_unless_told_otherwise():
    assert is_loopback("127.0.0.1") and is_loopback("localhost") and not is_loopback("0.0.0.0")
    with pytest.raises(ValueError, match="--anywhere"):
        UdpWire(parse("udp://0.0.0.0:0"))
    with pytest.raises(ValueError, match="--anywhere"):
        QuarcServer(device(), parse("quarc://0.0.0.0:0"))
    wire = UdpWire(parse("udp://0.0.0.0:0"), anywhere=True)
    wire.close()
