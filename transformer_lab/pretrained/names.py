"""Maps from the names of a file's tensors to the names of this package's parameters. {} stands for a layer's number."""

from collections.abc import Mapping

from torch import Tensor, nn

from ..device import device

BERT_NAMES = {
    "embeddings.word_embeddings.weight": "embedding.tokens.weight",
    "embeddings.position_embeddings.weight": "embedding.positions.weight",
    "embeddings.token_type_embeddings.weight": "embedding.segments.weight",
    "embeddings.LayerNorm.weight": "embedding.norm.weight",
    "embeddings.LayerNorm.bias": "embedding.norm.bias",
    "encoder.layer.{}.attention.self.query.weight": "encoder.layers.{}.self_attention.q_proj.weight",
    "encoder.layer.{}.attention.self.query.bias": "encoder.layers.{}.self_attention.q_proj.bias",
    "encoder.layer.{}.attention.self.key.weight": "encoder.layers.{}.self_attention.k_proj.weight",
    "encoder.layer.{}.attention.self.key.bias": "encoder.layers.{}.self_attention.k_proj.bias",
    "encoder.layer.{}.attention.self.value.weight": "encoder.layers.{}.self_attention.v_proj.weight",
    "encoder.layer.{}.attention.self.value.bias": "encoder.layers.{}.self_attention.v_proj.bias",
    "encoder.layer.{}.attention.output.dense.weight": "encoder.layers.{}.self_attention.out_proj.weight",
    "encoder.layer.{}.attention.output.dense.bias": "encoder.layers.{}.self_attention.out_proj.bias",
    "encoder.layer.{}.attention.output.LayerNorm.weight": "encoder.layers.{}.norm1.weight",
    "encoder.layer.{}.attention.output.LayerNorm.bias": "encoder.layers.{}.norm1.bias",
    "encoder.layer.{}.intermediate.dense.weight": "encoder.layers.{}.feed_forward.linear1.weight",
    "encoder.layer.{}.intermediate.dense.bias": "encoder.layers.{}.feed_forward.linear1.bias",
    "encoder.layer.{}.output.dense.weight": "encoder.layers.{}.feed_forward.linear2.weight",
    "encoder.layer.{}.output.dense.bias": "encoder.layers.{}.feed_forward.linear2.bias",
    "encoder.layer.{}.output.LayerNorm.weight": "encoder.layers.{}.norm2.weight",
    "encoder.layer.{}.output.LayerNorm.bias": "encoder.layers.{}.norm2.bias",
}
# Tensors that the encoder does not use: the position numbers 0, 1, 2 …, and a layer that reads [CLS]. The encoder
# averages all tokens instead.
BERT_UNUSED = {"embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias"}

LLAMA_NAMES = {
    "token_embd.weight": "embedding.weight",  # also output.weight, which is the same matrix
    "blk.{}.attn_norm.weight": "decoder.layers.{}.norm1.weight",
    "blk.{}.attn_q.weight": "decoder.layers.{}.self_attention.q_proj.weight",
    "blk.{}.attn_k.weight": "decoder.layers.{}.self_attention.k_proj.weight",
    "blk.{}.attn_v.weight": "decoder.layers.{}.self_attention.v_proj.weight",
    "blk.{}.attn_output.weight": "decoder.layers.{}.self_attention.out_proj.weight",
    "blk.{}.ffn_norm.weight": "decoder.layers.{}.norm2.weight",
    "blk.{}.ffn_gate.weight": "decoder.layers.{}.feed_forward.gate.weight",
    "blk.{}.ffn_up.weight": "decoder.layers.{}.feed_forward.linear1.weight",
    "blk.{}.ffn_down.weight": "decoder.layers.{}.feed_forward.linear2.weight",
    "output_norm.weight": "decoder.norm.weight",
}


def fill(model: nn.Module, tensors: Mapping[str, Tensor], names: Mapping[str, str], n_layers: int) -> None:
    """Load the tensors of a file into a model, each under its new name; raise an error unless all fit.

    Parameters
    ----------
    model : torch.nn.Module
    tensors : dict of str to Tensor
        The tensors by their names in the file. Each must belong to a parameter of the model.
    names : dict of str to str
        Maps each name in the file to the name in the model; ``{}`` stands for a layer's number.
    n_layers : int

    Raises
    ------
    ValueError
        If a tensor is missing, has a wrong shape, or belongs to no parameter of the model, or if ``names`` leaves out a
        parameter.

    Examples
    --------
    >>> import torch
    >>> model = nn.Sequential(nn.Linear(2, 1, bias=False))
    >>> fill(model, {"layer0.W": torch.tensor([[3.0, 4.0]])}, {"layer{}.W": "{}.weight"}, n_layers=1)
    >>> model[0].weight.tolist()
    [[3.0, 4.0]]
    >>> fill(model, {"layer0.W": torch.zeros(1, 3)}, {"layer{}.W": "{}.weight"}, n_layers=1)
    Traceback (most recent call last):
    ValueError: layer0.W must have shape (1, 2), which is that of 0.weight, got (1, 3)
    """
    expected_shapes = {name: tuple(x.shape) for name, x in model.named_parameters()}  # each tied parameter only once
    file_names = {
        parameter_name.format(layer): file_name.format(layer)
        for file_name, parameter_name in names.items()
        for layer in (range(n_layers) if "{}" in file_name else [0])
    }
    if unnamed_weights := sorted(expected_shapes.keys() - file_names.keys()):
        raise ValueError(f"names must name every weight of the model, got none for {unnamed_weights[0]}")
    for parameter_name, file_name in file_names.items():
        if parameter_name not in expected_shapes:
            raise ValueError(f"names must map to weights of the model, got {parameter_name}, which it does not have")
        if file_name not in tensors:
            raise ValueError(f"the file must hold {file_name}, which becomes {parameter_name}, got a file without it")
        if tuple(tensors[file_name].shape) != expected_shapes[parameter_name]:
            actual = tuple(tensors[file_name].shape)
            rule = f"have shape {expected_shapes[parameter_name]}, which is that of {parameter_name}"
            raise ValueError(f"{file_name} must {rule}, got {actual}")
    if unused_tensors := sorted(tensors.keys() - set(file_names.values())):
        raise ValueError(f"the model must have a place for every tensor, got none for {unused_tensors[0]}")
    state = {parameter_name: tensors[file_name].to(device()) for parameter_name, file_name in file_names.items()}
    model.load_state_dict(state, strict=False, assign=True)
