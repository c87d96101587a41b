"""The section about taking the policy along: the ONNX file of `spota export`, inside the page."""

from spota import policies
from spota.runs import exporting
from spota.show.pages import html
from spota.show.pages.html import Section
from spota.show.pages.material import Material


def take(m: Material) -> Section | None:
    """The exported policy as a link, if the run has ended and onnx is installed; the commands in any case."""
    here = m.story.directory
    if not (here / "policy.npz").is_file():
        return None
    about = (
        "As an ONNX file the policy runs wherever onnxruntime does, in C++ or Python: observation in, action out, both "
        "in physical units; what a network remembers goes in and out, too. Contract and certificate travel inside."
    )
    data = _file(m) if (here / "result.json").is_file() else None  # a run that goes on may keep another policy
    link = "" if data is None else html.download("policy.onnx", data, f"Save policy.onnx ({len(data)} bytes)")
    commands = f"spota export {here} policy.onnx\nspota verify policy.onnx"
    return Section("take", "Take it with you", "Take it with you", html.paragraph(about) + link + html.code(commands))


def _file(m: Material) -> bytes | None:
    """What `spota export` writes; None where it cannot."""
    try:
        env = m.story.find_platform()
        policy = policies.find(m.story.directory, env)
        return exporting.in_bytes(policy, env, exporting.certificate_of(m.story.directory, policy))
    except (ValueError, OSError):  # onnx is not installed, or a file was changed, which the page says elsewhere
        return None
