"""The published ``config.json`` of a model, read as the fields of a ModelShape.

Every key of a configuration is counted, or is known to change no count, or is refused. A key has a rule in the table of
its model type, ``MODELS``; those without a rule must be in ``NEUTRAL``.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from .arguments import did_you_mean, format_value, is_integer, type_name


class Rule(NamedTuple):
    """What a key says: ``read(key, value)`` returns fields of a ModelShape. A key without ``default`` must be there."""

    read: Callable[[str, Any], dict]
    default: Any = ...


class Model(NamedTuple):
    """A model type: its family, the fields that all its models have, its keys, and what follows from several keys."""

    family: str
    fixed: dict
    keys: dict[str, Rule]
    finish: Callable[[dict, dict], dict] | None = None
    aliases: dict[str, str] | None = None


# Keys that change no count, in any model: names, tokens, training, activations, scales, rotary positions, generation.
_NEUTRAL = """
    _attn_implementation _attn_implementation_autoset _name_or_path _num_labels activation activation_dropout
    activation_function add_bias_logits afn alibi_bias_max architectures attention_dropout attention_multiplier
    attention_probs_dropout_prob attention_softmax_in_fp32 attn_logit_softcapping attn_pdrop auto_map bad_words_ids
    begin_suppress_tokens bias_dropout_fusion bos_token_id cache_implementation chunk_size_feed_forward classif_dropout
    classifier_dropout classifier_dropout_prob clip_qkv decoder_layerdrop decoder_start_token_id dense_act_fn
    directionality diversity_penalty do_sample down_scale_factor dropout dropout_rate dtype early_stopping emb_pdrop
    embd_pdrop embed_dropout embedding_dropout embedding_multiplier encoder_layerdrop encoder_no_repeat_ngram_size
    eos_token_id exponential_decay_length_penalty extra_pos_embeddings final_logit_softcapping finetuning_task
    force_bos_token_to_be_generated forced_bos_token_id forced_eos_token_id gap_size gradient_checkpointing hidden_act
    hidden_activation hidden_dropout hidden_dropout_prob id2label inference_runner init_config init_device init_std
    initializer_factor initializer_range is_llama_config label2id layer_norm_eps layer_norm_epsilon layerdrop
    layers_to_keep length_penalty logit_scale logits_scaling masked_softmax_fusion max_batch_size max_length
    max_position_embeddings max_seq_len max_sequence_length min_length model_type n_ctx n_positions net_structure_type
    no_repeat_ngram_size no_rope_layer_interval no_rope_layers norm_eps norm_epsilon norm_topk_prob num_beam_groups
    num_beams num_labels num_memory_blocks num_return_sequences offset_alibi original_max_position_embeddings
    output_attentions output_hidden_states output_past output_router_logits output_scores pad_key_length pad_token_id
    partial_rotary_factor pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head
    pooler_type pre_allocate_kv_cache predict_special_tokens prefix pretraining_tp problem_type qa_dropout
    query_pre_attn_scalar relative_attention_max_distance remove_invalid_values reorder_and_upcast_attn
    repetition_penalty resid_dropout resid_pdrop residual_dropout residual_multiplier return_dict
    return_dict_in_generate rms_norm_eps rope_interleaved rope_local_base_freq rope_parameters rope_scaling rope_theta
    rotary rotary_dim rotary_emb_base rotary_pct router_aux_loss_coef router_jitter_noise
    scale_attention_softmax_in_fp32 scale_attn_by_inverse_layer_idx scale_attn_weights scale_decoder_outputs
    scale_embedding sep_token_id seq_classif_dropout seq_length sinusoidal_pos_embds skip_bias_add slow_but_exact
    summary_activation summary_first_dropout summary_last_dropout summary_proj_to_labels summary_type summary_use_proj
    suppress_tokens task_specific_params temperature tf_legacy_loss tokenizer_class tokenizer_name top_k top_p
    torch_dtype torchscript transformers.js_config transformers_version typical_p unk_token_id use_bfloat16 use_cache
    validate_runner_input
"""
NEUTRAL = set(_NEUTRAL.split())


def refuse(key, value, rule):
    """Raise the error of a value that cannot be counted."""
    raise ValueError(f"config's {key} must be {rule}, got {format_value(value)}")


def size(field, default=..., *, more=0, least=1, or_null=False):
    """Read an integer into a field, with ``more`` added: rows that a table has besides."""

    def read(key, value):
        if value is None and (default is None or or_null):
            return {}
        if not is_integer(value) or value < least:
            refuse(key, value, f"an integer, at least {least}")
        return {field: int(value) + more}

    return Rule(read, default)


def switch(default, on, off=None):
    """Read True or False as the fields ``on`` or ``off``."""

    def read(key, value):
        if type(value) is not bool:
            refuse(key, value, "true or false")
        return on if value else off or {}

    return Rule(read, default)


def tied(default):
    return switch(default, {"tied": True}, {"tied": False})


def biases(default, *places):
    """Read whether there are biases at some places."""
    return switch(default, {"bias": places})


def only(*values):
    """Accept these values, or none; refuse others."""

    def read(key, value):
        if not any(type(value) is type(each) and value == each for each in values):
            refuse(key, value, f"{' or '.join(map(repr, values))} to be counted")
        return {}

    return Rule(read, values[0])


def noted(default=None):
    """Accept a value that ``finish`` reads."""
    return Rule(lambda key, value: {}, default)


def layers_named(local, full):
    """Read the attention of each layer: how many have a window."""

    def read(key, value):
        if value is None:
            return {}
        if not isinstance(value, list) or not all(each in (local, full) for each in value):
            refuse(key, value, f"a list of {local!r} and {full!r}")
        return {"n_window_layers": value.count(local), "named_layers": (key, len(value))}

    return Rule(read, None)


LAYER_TYPES = layers_named("sliding_attention", "full_attention")


def windows_in_some_layers(count):
    """Finish a model with windows in ``count(config, n_layers)`` layers, where it does not name them one by one."""

    def finish(fields, config):
        if "window" in fields and "n_window_layers" not in fields:
            fields["n_window_layers"] = count(config, fields["n_layers"])
        return _windows(fields)

    return finish


def _windows(fields):
    """Without a window, no layer has one; windows in no layer are none."""
    if not fields.get("n_window_layers", 1) or "window" not in fields:
        if fields.get("n_window_layers"):
            raise ValueError("config's sliding_window must be an integer where layer_types has sliding_attention")
        fields.pop("window", None)
        fields.pop("n_window_layers", None)
    return fields


def _period(default):
    """Return a count of layers with a window, where one in ``sliding_window_pattern`` layers has none."""

    def count(config, n_layers):
        for key in ("sliding_window_pattern", "_sliding_window_pattern"):
            period = config.get(key, default)
            if not is_integer(period) or period < 1:
                refuse(key, period, "an integer, at least 1")
            if key in config:
                break
        return n_layers - n_layers // period

    return count


def _qwen(fields, config):
    """Windows only if asked for, from layer ``max_window_layers`` on."""
    if not config.get("use_sliding_window", False):
        if fields.get("n_window_layers"):
            refuse("use_sliding_window", False, "true where layer_types has sliding_attention")
        fields.pop("window", None)
        fields.pop("n_window_layers", None)
        return fields
    first = config.get("max_window_layers", 28)
    if not is_integer(first) or first < 0:
        refuse("max_window_layers", first, "an integer, at least 0")
    fields.setdefault("n_window_layers", max(0, fields["n_layers"] - first))
    return _windows(fields)


def _falcon(fields, config):
    if config.get("new_decoder_architecture", False):
        fields["n_kv_heads"] = fields.get("n_kv_heads", fields["n_heads"])
        one = config.get("num_ln_in_parallel_attn") == 1
        return {**fields, "norms_per_layer": 1 if one else 2}
    fields.pop("n_kv_heads", None)  # num_kv_heads is read by the new architecture alone
    if config.get("multi_query", True):
        fields["n_kv_heads"] = 1
    return {**fields, "norms_per_layer": 1 if config.get("parallel_attn", True) else 2}


def _local_layers(fields, config):
    """The list of layers repeated: ``[[["global", "local"], 12]]``."""
    value = config.get("attention_types", [[["global", "local"], 12]])
    try:
        names = [name for names, times in value for _ in range(times) for name in names]
    except (TypeError, ValueError):
        names = ["?"]
    if not set(names) <= {"global", "local"} or len(names) != fields["n_layers"]:
        refuse("attention_types", value, f"'global' or 'local' for each of {fields['n_layers']} layers")
    return _windows({**fields, "n_window_layers": names.count("local")})


def _mpt(fields, config):
    known = {"attn_type": "multihead_attention", "qk_ln": False, "alibi": True, "prefix_lm": False}
    known |= {"is_encoder_decoder": False}
    neutral = {"attn_pdrop", "attn_impl", "clip_qkv", "softmax_scale", "attn_uses_sequence_id", "alibi_bias_max"}
    attention = config.get("attn_config")
    if not isinstance(attention, dict):
        refuse("attn_config", attention, "a dict")
    for key, value in attention.items():
        if key not in NEUTRAL | neutral and not (key in known and value == known[key]):
            refuse(f"attn_config.{key}", value, repr(known[key]) if key in known else "left out to be counted")
    return {**fields, "d_ff": fields["d_ff"] * fields["d_model"]}


def _electra(fields, config):
    if fields["d_embedding"] == fields["d_model"]:
        del fields["d_embedding"]  # no linear map then
    return fields


def _same(*pairs):
    """Demand that two keys have one value: the family has one field for both."""

    def finish(fields, config):
        for first, second in pairs:
            if config.get(second) is not None and config[second] != config[first]:
                refuse(second, config[second], f"{first}, {format_value(config[first])}, to be counted")
        return fields

    return finish


def encoder(fixed=(), keys=(), finish=None):
    """BERT, and what differs from it."""
    usual = {
        "hidden_size": size("d_model"),
        "num_hidden_layers": size("n_layers", least=0),
        "num_attention_heads": size("n_heads"),
        "intermediate_size": size("d_ff"),
        "vocab_size": size("vocab_size"),
        "max_position_embeddings": size("n_positions"),
        "type_vocab_size": size("n_segments", least=0),
        "position_embedding_type": only("absolute"),
        "is_decoder": only(False),
        "add_cross_attention": only(False),
        "is_encoder_decoder": only(False),
        "tie_word_embeddings": noted(),  # there is no head
    }
    return Model("bert", dict(fixed), {**usual, **dict(keys)}, finish)


def decoder(fixed=(), keys=(), finish=None, *, tie=False, aliases=None):
    """Llama, and what differs from it."""
    usual = {
        "hidden_size": size("d_model"),
        "num_hidden_layers": size("n_layers", least=0),
        "num_attention_heads": size("n_heads"),
        "num_key_value_heads": size("n_kv_heads"),
        "head_dim": size("d_head", None),
        "intermediate_size": size("d_ff"),
        "vocab_size": size("vocab_size"),
        "max_position_embeddings": size("n_positions", None),
        "tie_word_embeddings": tied(tie),
        "is_encoder_decoder": only(False),
        "is_decoder": noted(),
        "add_cross_attention": only(False),
    }
    return Model("llama", dict(fixed), {**usual, **dict(keys)}, finish, aliases)


def of_2019(family, fixed=(), keys=(), finish=None, *, tie=True, aliases=None):
    """GPT-2's names of the keys, and what differs from it."""
    usual = {
        "n_embd": size("d_model"),
        "n_layer": size("n_layers", least=0),
        "n_head": size("n_heads"),
        "n_inner": size("d_ff", None),
        "vocab_size": size("vocab_size"),
        "n_positions": size("n_positions"),
        "tie_word_embeddings": tied(tie),
        "is_encoder_decoder": only(False),
        "is_decoder": noted(),
        "add_cross_attention": only(False),
    }
    names = {"hidden_size": "n_embd", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head"}
    names["max_position_embeddings"] = "n_positions"
    return Model(family, dict(fixed), {**usual, **dict(keys)}, finish, names if aliases is None else aliases)


def t5(feed_forward_proj):
    """T5: no biases, RMS norm, relative positions that the layers of a stack share."""

    def feed_forward(key, value):
        if not isinstance(value, str) or value.startswith("gated") != value.startswith("gated-"):
            refuse(key, value, "the name of an activation, such as 'relu' or 'gated-gelu'")
        return {"gated": value.startswith("gated-")}

    fixed = {"norm": "rms", "bias": (), "final_norm": True, "shared_embedding": True}
    keys = {
        "d_model": size("d_model"),
        "num_layers": size("n_layers", least=0),
        "num_decoder_layers": noted(),
        "num_heads": size("n_heads"),
        "d_kv": size("d_head"),
        "d_ff": size("d_ff"),
        "vocab_size": size("vocab_size"),
        "relative_attention_num_buckets": size("n_relative", 32),
        "feed_forward_proj": Rule(feed_forward, feed_forward_proj),
        "is_gated_act": noted(),  # transformers sets it from feed_forward_proj
        "tie_word_embeddings": tied(True),  # transformers 5 ties T5 1.1 all the same; its published weights have a head
        "is_encoder_decoder": only(True),
        "is_decoder": noted(),
    }
    return Model("transformer", fixed, keys, _same(("num_layers", "num_decoder_layers")))


def bart(final_norm):
    """BART: a table of positions and a norm of the embeddings in each stack."""
    fixed = {"learned_positions": True, "embedding_norm": True, "final_norm": final_norm, "bias": (*NO_HEAD,)}
    keys = {
        "d_model": size("d_model"),
        "encoder_layers": size("n_layers", least=0),
        "decoder_layers": size("n_layers", least=0),
        "encoder_attention_heads": size("n_heads"),
        "decoder_attention_heads": size("n_heads"),
        "encoder_ffn_dim": size("d_ff"),
        "decoder_ffn_dim": size("d_ff"),
        "vocab_size": size("vocab_size"),
        "max_position_embeddings": size("n_positions", more=2),
        "tie_word_embeddings": only(True),
        "num_hidden_layers": noted(),
        "add_final_layer_norm": only(final_norm),
        "normalize_before": only(final_norm),
        "normalize_embedding": only(True),
        "static_position_embeddings": only(False),
        "is_encoder_decoder": only(True),
        "is_decoder": noted(),
    }
    pairs = [(f"encoder_{name}", f"decoder_{name}") for name in ("layers", "attention_heads", "ffn_dim")]
    return Model("transformer", fixed, keys, _same(*pairs))


NO_HEAD = ("qkv", "output", "feed-forward", "norms")
LAYER_NORM = {"norm": "layer", "gated": False}
OWN_HEADS = {"num_key_value_heads": size("n_kv_heads", None)}  # as many as queries where left out
ATTENTION_BIAS = {"attention_bias": biases(False, "qkv", "output")}
LLAMA = {**OWN_HEADS, **ATTENTION_BIAS, "mlp_bias": biases(False, "feed-forward")}
QWEN = {
    "sliding_window": size("window", None, least=0),
    "use_sliding_window": switch(False, {}),
    "max_window_layers": noted(),
    "layer_types": LAYER_TYPES,
}
GEMMA = {"head_dim": size("d_head", 256), **ATTENTION_BIAS, "use_bidirectional_attention": only(None, False)}
GEMMA_WINDOWS = {**GEMMA, "sliding_window": size("window", 4096, or_null=True), "layer_types": LAYER_TYPES}
GEMMA_PATTERN = {"sliding_window_pattern": noted(), "_sliding_window_pattern": noted()}
EXPERTS = {"num_local_experts": size("n_experts"), "num_experts_per_tok": size("experts_per_token")}
MANY_EXPERTS = {"num_experts": size("n_experts"), "num_experts_per_tok": size("experts_per_token")}
QWEN_EXPERTS = {
    **QWEN,
    **MANY_EXPERTS,
    "moe_intermediate_size": size("d_expert"),
    "decoder_sparse_step": only(1),
    "mlp_only_layers": only([]),
}

BERT = encoder()
GPTJ = {**LAYER_NORM, "norms_per_layer": 1, "bias": ("feed-forward", "norms", "head")}
MODELS = {
    # Encoders
    "bert": BERT,
    "roberta": BERT,
    "xlm-roberta": BERT,
    "camembert": BERT,
    "distilbert": Model(
        "bert",
        {"n_segments": 0, "pooler": False},
        {
            "dim": size("d_model"),
            "n_layers": size("n_layers", least=0),
            "n_heads": size("n_heads"),
            "hidden_dim": size("d_ff"),
            "vocab_size": size("vocab_size"),
            "max_position_embeddings": size("n_positions"),
            "tie_weights_": noted(),
            "tie_word_embeddings": noted(),
            "is_encoder_decoder": only(False),
        },
    ),
    "electra": encoder({"pooler": False}, {"embedding_size": size("d_embedding")}, _electra),
    "albert": encoder(
        {"shared_layers": True},
        {"embedding_size": size("d_embedding"), "num_hidden_groups": only(1), "inner_group_num": only(1)},
    ),
    "mpnet": encoder(
        {"n_segments": 0},
        {"relative_attention_num_buckets": size("n_relative", 32), "type_vocab_size": noted()},
    ),
    # Encoders with decoders
    "t5": t5("relu"),
    "mt5": t5("gated-gelu"),
    "bart": bart(final_norm=False),
    "mbart": bart(final_norm=True),
    # Decoders with LayerNorm
    "openai-gpt": of_2019("gpt2", {"final_norm": False}, {"n_special": only(0)}),
    "gpt2": of_2019("gpt2"),
    "gpt_bigcode": of_2019(
        "llama",
        {**LAYER_NORM, "learned_positions": True, "bias": NO_HEAD},
        {"multi_query": switch(True, {"n_kv_heads": 1}), "num_key_value_heads": noted()},
    ),
    "gptj": of_2019("llama", GPTJ, tie=False),
    "codegen": of_2019("llama", GPTJ, tie=False),
    "gpt_neo": Model(
        "llama",
        {**LAYER_NORM, "learned_positions": True, "bias": ("output", "feed-forward", "norms")},
        {
            "hidden_size": size("d_model"),
            "num_layers": size("n_layers", least=0),
            "num_heads": size("n_heads"),
            "intermediate_size": size("d_ff", None),
            "vocab_size": size("vocab_size"),
            "max_position_embeddings": size("n_positions"),
            "window_size": size("window", 256),
            "attention_types": noted(),
            "attention_layers": noted(),  # transformers sets it from attention_types
            "tie_word_embeddings": tied(True),
            "is_encoder_decoder": only(False),
        },
        _local_layers,
    ),
    "bloom": of_2019(
        "llama",
        {**LAYER_NORM, "embedding_norm": True, "bias": NO_HEAD},
        {
            "hidden_size": size("d_model"),
            "n_embd": only(None),
            "n_positions": noted(),
            "n_inner": only(None),
            "apply_residual_connection_post_layernorm": noted(),
        },
        aliases={"n_embed": "hidden_size", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head"},
    ),
    "opt": decoder(
        {**LAYER_NORM, "learned_positions": True, "bias": NO_HEAD},
        {
            "num_key_value_heads": only(None),
            "intermediate_size": only(None),
            "ffn_dim": size("d_ff"),
            "max_position_embeddings": size("n_positions", more=2),
            "word_embed_proj_dim": noted(),
            "do_layer_norm_before": only(True),
            "_remove_final_layer_norm": only(False),
            "enable_bias": only(True),
            "layer_norm_elementwise_affine": only(True),
        },
        _same(("hidden_size", "word_embed_proj_dim")),
        tie=True,
    ),
    "biogpt": decoder(
        {**LAYER_NORM, "learned_positions": True, "bias": NO_HEAD},
        {"num_key_value_heads": only(None), "max_position_embeddings": size("n_positions", more=2)},
        tie=True,
    ),
    "gpt_neox": decoder(
        {**LAYER_NORM, "bias": ("feed-forward", "norms")},
        {
            "num_key_value_heads": only(None),
            "attention_bias": biases(True, "qkv", "output"),
            "use_parallel_residual": noted(),  # two norms either way
        },
    ),
    "falcon": decoder(
        {**LAYER_NORM, "bias": ("norms",)},
        {
            "num_key_value_heads": only(None),
            "intermediate_size": only(None),
            "num_kv_heads": size("n_kv_heads", None),
            "ffn_hidden_size": size("d_ff", None),
            "bias": biases(False, "qkv", "output", "feed-forward"),
            "multi_query": switch(True, {}),
            "new_decoder_architecture": switch(False, {}),
            "parallel_attn": switch(True, {}),
            "num_ln_in_parallel_attn": noted(),
            "apply_residual_connection_post_layernorm": noted(),
            "alibi": noted(),
        },
        _falcon,
        tie=True,
    ),
    "mpt": Model(
        "llama",
        {**LAYER_NORM, "bias": ()},
        {
            "d_model": size("d_model"),
            "n_layers": size("n_layers", least=0),
            "n_heads": size("n_heads"),
            "expansion_ratio": size("d_ff", 4),
            "vocab_size": size("vocab_size"),
            "attn_config": noted({}),
            "no_bias": only(True),
            "learned_pos_emb": noted(),  # transformers' MPT has ALiBi alone
            "embedding_fraction": noted(),
            "norm_type": only("low_precision_layernorm"),
            "verbose": noted(),
            "tie_word_embeddings": tied(True),
            "is_encoder_decoder": only(False),
        },
        _mpt,
    ),
    "phi": decoder(
        {**LAYER_NORM, "norms_per_layer": 1, "bias": (*NO_HEAD, "head")},
        {**OWN_HEADS, "qk_layernorm": only(False)},
    ),
    "stablelm": decoder(
        {"norm": "layer", "bias": ("norms",)},
        {
            "use_qkv_bias": biases(False, "qkv"),
            "use_parallel_residual": switch(False, {"norms_per_layer": 1}),
            "qk_layernorm": only(False),
        },
    ),
    "starcoder2": decoder(
        {**LAYER_NORM, "bias": ("norms",)},
        {
            "use_bias": biases(True, "qkv", "output", "feed-forward"),
            "sliding_window": size("window", None),
        },
        tie=True,
    ),
    "cohere": decoder(
        {"norm": "layer", "norms_per_layer": 1},
        {**OWN_HEADS, **ATTENTION_BIAS, "use_qk_norm": switch(False, {"qk_norm": "all"})},
        tie=True,
    ),
    "olmo": decoder({"norm": "unlearned"}, {**OWN_HEADS, **ATTENTION_BIAS}),
    # Decoders with RMS norm
    "llama": decoder((), LLAMA),
    "granite": decoder((), LLAMA),
    "helium": decoder((), {**LLAMA, "head_dim": size("d_head", 128)}),
    "smollm3": decoder((), {**LLAMA, **QWEN, "use_sliding_window": only(False)}, _qwen, tie=True),
    "mistral": decoder((), {"sliding_window": size("window", 4096, or_null=True)}),
    "phi3": decoder((), {**OWN_HEADS, "sliding_window": size("window", None)}),
    "gemma": decoder((), GEMMA, tie=True),
    "gemma2": decoder(
        {"norms_per_layer": 4},
        GEMMA_WINDOWS,
        windows_in_some_layers(lambda config, n_layers: (n_layers + 1) // 2),
        tie=True,
    ),
    "gemma3_text": decoder(
        {"norms_per_layer": 4, "qk_norm": True},
        {**GEMMA_WINDOWS, **GEMMA_PATTERN},
        windows_in_some_layers(_period(6)),
        tie=True,
    ),
    "qwen2": decoder({"bias": ("qkv",)}, QWEN, _qwen),
    "qwen3": decoder({"qk_norm": True}, {**QWEN, **ATTENTION_BIAS, "head_dim": size("d_head", 128)}, _qwen),
    "olmo2": decoder({"qk_norm": "all"}, {**OWN_HEADS, **ATTENTION_BIAS}),
    "olmo3": decoder(
        {"qk_norm": "all"},
        {
            **OWN_HEADS,
            **ATTENTION_BIAS,
            "sliding_window": size("window", 4096, or_null=True),
            "layer_types": LAYER_TYPES,
        },
        windows_in_some_layers(lambda config, n_layers: n_layers - n_layers // 4),
    ),
    "glm": decoder((), {"attention_bias": biases(True, "qkv"), "head_dim": size("d_head", 128)}),
    "glm4": decoder({"norms_per_layer": 4}, {"attention_bias": biases(True, "qkv"), "head_dim": size("d_head", 128)}),
    "seed_oss": decoder(
        (),
        {
            "attention_bias": biases(True, "qkv"),
            "attention_out_bias": biases(False, "output"),
            "mlp_bias": biases(False, "feed-forward"),
            "head_dim": size("d_head", 128),
        },
    ),
    "ernie4_5": decoder((), {"use_bias": only(False), "head_dim": size("d_head", 128)}, tie=True),
    # Decoders with experts
    "mixtral": decoder((), {**EXPERTS, "sliding_window": size("window", None)}),
    "granitemoe": decoder((), {**OWN_HEADS, **ATTENTION_BIAS, **EXPERTS}),
    "olmoe": decoder({"qk_norm": "all"}, {**OWN_HEADS, **ATTENTION_BIAS, **MANY_EXPERTS}),
    "qwen2_moe": decoder(
        {"shared_expert_gate": True},
        {
            **QWEN_EXPERTS,
            "shared_expert_intermediate_size": size("d_shared_expert"),
            "qkv_bias": biases(True, "qkv"),
        },
        _qwen,
    ),
    "qwen3_moe": decoder(
        {"qk_norm": True},
        {**QWEN_EXPERTS, **ATTENTION_BIAS},
        _qwen,
        aliases={"num_local_experts": "num_experts"},
    ),
}


def shape_fields(config: dict) -> tuple[dict, dict]:
    """Return the fields of a ModelShape that a configuration says, and the key that each comes from."""
    if not isinstance(config, dict):
        raise TypeError(f"config must be a dict, as json.load returns it, got {type_name(config)}")
    name = config.get("model_type")
    if "model_type" not in config:
        raise ValueError("config has no model_type: the key that names the architecture, such as 'llama'")
    if not isinstance(name, str) or name not in MODELS:
        near = did_you_mean(name, MODELS) if isinstance(name, str) else ""
        raise ValueError(
            f"config's model_type must be one of {', '.join(sorted(MODELS))}, got {format_value(name)}{near}"
        )
    model = MODELS[name]
    config = _with_own_names(config, model.aliases or {})
    for key, value in config.items():
        if key not in model.keys and key not in NEUTRAL:
            raise ValueError(
                f"config's {key} is not known for model_type {name!r}, got {format_value(value)}: leave it out if it "
                "changes no count"
            )
    fields: dict[str, Any] = {"family": model.family, **model.fixed}
    keys: dict[str, str] = {}
    for key, rule in model.keys.items():
        if key not in config and rule.default is ...:
            raise ValueError(f"config has no {key}, which model_type {name!r} needs")
        read = rule.read(key, config.get(key, rule.default))
        keys |= dict.fromkeys(read, key)
        if "bias" in read:
            read = {"bias": (*fields.get("bias", ()), *read["bias"])}
        fields |= read
    if model.finish:
        fields = model.finish(fields, config)
    key, named = fields.pop("named_layers", ("", fields["n_layers"]))
    if named != fields["n_layers"]:
        raise ValueError(f"config's {key} must name {fields['n_layers']} layers, got {named}")
    if fields.get("d_head") and fields["d_head"] * fields["n_heads"] == fields["d_model"]:
        del fields["d_head"]  # what ModelShape takes where it is left out
    return fields, keys


def _with_own_names(config, aliases):
    """Rename keys that the model type knows by two names."""
    found = {}
    for key, value in config.items():
        name = aliases.get(key, key)
        if found.setdefault(name, value) != value:
            raise ValueError(
                f"config's {key} and {name} must be the same, got {format_value(value)} and {format_value(found[name])}"
            )
    return found
