"""From an address and a policy to a line to a device that the policy may control."""

from spota.deploy.addresses import Address
from spota.deploy.emulator import Emulator, drawn_domain, emulator
from spota.deploy.faults import Faults
from spota.deploy.hardware import hardware_of
from spota.deploy.introduction import Introduction
from spota.deploy.links import Link, SerialLink, UdpLink
from spota.deploy.quarc import QuarcLink
from spota.deploy.virtual import VirtualLink
from spota.deploy.wear import Wear
from spota.policies.contract import Contract
from spota.sim import table_file
from spota.sim.env import Platform

EMULATED = {
    "seed": int, "nominal": int, "domain": str, "noise": int, "encoder": float, "filter": float, "backlash": float,
    "coulomb": float, "jitter": float, "loss": float, "duplicates": float, "reordering": float, "corruption": float,
    "silence": float, "hang": float, "during": str, "after": float,
}  # fmt: skip
"""The options of emulator://ENV?seed=3&loss=0.01, those of `spota emulate`."""


def connected(address: Address, env: Platform, contract: Contract, insist: bool = False) -> Link:
    """A line to the device, whose contract must be that of the policy; one without a watchdog must be insisted on."""
    if address.scheme == "emulator":
        link: Link = VirtualLink(emulated(address, env))
    elif address.scheme == "quarc":
        _refuse_unwatched(None, str(address), insist)
        return QuarcLink(address, Introduction.of(env, None), hardware_of(env))
    else:
        link = UdpLink(address) if address.scheme == "udp" else SerialLink(address)
    try:
        link.introduction.check(contract)
        _refuse_unwatched(link.introduction.watchdog, str(address), insist)
    except BaseException:
        link.close()
        raise
    return link


def _refuse_unwatched(watchdog: float | None, where: str, insist: bool) -> None:
    if watchdog is None and not insist:
        raise ValueError(
            f"{where} does not say that it has a watchdog: if this process dies, the device keeps its last command for "
            "ever. Give it one or, with a hand on its switch, add --no-watchdog."
        )


def emulated(address: Address, env: Platform) -> Emulator:
    """The emulator that an address describes."""
    if address.place != env.name:
        raise ValueError(f"{address} is a {address.place}, but the policy is for {env.name}.")
    given = {}
    for name, text in address.options.items():
        if name not in EMULATED:
            raise ValueError(f"{address}: an emulator has no {name!r}; it has {', '.join(EMULATED)}.")
        try:
            given[name] = EMULATED[name](text)
        except ValueError as error:
            raise ValueError(f"{address}: {name}={text} is not a number.") from error
    seed, nominal, table = given.pop("seed", 0), bool(given.pop("nominal", 0)), given.pop("domain", None)
    if table is not None:
        env = env.with_domain(table_file.read(table, env))
    worn = {name: given.pop(name) for name in ("noise", "encoder", "filter", "backlash", "coulomb") if name in given}
    wear = Wear(**{**worn, "noise": bool(worn.get("noise", 1))})
    return emulator(env, drawn_domain(env, seed, nominal), wear, Faults(**given), seed=seed)
