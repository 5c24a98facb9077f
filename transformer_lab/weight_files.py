"""Read weight files in the formats safetensors and GGUF, in which models are published. No code in the files is run."""

import json
import struct
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def read_safetensors(data: bytes) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file, which consists of a table's length, the table in JSON, and the numbers.

    Parameters
    ----------
    data : bytes
        The whole file.

    Returns
    -------
    dict of str to Tensor
        Copies with the dtypes and shapes of the table.

    Raises
    ------
    ValueError
        If the bytes are not a safetensors file, or contain an unsupported dtype.

    Examples
    --------
    >>> table = b'{"two": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}'
    >>> read_safetensors(struct.pack("<Q", len(table)) + table + struct.pack("<2f", 1.0, -0.5))
    {'two': tensor([ 1.0000, -0.5000])}
    """
    dtypes = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
    dtypes |= {"I64": torch.int64, "I32": torch.int32, "U8": torch.uint8}
    data_start = 8 + int.from_bytes(data[:8], "little")
    try:
        table = json.loads(data[8:data_start])
        table.pop("__metadata__", None)
        entries = {
            name: (dtypes[entry["dtype"]], entry["shape"], entry["data_offsets"]) for name, entry in table.items()
        }
        return {
            name: _tensor_from_bytes(data[data_start + begin : data_start + end], dtype).view(shape)
            for name, (dtype, shape, (begin, end)) in entries.items()
        }
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"data must be a whole safetensors file, got one that fails with {error!r}") from None


def read_gguf(data: bytes) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the metadata of a GGUF file, and the file's tensors in float32.

    The file contains, in order: the number of tensors, the number of metadata entries, these entries, the name, shape,
    type and offset of each tensor, and the weights. Most weights are *quantized*: a few bits for each weight, and one
    scale for every 32 weights.

    Parameters
    ----------
    data : bytes
        The whole file.

    Returns
    -------
    (dict of str to object, dict of str to Tensor)
        The values of the metadata are numbers, strings, bools, or lists of these. The shapes of tensors are in the
        order of this course, (out, in); the file stores shapes in reverse.

    Raises
    ------
    ValueError
        If the bytes are not a GGUF file, or contain tensors of a type other than F32, F16, Q4_1 and Q8_0.

    References
    ----------
    "GGUF", in the documentation of ggml, version 3 of the format.

    Examples
    --------
    >>> read_gguf(b"GGUF" + struct.pack("<IQQ", 3, 0, 0))
    ({}, {})
    """
    if data[:4] != b"GGUF":
        raise ValueError(f"data must be a GGUF file, which begins with b'GGUF', got {bytes(data[:4])!r}")
    reader = _GGUFReader(data, 4)
    version, n_tensors, n_entries = reader.read_number("I"), reader.read_number("Q"), reader.read_number("Q")
    if version not in (2, 3):
        raise ValueError(f"data must be a GGUF file of version 2 or 3, got version {version}")
    metadata = {reader.read_text(): reader.read_value(reader.read_number("I")) for _ in range(n_entries)}
    tensor_entries = {}
    for _ in range(n_tensors):
        name = reader.read_text()
        shape = [reader.read_number("Q") for _ in range(reader.read_number("I"))][::-1]
        tensor_entries[name] = shape, reader.read_number("I"), reader.read_number("Q")
    alignment = metadata.get("general.alignment", 32)
    data_start = -(-reader.position // alignment) * alignment  # weights begin at a multiple of the alignment
    tensors = {}
    for name, (shape, tensor_type, offset) in tensor_entries.items():
        if tensor_type not in TENSOR_TYPES:
            raise ValueError(
                f"tensor {name!r} must have one of the types {', '.join(map(str, TENSOR_TYPES))}, got {tensor_type}"
            )
        weights_per_block, block_bytes, dequantize = TENSOR_TYPES[tensor_type]
        n_blocks, remainder = divmod(torch.Size(shape).numel(), weights_per_block)
        if remainder:
            raise ValueError(
                f"tensor {name!r} must hold whole blocks of {weights_per_block} weights, got shape {tuple(shape)}"
            )
        begin = data_start + offset
        raw = reader.read_bytes(begin, n_blocks * block_bytes, name)
        tensors[name] = dequantize(_tensor_from_bytes(raw, torch.uint8).view(n_blocks, block_bytes)).view(shape)
    return metadata, tensors


def _dequantize_q4_1(blocks: Tensor) -> Tensor:
    """Dequantize 32 weights from 20 bytes: a scale, a minimum, and 0 to 15 steps above the minimum for each weight."""
    scale, minimum = blocks[:, :4].contiguous().view(torch.float16).float().split(1, dim=1)  # (blocks, 1) each
    steps = torch.cat([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], dim=1)  # (blocks, 32); the first half is in low bits
    return steps.float().mul_(scale).add_(minimum)


def _dequantize_q8_0(blocks: Tensor) -> Tensor:
    """Dequantize 32 weights from 34 bytes: a scale, and each weight's number of steps, -128 to 127."""
    scale = blocks[:, :2].contiguous().view(torch.float16).float()  # (blocks, 1)
    return blocks[:, 2:].view(torch.int8).float().mul_(scale)


# Maps each tensor type's number in the file to the number of weights in a block, the number of bytes in a block, and
# the block's conversion to float32.
TENSOR_TYPES: dict[int, tuple[int, int, Callable[[Tensor], Tensor]]] = {
    0: (1, 4, lambda blocks: blocks.view(torch.float32)),
    1: (1, 2, lambda blocks: blocks.view(torch.float16).float()),
    3: (32, 20, _dequantize_q4_1),
    8: (32, 34, _dequantize_q8_0),
}
# Types of numbers, as the struct module names them.
NUMBER_FORMATS = dict(enumerate("BbHhIif?")) | {10: "Q", 11: "q", 12: "d"}
TEXT_TYPE, LIST_TYPE = 8, 9


class _GGUFReader:
    """Reads the metadata of a GGUF file in order; all numbers are little-endian."""

    def __init__(self, data, position):
        self.data, self.position = data, position

    def read_bytes(self, begin, length, name):
        if length > len(self.data) - begin:
            raise ValueError(f"data must be a whole GGUF file, got {len(self.data)} bytes, which end within {name}")
        return self.data[begin : begin + length]

    def read_numbers(self, number_format, count):
        size = struct.calcsize(f"<{number_format}") * count
        numbers = struct.unpack(f"<{count}{number_format}", self.read_bytes(self.position, size, "its metadata"))
        self.position += size
        return numbers

    def read_number(self, number_format):
        return self.read_numbers(number_format, 1)[0]

    def read_text(self):
        length = self.read_number("Q")
        text = bytes(self.read_bytes(self.position, length, "its metadata")).decode("utf-8")
        self.position += length
        return text

    def read_value(self, value_type):
        if value_type in NUMBER_FORMATS:
            return self.read_number(NUMBER_FORMATS[value_type])
        if value_type == TEXT_TYPE:
            return self.read_text()
        if value_type != LIST_TYPE:
            raise ValueError(f"data must contain values of the types 0 to 12, got type {value_type}")
        value_type, count = self.read_number("I"), self.read_number("Q")
        if value_type in NUMBER_FORMATS:
            return list(self.read_numbers(NUMBER_FORMATS[value_type], count))
        return [self.read_value(value_type) for _ in range(count)]


def _tensor_from_bytes(raw, dtype):
    """Copy the bytes into a tensor of shape (count,), because PyTorch warns about read-only memory."""
    return torch.frombuffer(bytearray(raw), dtype=dtype) if raw else torch.empty(0, dtype=dtype)
