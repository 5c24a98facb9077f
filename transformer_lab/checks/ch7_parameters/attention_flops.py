"""How much work the two products of attention take."""

from ... import compute
from ..exercise import exercise, with_text_of
from . import attention_parameters as parameters


def count_pairs(seq):
    """Count the pairs of a query and a key."""
    return seq * seq


def flops_per_pair(d_model):
    """Count two products for each pair, with a multiply-add (two FLOPs) for each feature."""
    return 2 * 2 * d_model


@exercise(
    inputs=lambda draw: (3, 5),
    axes={},
    hints=(
        "Between its projections, attention multiplies matrices twice: queries by keys, and weights by values. Which "
        "shapes are multiplied in each product, and how many FLOPs does a product of (n, k) and (k, m) take?",
        "The chapter's section 7.4 counts the FLOPs of one product, and section 7.5 explains the 4 in its formula. "
        "Write both products for 2 tokens of 1 feature on paper, number by number.",
        "`scores = 2 * … * … * …`, `blend = 2 * … * … * …`, and `return scores + blend`",
    ),
)
def attention_flops(seq, d_model, *, table=count_pairs, work=flops_per_pair):
    """Count, as an int, the FLOPs of scores and blend for a text of ``seq`` tokens, all heads together."""
    return table(seq) * work(d_model)


attention_flops.example("more tokens than features", 17, 2, plain=True)
attention_flops.example("a text of 100 tokens", 100, 8, plain=True)
attention_flops.example("a full text of GPT-2", 1024, 768, plain=True)
attention_flops.example("a single token", 1, 7)


@attention_flops.right
class RightAnswers:
    def scores_then_blend(seq, d_model):
        scores = 2 * seq * d_model * seq  # (seq, d_model) @ (d_model, seq)
        blend = 2 * seq * seq * d_model  # (seq, seq) @ (seq, d_model)
        return scores + blend

    def by_multiply_adds(seq, d_model):
        multiply_adds = seq**2 * d_model + seq**2 * d_model
        return 2 * multiply_adds

    def query_by_query(seq, d_model):
        total = 0
        for _ in range(seq):
            total += 2 * seq * d_model  # this query's scores
            total += 2 * seq * d_model  # this query's blend
        return total

    def with_as_many_keys(seq, d_model):
        return compute.attention_flops(seq, d_model, k_len=seq)


@attention_flops.property
def twice_as_long(function, seq, d_model):
    """A text twice as long takes four times the work."""
    return function(2 * seq, d_model) == 4 * function(seq, d_model)


@attention_flops.property
def twice_as_many_features(function, seq, d_model):
    """Twice as many features take twice the work."""
    return function(seq, 2 * d_model) == 2 * function(seq, d_model)


@attention_flops.wrong(stage="table")
class Table:
    def one_query(seq):
        """Your number is proportional to `seq` instead of `seq**2`: it is the work for one query, such as that of a new
        token that reads a cache. But each of the `seq` tokens has a score with every one of the `seq` tokens, so a text
        twice as long takes four times the work."""
        return seq

    def pairs_under_the_causal_mask(seq):
        """You count only the pairs that a causal mask leaves visible: each query with its own key and the keys before
        it. (You get the same number if you count the scores of all queries, but the blend of only one query.) A fast
        program may skip hidden pairs, but the usual count, as the docstring says, includes every pair of a query and a
        key."""
        return seq * (seq + 1) // 2

    def pairs_of_different_tokens(seq):
        """You leave out the pairs of a token with itself. A query also has a score with its own key: for a single token
        your number is 0, and that is wrong. How many entries does the table of scores have?"""
        return seq * (seq - 1)


@attention_flops.wrong(stage="work")
class Work:
    def half_of_the_work(d_model):
        """For each pair of a query and a key you count half of the work. Three mistakes lead to this number: a
        multiply-add counted as one FLOP instead of two; one of the two products (scores or blend) left out; or hidden
        pairs left out, although this count ignores the causal mask. Which of them is yours?"""
        return 2 * d_model

    def a_quarter_of_the_work(d_model):
        """For each pair of a query and a key you count `d_model`: the multiply-adds of one product. There are two
        products, scores and blend, and a multiply-add is two FLOPs. Count both products for 2 tokens of 1 feature, on
        paper."""
        return d_model

    def one_product_in_multiply_adds(d_model):
        """For each pair you count three times `d_model` instead of four times: one of the two products has the 2 for a
        multiply-add, but the other product lacks it. Scores and blend take the same amount of work. Write your two
        terms one below the other: which factor is missing from one of them?"""
        return 3 * d_model

    def three_products(d_model):
        """You count three products of matrices, perhaps one each for queries, keys and values. There are only two
        products: queries with keys, then weights with values. The maps that *compute* queries, keys and values are
        projections, which the task does not count."""
        return 6 * d_model

    def twice_the_work(d_model):
        """For each pair you count twice the right number. Probably you multiply twice by the 2 for a multiply-add, or
        twice by the 2 for the two products. Count both products for 2 tokens of 1 feature, on paper."""
        return 8 * d_model

    def work_of_training(d_model):
        """You count three times the work of the two products: this is the work of a training step, the forward *and*
        the backward pass. The task asks for the forward pass alone."""
        return 12 * d_model

    def features_squared(d_model):
        """Your number grows with the square of `d_model`. This is true of the projections, where each input feature has
        a weight for each output feature. In scores and blend, a feature of a query is multiplied only by the same
        feature of a key: twice the width means twice the work."""
        return 4 * d_model**2

    def features_left_out(d_model):
        """Your number does not change with `d_model`: you count a multiply-add for each pair and product. A score is
        the product of two *vectors*, and needs a multiply-add for each of their features. In the blend, too, a weight
        is multiplied by every feature of a value."""
        return 4


@attention_flops.wrong
class WrongAnswers:
    def blend_without_its_features(seq, d_model):
        """{Your scores are right, but} in the blend you count two FLOPs for each pair of tokens, as if a value were one
        number. A weight is multiplied by every feature of a value. Write the shapes of the blend's two factors, (seq,
        …) and (…, …): which three sizes must be multiplied?"""
        return 2 * seq**2 * d_model + 2 * seq**2

    def one_product_with_a_square_of_features(seq, d_model):
        """One of your two products grows with the square of `d_model`{; the other is right}. A product with a learned
        matrix, such as a projection, grows like this. In scores and blend, both factors are computed from the text.
        Which shape does the second factor of your wrong product have?"""
        return 2 * seq**2 * d_model + 2 * seq * d_model**2

    @with_text_of(parameters.Weights.caret_for_a_power)
    def caret_for_a_power(seq, d_model):
        return 4 * seq ^ (2 * d_model)

    def linear_in_the_length(seq, d_model):
        """You square the wrong size: your number grows with `seq` and with the square of `d_model`. This is the work of
        products with learned matrices, or of linear attention in one head. Scores and blend need work for every pair of
        a query and a key, feature by feature."""
        return 4 * seq * d_model**2

    def projections_alone(seq, d_model):
        """You count the four projections: eight times `seq` times the square of `d_model`. They are the part of
        attention that has parameters. The task asks for the part without parameters: the two products between the
        projections."""
        return 8 * seq * d_model**2

    def projections_counted_too(seq, d_model):
        """You count the whole of attention, its four projections included. The task asks for the part without
        parameters: the two products between the projections, which grow with the square of the length."""
        return 4 * seq**2 * d_model + 8 * seq * d_model**2

    def three_projections_counted_too(seq, d_model):
        """You count the two products, and also the maps that compute queries, keys and values. These maps are
        projections. The task asks for the part without parameters, between the projections."""
        return 4 * seq**2 * d_model + 6 * seq * d_model**2

    def one_projection_counted_too(seq, d_model):
        """You count the two products, and also one map with a square matrix: most likely the output projection, after
        the heads. The task asks for the part without parameters, between the projections."""
        return 4 * seq**2 * d_model + 2 * seq * d_model**2

    def multiply_adds_with_projections(seq, d_model):
        """You count the whole of attention, its four projections included, and you count every multiply-add as one
        FLOP. The task asks only for the part without parameters: the two products between the projections. A
        multiply-add is two FLOPs."""
        return 2 * seq**2 * d_model + 4 * seq * d_model**2

    def whole_layer_counted(seq, d_model):
        """You count a whole layer: its projections and its feed-forward layer are in your number. The task asks for the
        part of attention without parameters, the two products between the projections."""
        return 4 * seq**2 * d_model + 24 * seq * d_model**2

    def softmax_counted_too(seq, d_model):
        """You count the two products, and also three operations for each entry of the table of scores: the softmax. The
        products need hundreds of operations for each entry, so by convention only products are counted. Read in the
        docstring what the count includes."""
        return 4 * seq**2 * d_model + 3 * seq**2

    def scale_counted_too(seq, d_model):
        """You count the two products, and also one operation for each entry of the table of scores: most likely the
        scaling, or the exponential. The products need hundreds of operations for each entry, so by convention only
        products are counted. Read in the docstring what the count includes."""
        return 4 * seq**2 * d_model + seq**2

    def two_operations_on_each_score(seq, d_model):
        """You count the two products, and also two operations, such as scaling and exponentiation, for each entry of
        the table of scores. The products need hundreds of operations for each entry, so by convention only products are
        counted. Read in the docstring what the count includes."""
        return 4 * seq**2 * d_model + 2 * seq**2

    def four_operations_on_each_score(seq, d_model):
        """You count the two products, and also four operations for each entry of the table of scores: a softmax, or
        most of it. The products need hundreds of operations for each entry, so by convention only products are counted.
        Read in the docstring what the count includes."""
        return 4 * seq**2 * d_model + 4 * seq**2

    def five_operations_on_each_score(seq, d_model):
        """You count the two products, and also the softmax, with five operations for each entry of the table of
        scores. The products need hundreds of operations for each entry, so by convention only products are counted.
        Read in the docstring what the count includes."""
        return 4 * seq**2 * d_model + 5 * seq**2

    def first_addition_not_counted(seq, d_model):
        """In every sum you count one addition too few, because k − 1 additions are enough to add k products. The
        arithmetic is correct, but by convention the sum starts at 0: a product of matrices is exactly two FLOPs for
        each multiply-add. The chapter's section 7.4 explains the rule."""
        return seq**2 * (2 * d_model - 1) + seq * d_model * (2 * seq - 1)

    def first_addition_of_each_score_not_counted(seq, d_model):
        """In each score you count one addition fewer than there are multiplications, because k − 1 additions are enough
        to add k products. This is true, but by convention the sum starts at 0: a product of matrices is exactly two
        FLOPs for each multiply-add. In the blend you already count two FLOPs for each multiply-add."""
        return 4 * seq**2 * d_model - seq**2

    def first_addition_of_both_not_counted(seq, d_model):
        """You count one addition fewer than there are multiplications: `2 * d_model - 1` FLOPs for each pair and
        product. It is true that k − 1 additions are enough for k products, but by convention the sum starts at 0: a
        product of matrices is two FLOPs for each multiply-add."""
        return 4 * seq**2 * d_model - 2 * seq**2

    def projections_beside_a_causal_mask(seq, d_model):
        """You count the four projections too, and only those pairs that a causal mask leaves visible. The task asks
        only for the part without parameters: the two products between the projections. The usual count, as the
        docstring says, includes every pair of a query and a key."""
        return 2 * seq * (seq + 1) * d_model + 8 * seq * d_model**2

    def one_product_with_one_addition_less(seq, d_model):
        """You count only one of the two products, the scores, and in each score one addition fewer than there are
        multiplications. The blend takes as much work as the scores. By convention a sum starts at 0: a product of
        matrices is two FLOPs for each multiply-add."""
        return seq**2 * (2 * d_model - 1)
