"""Files of weights are read correctly; the formats' own packages write some of them, and the tests write the others."""

import struct

import pytest
import torch

from transformer_lab.weight_files import read_gguf, read_safetensors


def packed_text(words):
    data = words.encode()
    return struct.pack("<Q", len(data)) + data


def gguf_bytes(metadata=b"", n_entries=0, tensors=(), numbers=b"", version=3):
    """Return the bytes of a GGUF file; each of ``tensors`` is (name, shape as stored in the file, form, offset)."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), n_entries) + metadata
    for name, shape, form, offset in tensors:
        head += packed_text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, form, offset)
    return head + bytes(-len(head) % 32) + numbers


def safetensors_bytes(table, numbers=b""):
    return struct.pack("<Q", len(table)) + table + numbers


# GGUF


def test_gguf_facts_of_every_type_are_read():
    formats = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
    values = {kind: -1 if kind in (1, 3, 5, 11) else 0.5 if kind in (6, 12) else 1 for kind in formats}
    data = b"".join(
        packed_text(f"fact {kind}") + struct.pack(f"<I{struct_format}", kind, values[kind])
        if struct.calcsize(f"<I{struct_format}") == 4 + struct.calcsize(f"<{struct_format}")
        else b""
        for kind, struct_format in formats.items()
    )
    data += packed_text("words") + struct.pack("<I", 8) + packed_text("Größe")
    data += packed_text("list") + struct.pack("<IIQ3i", 9, 5, 3, 1, -2, 3)
    data += packed_text("lists") + struct.pack("<IIQ", 9, 8, 2) + packed_text("a b") + packed_text("")
    metadata, tensors = read_gguf(gguf_bytes(data, len(formats) + 3))
    assert metadata == {f"fact {kind}": value for kind, value in values.items()} | {
        "words": "Größe",
        "list": [1, -2, 3],
        "lists": ["a b", ""],
    }
    assert tensors == {}


def test_gguf_tensors_of_every_type_are_read():
    rows = torch.arange(6.0).reshape(2, 3)
    plain = struct.pack("<6f", *range(6)) + bytes(8)
    half = struct.pack("<6e", *range(6)) + bytes(20)
    steps = list(range(16)) + list(range(15, -1, -1))
    packed = bytes(low | high << 4 for low, high in zip(steps[:16], steps[16:]))
    four = struct.pack("<ee", 0.5, -3.0) + packed + bytes(12)
    eight = struct.pack("<e32b", 0.25, *range(-128, 128, 8))
    tensors = [("plain", (3, 2), 0, 0), ("half", (3, 2), 1, 32), ("four", (32,), 3, 64), ("eight", (32, 1), 8, 96)]
    _, actual = read_gguf(gguf_bytes(tensors=tensors, numbers=plain + half + four + eight))
    assert torch.equal(actual["plain"], rows) and torch.equal(actual["half"], rows)
    assert actual["four"].tolist() == [0.5 * step - 3 for step in steps]
    assert actual["eight"].tolist() == [[0.25 * step for step in range(-128, 128, 8)]]
    assert {x.dtype for x in actual.values()} == {torch.float32}


def test_gguf_agrees_with_the_gguf_package(tmp_path):
    package = pytest.importorskip("gguf")
    generator = torch.Generator().manual_seed(0)
    weights = {name: torch.randn(3, 64, generator=generator).numpy() for name in ("F32", "F16", "Q4_1", "Q8_0")}
    writer = package.GGUFWriter(tmp_path / "some.gguf", "llama")
    writer.add_array("words", ["a", "bc"])
    writer.add_float32("small", 1e-5)
    for name, x in weights.items():
        form = package.GGMLQuantizationType[name]
        writer.add_tensor(name, package.quantize(x, form), raw_dtype=form)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    metadata, tensors = read_gguf((tmp_path / "some.gguf").read_bytes())
    reader = package.GGUFReader(tmp_path / "some.gguf")
    assert metadata["words"] == ["a", "bc"] and metadata["general.architecture"] == "llama"
    for stored in reader.tensors:
        expected = torch.tensor(package.dequantize(stored.data, stored.tensor_type).astype("float32"))
        assert torch.equal(tensors[stored.name], expected)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "data must be a GGUF file, which begins with b'GGUF', got b''"),
        (b"PK\x03\x04 and more", r"data must be a GGUF file, which begins with b'GGUF', got b'PK\x03\x04'"),
        (gguf_bytes(version=1), "data must be a GGUF file of version 2 or 3, got version 1"),
        (b"GGUF\x03", "data must be a whole GGUF file, got 5 bytes, which end within its metadata"),
        (gguf_bytes(n_entries=2**60), "data must be a whole GGUF file, got 32 bytes, which end within its metadata"),
        (
            gguf_bytes(packed_text("far") + struct.pack("<IIQ", 9, 4, 2**62), 1),
            "data must be a whole GGUF file, got 64 bytes, which end within its metadata",
        ),
        (
            gguf_bytes(packed_text("odd") + struct.pack("<I", 13), 1),
            "data must contain values of the types 0 to 12, got type 13",
        ),
        (
            gguf_bytes(tensors=[("x", (4,), 0, 0)], numbers=bytes(12)),
            "data must be a whole GGUF file, got 76 bytes, which end within x",
        ),
        (
            gguf_bytes(tensors=[("x", (256,), 12, 0)], numbers=bytes(144)),
            "tensor 'x' must have one of the types 0, 1, 3, 8, got 12",
        ),
        (
            gguf_bytes(tensors=[("x", (33,), 8, 0)], numbers=bytes(68)),
            "tensor 'x' must hold whole blocks of 32 weights, got shape (33,)",
        ),
    ],
)
def test_invalid_gguf_files_are_refused(data, message):
    with pytest.raises(ValueError) as error:
        read_gguf(data)
    assert str(error.value) == message


# Safetensors


def test_safetensors_agree_with_the_safetensors_package(tmp_path):
    package = pytest.importorskip("safetensors.torch")
    weights = {
        "one": torch.randn(3, 5, generator=torch.Generator().manual_seed(0)),
        "half": torch.tensor([0.5, -2.0], dtype=torch.bfloat16),
        "numbers": torch.arange(4),
        "single": torch.tensor(7.0),
        "none": torch.zeros(0, 3),
    }
    package.save_file(weights, tmp_path / "some.safetensors", metadata={"format": "pt"})
    actual = read_safetensors((tmp_path / "some.safetensors").read_bytes())
    assert actual.keys() == weights.keys()
    assert all(torch.equal(actual[name], x) and actual[name].dtype == x.dtype for name, x in weights.items())


def test_safetensors_are_read_from_bytes_written_here():
    table = b'{"__metadata__": {"format": "pt"}, "b": {"dtype": "F32", "shape": [1, 2], "data_offsets": [4, 12]}}'
    actual = read_safetensors(safetensors_bytes(table, struct.pack("<i2f", 9, 1.5, -2.0)))
    assert actual.keys() == {"b"} and actual["b"].tolist() == [[1.5, -2.0]]


ENTRY = b'{"x": {"dtype": "%s", "shape": %s, "data_offsets": [0, %d]}}'


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80\x02 a pickle, say",
        safetensors_bytes(b"[]"),
        safetensors_bytes(b'{"x": 3}'),
        safetensors_bytes(b"{}")[:-1],
        safetensors_bytes(ENTRY % (b"Q9", b"[1]", 4), bytes(4)),
        safetensors_bytes(ENTRY % (b"F32", b"[2]", 4), bytes(4)),
        safetensors_bytes(ENTRY % (b"F32", b"[2]", 8), bytes(4)),
        safetensors_bytes(ENTRY % (b"F32", b'"ab"', 8), bytes(8)),
    ],
    ids=range(9),
)
def test_invalid_safetensors_files_are_refused(data):
    with pytest.raises(ValueError, match=r"^data must be a whole safetensors file, got one that fails with "):
        read_safetensors(data)
