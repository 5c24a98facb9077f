"""A table of rules for each model type, which say how to read the shape of a model from its ``config.json``.

The table contains only data, because both ``config.py`` and the budget lab's script read configurations with it. A rule
is a dict: ``read`` says how to read the key's value. A key whose rule has no ``default`` is required.
"""

from typing import NamedTuple


class Model(NamedTuple):
    """A model type: its family, the fields that all its models have, and the rules for its keys.

    ``same`` lists pairs of keys that must have equal values, since the family has one field for both. ``cases`` set
    fields if keys have certain values, and are applied in order. ``aliases`` are alternative names of keys.

    Rules may also set helper fields, from which fields of a ModelShape follow: ``expansion``,
    ``full_every``, ``uses_window``, ``first_window_layer``, ``d_embedding_unless_equal``.
    """

    family: str
    fixed: dict
    keys: dict[str, dict]
    same: tuple[tuple[str, str], ...] = ()
    cases: tuple[tuple[dict, dict], ...] = ()
    aliases: dict[str, str] | None = None


# For each family, endings of class names: "counted" for models whose parameters are counted, "alone" for models without
# a head. A model without a head has as many parameters as a counted model only if the counted head is tied.
CLASS_ENDINGS = {
    "bert": {"counted": ["Model", "ForMaskedLM", "ForPreTraining"], "alone": []},
    "gpt2": {"counted": ["LMHeadModel", "ForCausalLM"], "alone": ["Model"]},
    "llama": {"counted": ["ForCausalLM", "LMHeadModel"], "alone": ["Model"]},
    "transformer": {"counted": ["ForConditionalGeneration", "LMHeadModel"], "alone": ["Model"]},
}

# Keys that change no count, in any model: names, tokens, training, activations, scales, rotary positions, generation.
_NEUTRAL_KEYS = """
    _attn_implementation _attn_implementation_autoset _name_or_path _num_labels activation activation_dropout
    activation_function add_bias_logits afn alibi_bias_max attention_dropout attention_multiplier
    attention_probs_dropout_prob attention_softmax_in_fp32 attn_logit_softcapping attn_pdrop bad_words_ids
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
NEUTRAL_KEYS = set(_NEUTRAL_KEYS.split())


def size(field, *default, more=0, least=1, or_null=False):
    """Return the rule for an integer. ``more``, the number of a table's extra rows, is added to the integer."""
    null = or_null or default == (None,)
    options = {"more": more} if more else {}
    options |= {"least": least} if least != 1 else {}
    options |= {"null": True} if null else {}
    return _with_default({"read": "size", "field": field, **options}, *default)


def switch(default, on, off=None):
    """Return the rule for a bool: True sets the fields in ``on``, False the fields in ``off``."""
    return _with_default({"read": "switch", "on": on} | ({"off": off} if off else {}), default)


def tied(default):
    """Return the rule for a bool that says whether the head is tied to the embeddings."""
    return switch(default, {"tied": True}, {"tied": False})


def biases(default, *parts):
    """Return the rule for a bool that says whether ``parts`` have biases."""
    return switch(default, {"bias": parts})


def only(*values):
    """Return the rule for a value that must be one of ``values``; any other value is an error."""
    return _with_default({"read": "only", "values": list(values)}, values[0])


def noted():
    """Return the rule for a value that changes no count in this model type, or is read by ``same`` or ``cases``."""
    return _with_default({"read": "noted"}, None)


def gate(default):
    """Return the rule for the name of an activation, gated or not."""
    return _with_default({"read": "gate"}, default)


def layers_repeated(default):
    """Return the rule for a list of layer names and repetitions, such as ``[[["global", "local"], 12]]``."""
    return _with_default({"read": "layers repeated", "local": "local", "full": "global"}, default)


def inside(known, neutral):
    """Return the rule for a nested dict in which each key of ``known`` must have the same value as in ``known``."""
    return _with_default({"read": "inside", "known": known, "neutral": list(neutral)}, {})


def _with_default(rule, *default):
    return {**rule, "default": default[0]} if default else rule


LAYER_TYPES = _with_default({"read": "layers", "local": "sliding_attention", "full": "full_attention"}, None)


def encoder(fixed=(), keys=()):
    """Return a model type with the rules for BERT's keys; ``keys`` adds or replaces rules."""
    default_keys = {
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
    return Model("bert", dict(fixed), {**default_keys, **dict(keys)})


def decoder(fixed=(), keys=(), *, tie=False, **options):
    """Return a model type with the rules for Llama's keys; ``keys`` adds or replaces rules."""
    default_keys = {
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
    return Model("llama", dict(fixed), {**default_keys, **dict(keys)}, **options)


def gpt2_like(family, fixed=(), keys=(), *, tie=True, aliases=None):
    """Return a model type with the rules for GPT-2's keys; ``keys`` adds or replaces rules."""
    default_keys = {
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
    default_aliases = {"hidden_size": "n_embd", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head"}
    default_aliases["max_position_embeddings"] = "n_positions"
    aliases = default_aliases if aliases is None else aliases
    return Model(family, dict(fixed), {**default_keys, **dict(keys)}, aliases=aliases)


def t5(feed_forward_proj):
    """Return T5's model type: no biases, RMS norm, and relative positions that the layers of a stack share."""

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
        "feed_forward_proj": gate(feed_forward_proj),
        "is_gated_act": noted(),  # transformers derives it from feed_forward_proj
        "tie_word_embeddings": tied(True),  # T5 1.1 was published with an untied head; transformers 5 still ties it
        "is_encoder_decoder": only(True),
        "is_decoder": noted(),
    }
    return Model("transformer", fixed, keys, same=(("num_layers", "num_decoder_layers"),))


def bart(final_norm):
    """Return BART's model type: each stack has a table of positions and a norm of the embeddings."""
    fixed = {
        "learned_positions": True,
        "embedding_norm": True,
        "final_norm": final_norm,
        "bias": (*BODY_BIASES,),
    }
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
    pairs = tuple((f"encoder_{name}", f"decoder_{name}") for name in ("layers", "attention_heads", "ffn_dim"))
    return Model("transformer", fixed, keys, same=pairs)


BODY_BIASES = ("qkv", "output", "feed-forward", "norms")
LAYER_NORM = {"norm": "layer", "gated": False}
ONE_NORM = {"norms_per_layer": 1}
KV_HEADS = {"num_key_value_heads": size("n_kv_heads", None)}  # by default, as many as query heads
ATTENTION_BIAS = {"attention_bias": biases(False, "qkv", "output")}
LLAMA_KEYS = {**KV_HEADS, **ATTENTION_BIAS, "mlp_bias": biases(False, "feed-forward")}
QWEN_KEYS = {
    "sliding_window": size("window", None, least=0),
    "use_sliding_window": switch(False, {"uses_window": True}, {"uses_window": False}),
    "max_window_layers": size("first_window_layer", 28, least=0, or_null=True),
    "layer_types": LAYER_TYPES,
}
GEMMA_KEYS = {"head_dim": size("d_head", 256), **ATTENTION_BIAS, "use_bidirectional_attention": only(None, False)}
GEMMA_WINDOW_KEYS = {**GEMMA_KEYS, "sliding_window": size("window", 4096, or_null=True), "layer_types": LAYER_TYPES}
LOCAL_EXPERT_KEYS = {"num_local_experts": size("n_experts"), "num_experts_per_tok": size("experts_per_token")}
EXPERT_KEYS = {"num_experts": size("n_experts"), "num_experts_per_tok": size("experts_per_token")}
QWEN_EXPERT_KEYS = {
    **QWEN_KEYS,
    **EXPERT_KEYS,
    "moe_intermediate_size": size("d_expert"),
    "decoder_sparse_step": only(1),
    "mlp_only_layers": only([]),
}

# The old architecture does not read num_kv_heads. Parallel attention and feed-forward layers share one norm, unless
# there are two norms, as is usual in the new architecture.
FALCON_CASES = (
    ({"new_decoder_architecture": False}, {"n_kv_heads": None}),
    ({"new_decoder_architecture": False, "multi_query": True}, {"n_kv_heads": 1}),
    ({"new_decoder_architecture": False, "parallel_attn": True, "num_ln_in_parallel_attn": None}, ONE_NORM),
    ({"parallel_attn": True, "num_ln_in_parallel_attn": 1}, ONE_NORM),
)
MPT_ATTENTION = inside(
    {
        "attn_type": "multihead_attention",
        "qk_ln": False,
        "alibi": True,
        "prefix_lm": False,
        "is_encoder_decoder": False,
    },
    ("attn_pdrop", "attn_impl", "clip_qkv", "softmax_scale", "attn_uses_sequence_id", "alibi_bias_max"),
)

BERT = encoder()
GPTJ_FIELDS = {**LAYER_NORM, "norms_per_layer": 1, "bias": ("feed-forward", "norms", "head")}
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
    "electra": encoder({"pooler": False}, {"embedding_size": size("d_embedding_unless_equal")}),
    "albert": encoder(
        {"shared_layers": True},
        {"embedding_size": size("d_embedding"), "num_hidden_groups": only(1), "inner_group_num": only(1)},
    ),
    "mpnet": encoder(
        {"n_segments": 0},
        {"relative_attention_num_buckets": size("n_relative", 32), "type_vocab_size": noted()},
    ),
    # Encoder–decoders
    "t5": t5("relu"),
    "mt5": t5("gated-gelu"),
    "bart": bart(final_norm=False),
    "mbart": bart(final_norm=True),
    # Decoders with LayerNorm
    "openai-gpt": gpt2_like("gpt2", {"final_norm": False}, {"n_special": only(0)}),
    "gpt2": gpt2_like("gpt2"),
    "gpt_bigcode": gpt2_like(
        "llama",
        {**LAYER_NORM, "learned_positions": True, "bias": BODY_BIASES},
        {"multi_query": switch(True, {"n_kv_heads": 1}), "num_key_value_heads": noted()},
    ),
    "gptj": gpt2_like("llama", GPTJ_FIELDS, tie=False),
    "codegen": gpt2_like("llama", GPTJ_FIELDS, tie=False),
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
            "attention_types": layers_repeated([[["global", "local"], 12]]),
            "attention_layers": noted(),  # transformers derives it from attention_types
            "tie_word_embeddings": tied(True),
            "is_encoder_decoder": only(False),
        },
    ),
    "bloom": gpt2_like(
        "llama",
        {**LAYER_NORM, "embedding_norm": True, "bias": BODY_BIASES},
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
        {**LAYER_NORM, "learned_positions": True, "bias": BODY_BIASES},
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
        same=(("hidden_size", "word_embed_proj_dim"),),
        tie=True,
    ),
    "biogpt": decoder(
        {**LAYER_NORM, "learned_positions": True, "bias": BODY_BIASES},
        {"num_key_value_heads": only(None), "max_position_embeddings": size("n_positions", more=2)},
        tie=True,
    ),
    "gpt_neox": decoder(
        {**LAYER_NORM, "bias": ("feed-forward", "norms")},
        {
            "num_key_value_heads": only(None),
            "attention_bias": biases(True, "qkv", "output"),
            "use_parallel_residual": noted(),  # in both cases, there are two norms
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
            "num_ln_in_parallel_attn": only(None, 1, 2),
            "apply_residual_connection_post_layernorm": noted(),
            "alibi": noted(),
        },
        cases=FALCON_CASES,
        tie=True,
    ),
    "mpt": Model(
        "llama",
        {**LAYER_NORM, "bias": ()},
        {
            "d_model": size("d_model"),
            "n_layers": size("n_layers", least=0),
            "n_heads": size("n_heads"),
            "expansion_ratio": size("expansion", 4),
            "vocab_size": size("vocab_size"),
            "attn_config": MPT_ATTENTION,
            "no_bias": only(True),
            "learned_pos_emb": noted(),  # MPT in transformers has only ALiBi
            "embedding_fraction": noted(),
            "norm_type": only("low_precision_layernorm"),
            "verbose": noted(),
            "tie_word_embeddings": tied(True),
            "is_encoder_decoder": only(False),
        },
    ),
    "phi": decoder(
        {**LAYER_NORM, "norms_per_layer": 1, "bias": (*BODY_BIASES, "head")},
        {**KV_HEADS, "qk_layernorm": only(False)},
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
        {**KV_HEADS, **ATTENTION_BIAS, "use_qk_norm": switch(False, {"qk_norm": "all"})},
        tie=True,
    ),
    "olmo": decoder({"norm": "unlearned"}, {**KV_HEADS, **ATTENTION_BIAS}),
    # Decoders with RMS norm
    "llama": decoder((), LLAMA_KEYS),
    "granite": decoder((), LLAMA_KEYS),
    "helium": decoder((), {**LLAMA_KEYS, "head_dim": size("d_head", 128)}),
    "smollm3": decoder(
        {"uses_window": False}, {**LLAMA_KEYS, **QWEN_KEYS, "use_sliding_window": only(False)}, tie=True
    ),
    "mistral": decoder((), {"sliding_window": size("window", 4096, or_null=True)}),
    "phi3": decoder((), {**KV_HEADS, "sliding_window": size("window", None)}),
    "gemma": decoder((), GEMMA_KEYS, tie=True),
    "gemma2": decoder({"norms_per_layer": 4, "full_every": 2}, GEMMA_WINDOW_KEYS, tie=True),
    "gemma3_text": decoder(
        {"norms_per_layer": 4, "qk_norm": True},
        {**GEMMA_WINDOW_KEYS, "sliding_window_pattern": size("full_every", 6)},
        tie=True,
        aliases={"_sliding_window_pattern": "sliding_window_pattern"},
    ),
    "qwen2": decoder({"bias": ("qkv",)}, QWEN_KEYS),
    "qwen3": decoder({"qk_norm": True}, {**QWEN_KEYS, **ATTENTION_BIAS, "head_dim": size("d_head", 128)}),
    "olmo2": decoder({"qk_norm": "all"}, {**KV_HEADS, **ATTENTION_BIAS}),
    "olmo3": decoder(
        {"qk_norm": "all", "full_every": 4},
        {
            **KV_HEADS,
            **ATTENTION_BIAS,
            "sliding_window": size("window", 4096, or_null=True),
            "layer_types": LAYER_TYPES,
        },
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
    "mixtral": decoder((), {**LOCAL_EXPERT_KEYS, "sliding_window": size("window", None)}),
    "granitemoe": decoder((), {**KV_HEADS, **ATTENTION_BIAS, **LOCAL_EXPERT_KEYS}),
    "olmoe": decoder({"qk_norm": "all"}, {**KV_HEADS, **ATTENTION_BIAS, **EXPERT_KEYS}),
    "qwen2_moe": decoder(
        {"shared_expert_gate": True},
        {
            **QWEN_EXPERT_KEYS,
            "shared_expert_intermediate_size": size("d_shared_expert"),
            "qkv_bias": biases(True, "qkv"),
        },
    ),
    "qwen3_moe": decoder(
        {"qk_norm": True},
        {**QWEN_EXPERT_KEYS, **ATTENTION_BIAS},
        aliases={"num_local_experts": "num_experts"},
    ),
}
for _model in MODELS.values():
    _model.keys["pruned_heads"] = only({})  # in files from before 2021
