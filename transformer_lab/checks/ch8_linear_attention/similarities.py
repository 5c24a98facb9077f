"""What goes wrong in the similarities, whether later keys are hidden or not."""

import torch

from .elu_feature_map import positive


def with_other_similarities(exercise, hidden):
    """Add the mistakes in what is compared, or in what makes weights of it. ``hidden`` puts −∞ where no key is seen."""

    @exercise.mistake
    def only_the_query_mapped(query, key, value):
        """The queries become features, and the keys go in as they are. Keys have negative numbers, so weights come out
        negative, and a normalizer close to zero makes results fly far off. The similarity is φ(query) · φ(key): check
        what each name holds at the point where it is used."""
        return exercise.reference(query, key, value, features=lambda x: positive(x) if x is query else x)

    @exercise.mistake
    def only_the_keys_mapped(query, key, value):
        """The keys become features, and the queries go in as they are. Queries have negative numbers, so weights come
        out negative, and a normalizer close to zero makes results fly far off. The similarity is φ(query) · φ(key):
        check what each name holds at the point where it is used."""
        return exercise.reference(query, key, value, features=lambda x: positive(x) if x is key else x)

    @exercise.mistake
    def scaled_query(query, key, value):
        """You divide the queries by √d_head before the feature map, as softmax attention does. There it tames the
        exponential; here a factor cancels in the quotient, and inside the map it bends the features. Leave the scale
        out: what does the formula of φ get?"""
        return exercise.reference(query / query.shape[-1] ** 0.5, key, value)

    @exercise.mistake(stage="features")
    def scaled_query_and_keys(x):
        """You divide queries and keys by √d_head before the feature map. The scale belongs to softmax attention; here a
        factor cancels in the quotient, and inside the map it bends the features. What does the formula of φ get?"""
        return positive(x / x.shape[-1] ** 0.5)

    @exercise.mistake(stage="features")
    def half_of_the_scale_for_each(x):
        """You multiply queries and keys by d_head^(−1/4) before the feature map, half of softmax attention's scale for
        each. There it tames the exponential; here a factor cancels in the quotient, and inside the map it bends the
        features. What does the formula of φ get?"""
        return positive(x * x.shape[-1] ** -0.25)

    @exercise.mistake_around
    def values_mapped_too(function):
        """The values go through the feature map as well. It makes weights of queries and keys; a value is what is
        carried, and must arrive as it is, negative numbers included. Which two of the three get a φ in the formula?"""
        return lambda query, key, value: function(query, key, positive(value))

    @exercise.mistake
    def map_after_the_product(query, key, value):
        """You apply the map to the dot products of queries and keys. That is an attention with positive weights, but
        with another similarity, which does not factor: it needs every pair, and no state can hold it. What does φ act
        on, in φ(query) · φ(key)?"""
        weights = positive(query @ key.mT).masked_fill(hidden(query @ key.mT).isinf(), 0.0)
        return weights @ value / weights.sum(-1, keepdim=True)

    @exercise.mistake
    def softmax_attention(query, key, value):
        """This is softmax attention, with its scale. Linear attention is not a faster way to the same numbers: it has
        different weights, φ(query) · φ(key) divided by their sum. Where do the features come in?"""
        return hidden(query @ key.mT / query.shape[-1] ** 0.5).softmax(-1) @ value

    @exercise.mistake
    def softmax_of_similarities(query, key, value):
        """You take a softmax of the similarities φ(query) · φ(key). They are the weights already, up to a factor for
        each query, and the exponential changes them. What do you divide weights by, so that they sum to one?"""
        return hidden(positive(query) @ positive(key).mT).softmax(-1) @ value

    @exercise.mistake
    def scaled_softmax_of_similarities(query, key, value):
        """You take a softmax of the similarities φ(query) · φ(key), divided by √d_head. They are the weights already,
        up to a factor for each query; exponential and root belong to the other form. What do you divide weights by, so
        that they sum to one?"""
        return hidden(positive(query) @ positive(key).mT / query.shape[-1] ** 0.5).softmax(-1) @ value

    @exercise.mistake
    def multiplied_by_the_normalizer(query, key, value):
        """You multiply by the normalizer, where you should divide by it. Values that are all one come out as the square
        of the normalizer, and grow with the square of the number of keys. Is a reciprocal missing, or taken twice?"""
        return exercise.reference(query, key, value, output=lambda numerator, normalizer: numerator * normalizer)


def later_hidden(scores):
    is_later = torch.ones(scores.shape[-2:], device=scores.device).triu(1).bool()
    return scores.masked_fill(is_later, -torch.inf)
