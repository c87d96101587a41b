"""The bytes of an ONNX file before protobuf sees them: how many parts, how deep, how many words.

Protobuf makes an object of every part, so that 64 MB of empty nodes would take gigabytes. Here they are counted first.
"""

from dataclasses import dataclass
from typing import Any

MOST_MESSAGES = 50_000
"""Nodes, attributes, tensors and the like."""
MOST_WORDS = 4 * 2**20
"""Bytes of everything but the tensors' numbers."""
NUMBERS = {"raw_data", "float_data", "double_data"}
"""Fields of a tensor that take no more memory than they have bytes."""


@dataclass
class Budget:
    """What a file may have at most, and less with every part."""

    messages: int = MOST_MESSAGES
    words: int = MOST_WORDS

    def take(self, messages: int = 0, words: int = 0) -> None:
        """Refuse what is beyond any policy."""
        self.messages -= messages
        self.words -= words
        if self.messages < 0:
            raise ValueError(f"it has more than {MOST_MESSAGES} parts, and a policy's network has some hundred")
        if self.words < 0:
            raise ValueError(f"it has more than {MOST_WORDS} bytes besides its numbers")


def walk(data: memoryview, descriptor: Any, budget: Budget, depth: int = 0) -> None:
    """Go through the fields of a message as they are on the wire, before anything is made of them."""
    if depth > 20:
        raise ValueError("it nests too deeply")
    at, end = 0, len(data)
    while at < end:
        tag, after = _varint(data, at)
        field, wire = descriptor.fields_by_number.get(tag >> 3), tag & 7
        if wire == 2:
            size, after = _varint(data, after)
            inside = data[after : after + size]
            if len(inside) != size:
                raise ValueError("it is cut off, or it is no ONNX file")
            if field is not None and field.message_type is not None:
                budget.take(messages=1)
                walk(inside, field.message_type, budget, depth + 1)
            else:
                budget.take(words=0 if field is not None and field.name in NUMBERS else size)
                if field is not None and field.type == field.TYPE_STRING:
                    _refuse_other_letters(inside)
            after += size
        elif wire == 0:
            _, after = _varint(data, after)
        elif wire in (1, 5):
            after += 8 if wire == 1 else 4
        else:
            raise ValueError("it is no ONNX file, or it is damaged")
        budget.take(words=2)
        at = after
    if at != end:
        raise ValueError("it is cut off, or it is no ONNX file")


def _refuse_other_letters(text: memoryview) -> None:
    """Refuse names that are not UTF-8, of which protobuf would make bytes."""
    try:
        bytes(text).decode()
    except UnicodeDecodeError as error:
        raise ValueError("it has names that are no text") from error


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, and where it ends."""
    value = 0
    for place in range(10):
        if at + place >= len(data):
            raise ValueError("it is cut off, or it is no ONNX file")
        byte = data[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, at + place + 1
    raise ValueError("it is no ONNX file, or it is damaged")
