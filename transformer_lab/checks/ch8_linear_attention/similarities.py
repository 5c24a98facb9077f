"""Mistakes in the similarities, for linear attention with and without hidden later keys."""

import torch

from .elu_feature_map import feature_map


def add_similarity_mistakes(exercise, hide):
    """Add mistakes in the features, and in the step from similarities to weights; ``hide`` hides keys with −∞."""

    @exercise.mistake
    def only_the_query_mapped(query, key, value):
        """You apply the feature map to the queries, but use the keys as they are. Keys contain negative numbers, so
        weights can be negative, and where the normalizer is close to zero the results are huge. The similarity is
        φ(query) · φ(key): check what each name holds at the point where you use it."""
        return exercise.reference(query, key, value, features=lambda x: feature_map(x) if x is query else x)

    @exercise.mistake
    def only_the_keys_mapped(query, key, value):
        """You apply the feature map to the keys, but use the queries as they are. Queries contain negative numbers, so
        weights can be negative, and where the normalizer is close to zero the results are huge. The similarity is
        φ(query) · φ(key): check what each name holds at the point where you use it."""
        return exercise.reference(query, key, value, features=lambda x: feature_map(x) if x is key else x)

    @exercise.mistake
    def scaled_query(query, key, value):
        """You divide the queries by √d_head, as in softmax attention, but before the feature map. Linear attention
        needs no scale: after the map a scale would cancel in the division, and before the map it changes the features.
        What is the argument of φ in the formula?"""
        return exercise.reference(query / query.shape[-1] ** 0.5, key, value)

    @exercise.mistake(stage="features")
    def scaled_query_and_keys(x):
        """You divide queries and keys by √d_head before the feature map. Linear attention needs no scale: after the map
        a scale would cancel in the division, and before the map it changes the features. What is the argument of φ in
        the formula?"""
        return feature_map(x / x.shape[-1] ** 0.5)

    @exercise.mistake(stage="features")
    def half_of_the_scale_for_each(x):
        """You multiply queries and keys by d_head^(−1/4) before the feature map: together these factors are softmax
        attention's scale. Linear attention needs no scale: after the map a scale would cancel in the division, and
        before the map it changes the features. What is the argument of φ in the formula?"""
        return feature_map(x * x.shape[-1] ** -0.25)

    @exercise.mistake_around
    def values_mapped_too(function):
        """You also apply the feature map to the values. The map is for the weights, which depend on queries and keys;
        the values must stay as they are, including negative numbers. Which two of the three tensors get a φ in the
        formula?"""
        return lambda query, key, value: function(query, key, feature_map(value))

    @exercise.mistake
    def map_after_the_product(query, key, value):
        """You apply the map to the dot products of queries and keys. This is attention with positive weights, but its
        similarity does not factor into features of the query and features of the key: you must compute it for every
        pair, and no state can hold it. What is the argument of φ in φ(query) · φ(key)?"""
        weights = feature_map(query @ key.mT).masked_fill(hide(query @ key.mT).isinf(), 0.0)
        return weights @ value / weights.sum(-1, keepdim=True)

    @exercise.mistake
    def softmax_attention(query, key, value):
        """This is softmax attention, with its scale. Linear attention is not a faster way to the same numbers: its
        weights are different, namely the similarities φ(query) · φ(key) divided by their sum. Where does your function
        use the features?"""
        return hide(query @ key.mT / query.shape[-1] ** 0.5).softmax(-1) @ value

    @exercise.mistake
    def softmax_of_similarities(query, key, value):
        """You apply a softmax to the similarities φ(query) · φ(key). The similarities are already the weights, up to a
        factor for each query, and the exponential changes them. By what must you divide a query's similarities, so that
        they sum to one?"""
        return hide(feature_map(query) @ feature_map(key).mT).softmax(-1) @ value

    @exercise.mistake
    def scaled_softmax_of_similarities(query, key, value):
        """You divide the similarities φ(query) · φ(key) by √d_head and apply a softmax. The similarities are already
        the weights, up to a factor for each query; the exponential and the root belong to softmax attention. By what
        must you divide a query's similarities, so that they sum to one?"""
        return hide(feature_map(query) @ feature_map(key).mT / query.shape[-1] ** 0.5).softmax(-1) @ value

    @exercise.mistake
    def multiplied_by_the_normalizer(query, key, value):
        """You multiply by the normalizer, but should divide by it. Values that are all one come out as the square of
        the normalizer, which grows with the square of the number of keys. Is a reciprocal missing, or did you take the
        reciprocal twice?"""
        return exercise.reference(query, key, value, output=lambda numerator, normalizer: numerator * normalizer)


def hide_later_keys(scores):
    is_later = torch.ones(scores.shape[-2:], device=scores.device).triu(1).bool()
    return scores.masked_fill(is_later, -torch.inf)
